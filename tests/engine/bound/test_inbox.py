"""The inbox of a thread: order, and no task and no waking that is slept over."""

from __future__ import annotations

import threading

from penstock.binding.tasks import BlockTask, Rebind
from penstock.engine.bound.inbox import WorkerInbox

FIRST, SECOND = BlockTask(0, 0, 0), BlockTask(1, 1, 0)
REBIND = Rebind(0, 1, 1, 0)
LONG_S = 600.0


def test_rebinds_come_first_then_tasks_in_order() -> None:
    inbox = WorkerInbox()
    for one in (FIRST, SECOND, REBIND):
        inbox.put(one)
    assert len(inbox) == 3
    assert [inbox.take() for _ in range(4)] == [REBIND, FIRST, SECOND, None]


def test_nobody_sleeps_while_there_is_a_task() -> None:
    inbox = WorkerInbox()
    inbox.put(FIRST)
    inbox.sleep(inbox.wakings)  # would hang


def test_nobody_sleeps_who_was_woken_since_the_last_look() -> None:
    inbox = WorkerInbox()
    seen = inbox.wakings
    inbox.wake()
    inbox.sleep(seen)
    inbox.sleep(seen, for_task=False)  # also one who waits for no task, and as often as it asks


def test_one_who_waits_for_the_others_is_not_kept_awake_by_tasks() -> None:
    inbox = WorkerInbox()
    inbox.put(FIRST)
    inbox.sleep(inbox.wakings, timeout_s=0.0, for_task=False)  # sleeps, and for no time
    assert inbox.take() == FIRST


def test_a_task_or_a_waking_ends_the_sleep() -> None:
    inbox, asleep, slept = WorkerInbox(), threading.Event(), []

    def sleeper() -> None:
        for _ in range(2):
            seen = inbox.wakings
            asleep.set()
            inbox.sleep(seen, LONG_S)
            slept.append((inbox.take(), inbox.wakings))

    thread = threading.Thread(target=sleeper, daemon=True)
    thread.start()
    assert asleep.wait(LONG_S)
    inbox.put(FIRST)
    while not slept:
        thread.join(0.001)
    inbox.wake()
    thread.join(LONG_S)
    assert slept == [(FIRST, 0), (None, 1)]
