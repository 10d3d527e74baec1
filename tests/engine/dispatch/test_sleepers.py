"""Who sleeps: one watches the clock, the last to fall asleep is woken first, and no waking is lost."""

from __future__ import annotations

from penstock.engine.dispatch.sleepers import Seat, Sleepers, wait
from penstock.scheduling.dispatch.board import Head


def test_the_first_to_sleep_watches_the_clock_until_it_leaves() -> None:
    sleepers, first, second = Sleepers(Head()), Seat(), Seat()
    assert sleepers.add(first, 10)
    assert not sleepers.unwatched  # it wakes up by itself
    assert not sleepers.add(second, 10)
    assert sleepers.unwatched  # as soon as the first has left, nobody watches for the second
    sleepers.remove(first)
    assert sleepers.unwatched
    assert sleepers.add(first, 10)


def test_one_that_knows_of_something_earlier_watches_instead() -> None:
    sleepers, first, second, third = Sleepers(Head()), Seat(), Seat(), Seat()
    assert sleepers.add(first, 10)
    assert sleepers.add(second, 9)
    assert not sleepers.add(third, 9)
    sleepers.remove(first)
    assert not sleepers.add(first, 10)  # the second still watches


def test_one_that_may_not_watch_leaves_it_to_the_next() -> None:
    sleepers, first, second = Sleepers(Head()), Seat(), Seat()
    assert not sleepers.add(first, None)
    assert sleepers.add(second, 10)


def test_the_last_to_fall_asleep_is_woken_first() -> None:
    head = Head()
    sleepers, first, second = Sleepers(head), Seat(), Seat()
    sleepers.add(first, 10)
    sleepers.add(second, 10)
    assert head.sleeping == 2
    sleepers.wake()
    wait(second, None)  # returns at once
    sleepers.remove(second)
    assert head.sleeping == 1
    sleepers.wake(5)  # more than there are
    wait(first, None)
    assert head.sleeping == 0


def test_one_that_was_woken_just_when_its_time_had_come_sleeps_again_the_next_time() -> None:
    sleepers, seat = Sleepers(Head()), Seat()
    sleepers.add(seat, 10)
    wait(seat, 0)  # its time has come
    sleepers.wake()  # before it could say so
    sleepers.remove(seat)
    assert not seat.lock.acquire(blocking=False)  # nothing is left of that


def test_after_its_time_a_worker_no_longer_counts_as_asleep() -> None:
    head = Head()
    sleepers, seat = Sleepers(head), Seat()
    sleepers.add(seat, 10)
    wait(seat, 0)
    sleepers.remove(seat)
    assert head.sleeping == 0
    sleepers.wake_all()  # wakes nobody
    assert not seat.lock.acquire(blocking=False)
