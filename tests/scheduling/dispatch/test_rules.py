"""The rules of the dispatcher one by one, by hand: passes, alone, together, patience, staying."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from penstock.scheduling.dispatch.board import NEVER_NS
from penstock.scheduling.dispatch.dispatcher import Dispatcher
from penstock.scheduling.dispatch.rules import Rules
from penstock.scheduling.min_latency import MinLatency
from penstock.scheduling.observation import Observation
from penstock.scheduling.policy import Policy, Snapshot
from penstock.scheduling.round_robin import RoundRobin
from penstock.scheduling.state_based import StateBased
from penstock.scheduling.thresholds import Adaptation, ThresholdRange
from penstock.scheduling.topology import Topology

MS = 1_000_000
LIMIT = 600
ALL = Rules(alone=False)  # without known costs, every turn counts as short


def chains(count: int) -> Topology:
    """So many sources, each with a filter and a sink behind it: operators 0 to 2, 3 to 5, and so on."""
    children = [place for first in range(0, 3 * count, 3) for place in ((first + 1,), (first + 2,), ())]
    return Topology(tuple(children), ("source", "filter", "sink") * count)


class Driver:
    """Turns that take no time, and sources that have an event a microsecond from the start."""

    def __init__(
        self,
        topology: Topology,
        policy: Policy | None = None,
        rules: Rules = ALL,
        workers: int = 1,
        cost_ns: float = 0.0,
    ) -> None:
        count = len(topology)
        self.dispatcher = Dispatcher(topology, policy or MinLatency(), LIMIT, MS, workers, rules)
        self.board = self.dispatcher.board
        self.seen = Observation(topology, workers, np.zeros(count), np.ones(count, bool))
        self.seen.rate_per_ns = np.array([0.001 * (kind == "source") for kind in topology.kinds])
        self.seen.known_cost_ns = np.full(count, cost_ns)
        self.dispatcher.plan(1, self.seen)
        for number, kind in enumerate(topology.kinds):
            if kind == "source":
                self.dispatcher.expect(number, 0, 1)

    def patient(self) -> None:
        """Sources wait for ten milliseconds, whatever the plan has said."""
        self.board.head.patience_ns, self.board.head.slack_ns = 10 * MS, 10 * MS // 4

    def take(self, now_ns: int, most: int = 64) -> list[int]:
        """Who is given out now."""
        return self.back([], now_ns, most=most)

    def back(self, operators: list[int], now_ns: int, most: int = 64, **left: int) -> list[int]:
        """Operators come back, with so much left or sent: ``of_3=5``; who is given out next."""
        board, returned, place = self.board, 0, 0
        for name, count in left.items():
            board.operators[int(name.removeprefix("of_"))].seen = count
        while place < len(operators):
            leader = operators[place]
            board.returned[returned] = leader
            returned += 1
            place += 1 + len(board.behind[leader]) * board.operators[leader].leading
        turns = []
        for turn in board.given[: self.dispatcher.exchange(returned, now_ns, most)]:
            turns += [turn.operator, *(board.behind[turn.operator] if turn.leads else ())]
        return turns

    def known_as_short(self) -> None:
        """Workers have had every operator for a tenth of a millisecond."""
        self.board.columns["span_ns"] = 100_000


# -- passes --------------------------------------------------------------------------------------


def test_a_pass_goes_round_by_its_patience() -> None:
    driver = Driver(chains(1))
    driver.patient()
    now_ns = 1_000 * MS
    for _ in range(3):
        assert driver.take(now_ns) == [0, 1, 2]
        assert driver.back([0, 1, 2], now_ns) == []  # it waits for its patience
        assert driver.take(now_ns + 10 * MS - 1) == []
        now_ns += 10 * MS


def test_without_the_rule_there_are_no_passes() -> None:
    assert Driver(chains(1), rules=replace(ALL, passes=False)).take(MS) == [0]


def test_a_policy_that_puts_those_behind_after_the_first_has_no_passes() -> None:
    assert Driver(chains(1), RoundRobin()).take(MS) == [0]


def test_what_is_behind_an_operator_is_left_to_workers_that_have_nothing_else() -> None:
    assert Driver(chains(1), workers=2, rules=replace(ALL, staying=False)).take(MS) == [0, 1, 2]
    driver = Driver(chains(2), workers=2)
    driver.board.head.sleeping = 2
    assert driver.take(MS) == [0]
    driver = Driver(chains(2), workers=2)
    driver.board.head.sleeping = 2
    driver.known_as_short()
    assert driver.take(MS) == [0, 1, 2, 3, 4, 5]  # to wake somebody would cost more


def test_what_has_work_already_is_not_given_out_with_the_one_before() -> None:
    driver = Driver(chains(1))
    driver.dispatcher.tell(2, 9, MS)
    assert driver.take(MS) == [2]
    driver.dispatcher.tell(2, 9, MS)
    assert driver.take(MS) == [0]


def test_operators_come_back_from_a_pass_with_nothing_or_with_what_stopped_them() -> None:
    driver = Driver(chains(1))
    driver.take(MS)
    assert driver.back([0, 1, 2], MS, of_1=300) == [1, 2]
    assert driver.board.operators[0].look_ns < NEVER_NS


def test_a_bounded_pass_has_the_limits_and_thresholds_that_each_has_by_itself() -> None:
    policy = StateBased(
        Adaptation(ThresholdRange(50.0, 90.0, 0.0), ThresholdRange(5.0 * MS, 6.0 * MS, 0.0)), least_events=20
    )
    for bounded, allowed in ((False, LIMIT), (True, 20)):
        driver = Driver(chains(1), policy, replace(ALL, bounded=bounded))
        driver.seen.cost_ns = np.full(3, 1.0 * MS)
        driver.dispatcher.plan(2, driver.seen)
        assert driver.take(6 * MS) == [0, 1, 2]
        assert driver.board.operators[1].allowed == allowed
        driver.board.operators[1].last_turn_ns = 6 * MS
        assert driver.dispatcher.is_worth(1, 19, 6 * MS) is not bounded
        assert driver.dispatcher.is_worth(1, 20, 6 * MS)  # a turn's worth


# -- together ------------------------------------------------------------------------------------


def test_short_sources_are_taken_several_at_once_and_come_back_together() -> None:
    driver = Driver(chains(8), workers=2)
    driver.known_as_short()
    turns = driver.take(MS)
    assert len(turns) == 18  # six at the most
    assert len(driver.take(MS)) == 6
    driver.back(turns, MS, most=0)
    assert driver.board.head.held == 6


def test_nothing_waits_behind_a_source_that_takes_long() -> None:
    driver = Driver(chains(3))
    assert len(driver.take(MS)) == 3  # how long it takes is not known
    driver.board.columns["span_ns"] = 2 * MS
    assert len(driver.take(MS)) == 6  # three would take 6 ms
    assert len(Driver(chains(3), rules=replace(ALL, together=False)).take(MS)) == 3


def test_sources_that_are_nearly_due_are_read_with_one_that_is() -> None:
    for rules, turns in ((ALL, 6), (replace(ALL, together=False), 3)):
        driver = Driver(chains(2), rules=rules)
        driver.patient()
        if not rules.together:
            driver.board.head.slack_ns = 0
        one, other = driver.take(1_000 * MS), driver.take(1_000 * MS)
        driver.back(one, 1_000 * MS)
        driver.back(other, 1_000 * MS)
        driver.known_as_short()
        driver.board.operators[other[0]].look_ns += 2 * MS
        assert driver.take(1_010 * MS - 1) == []
        assert len(driver.take(1_010 * MS)) == turns  # patience is 10 ms, slack a quarter of it


# -- patience ------------------------------------------------------------------------------------


def test_beats_worked_by_hand() -> None:
    driver = Driver(chains(1))
    head, row = driver.board.head, driver.board.operators[0]
    head.epoch_ns, head.patience_ns, head.beat_ns = 1_000, 8_000, 0

    def read(given_ns: int, now_ns: int) -> int:
        assert driver.take(max(now_ns, row.look_ns if row.look_ns < NEVER_NS else 0)) == [0, 1, 2]
        row.given_ns = given_ns
        driver.back([0, 1, 2], now_ns, most=0)
        return int(row.look_ns)

    assert read(100_000, 101_000) == 109_000  # the first beat
    assert read(102_000, 103_000) == 109_000  # the same: 7 µs later
    assert read(105_001, 106_000) == 117_000  # less than half its patience before the beat: the next one
    assert read(105_001, 110_000) == 117_000  # the same, after the beat
    assert head.beat_ns == 117_000
    assert read(500_000, 500_000) == 508_000  # nothing has come for long: beats begin anew
    head.patience_ns = 2_000
    assert read(500_500, 501_000) == 503_000  # less patience than when the beat was set
    head.patience_ns = 1_000
    assert read(500_000, 500_000) == 501_000  # no patience: an epoch


def test_one_that_has_missed_its_beat_is_let_in_at_once() -> None:
    driver = Driver(chains(1))
    driver.board.head.patience_ns = 8 * MS
    driver.take(MS)
    driver.board.head.beat_ns = 9 * MS
    assert driver.back([0, 1, 2], 10 * MS) == [0, 1, 2]


def test_sources_that_come_back_one_by_one_are_read_together() -> None:
    driver = Driver(chains(3))
    driver.patient()
    driver.known_as_short()
    turns = driver.take(1_000 * MS)
    for number, after_ms in enumerate((1, 4, 7)):  # patience is 10 ms
        assert driver.back(turns[3 * number : 3 * number + 3], (1_000 + after_ms) * MS) == []
    assert driver.take(1_011 * MS - 1) == []
    assert len(driver.take(1_011 * MS)) == 9


def test_a_source_waits_longer_the_less_time_workers_have_and_without_patience_for_an_epoch() -> None:
    driver = Driver(chains(4))
    waits = []
    for busy in (1.0, 0.375, 0.8, 0.01):
        driver.seen._busy = busy
        driver.dispatcher.plan(MS, driver.seen)
        waits.append(driver.board.head.patience_ns)
    assert waits == [10 * MS, 5 * MS, 10 * MS, MS]  # of 0.8, a quarter is lost by waiting for others
    driver = Driver(chains(1), rules=replace(ALL, patience=False))
    assert driver.board.head.patience_ns == MS
    driver.back(driver.take(MS), MS)
    assert driver.board.operators[0].look_ns == 2 * MS


def test_a_beat_is_no_longer_than_a_hundred_turns_of_every_operator() -> None:
    beats = [
        Driver(chains(count), workers=workers).board.head.patience_ns
        for count, workers in ((1, 1), (2, 1), (2, 2), (1, 3), (100, 2))
    ]
    assert beats == [3 * MS, 6 * MS, 3 * MS, MS, 10 * MS]  # three operators a chain, ten microseconds each


def test_a_source_that_is_seldom_due_waits_for_its_event() -> None:
    driver = Driver(chains(1))
    driver.seen.rate_per_ns = np.zeros(3)
    driver.dispatcher.plan(2, driver.seen)
    driver.take(MS)
    driver.board.operators[0].due_ns = 900 * MS
    driver.back([0, 1, 2], MS)
    assert driver.take(900 * MS - 1) == []
    assert driver.dispatcher.wake_ns(MS) == 900 * MS
    assert driver.take(900 * MS) == [0, 1, 2]


# -- staying -------------------------------------------------------------------------------------


def test_a_source_stays_with_its_worker_if_there_are_workers_for_the_rest() -> None:
    driver = Driver(chains(1), workers=2)
    assert driver.take(MS) == [0]  # the other worker has nothing else
    assert driver.back([0], MS, of_0=LIMIT, of_1=100) == [0]
    assert not driver.dispatcher.stays(0)  # its reader has not begun
    assert driver.take(MS) == [1, 2]
    assert driver.dispatcher.stays(0)
    driver = Driver(chains(1), workers=2, rules=replace(ALL, staying=False, passes=False))
    driver.take(MS)
    assert driver.back([0], MS, of_0=LIMIT, of_1=100) == [1]


def test_however_short_a_source_that_stays_is_given_out_without_those_behind_it() -> None:
    driver = Driver(chains(1), workers=2)
    driver.known_as_short()
    assert driver.take(MS) == [0]


def test_a_source_whose_worker_has_its_readers_too_does_not_go_on_before_them() -> None:
    driver = Driver(chains(1), workers=2)
    driver.board.operators[1].running = 1
    assert driver.dispatcher.stays(0)
    driver.board.operators[0].leading = 1
    assert not driver.dispatcher.stays(0)


def test_where_there_are_as_many_sources_as_workers_none_stays() -> None:
    driver = Driver(chains(2), workers=2)
    driver.board.operators[1].running = 1
    assert not driver.dispatcher.stays(0)


# -- alone ---------------------------------------------------------------------------------------


def test_short_turns_are_taken_by_one_worker_and_long_ones_by_several() -> None:
    topology = Topology(((), ()), ("source", "source"))
    for cost_ns, turns in ((1.0, [1, 0]), (1_000.0, [1])):
        driver = Driver(topology, rules=Rules(together=False), workers=2, cost_ns=cost_ns)
        driver.take(MS, most=0)
        driver.dispatcher.tell(0, LIMIT, MS)
        driver.dispatcher.tell(1, LIMIT, MS)
        driver.dispatcher.plan(MS, driver.seen)
        assert driver.take(MS) == turns
        assert driver.take(MS) == ([] if cost_ns == 1.0 else [0])


def test_what_is_known_to_take_long_brings_the_second_worker_back() -> None:
    topology = Topology(((), (), ()), ("map", "map", "map"))
    driver = Driver(topology, rules=Rules(), workers=2, cost_ns=1_000.0)
    driver.dispatcher.tell(0, 1, MS)
    driver.dispatcher.plan(MS, driver.seen)
    assert driver.take(MS) == [0]
    driver.dispatcher.tell(1, 1, MS)
    assert driver.take(MS) == []  # short turns wait for the worker that takes them all
    driver.dispatcher.tell(2, 101, MS)
    assert driver.take(MS) == [1]


# -- what was put off, and the board -------------------------------------------------------------


def test_work_that_is_not_worth_a_turn_yet_is_let_in_when_it_has_waited() -> None:
    policy = StateBased(
        Adaptation(ThresholdRange(100.0, 200.0, 0.0), ThresholdRange(5.0 * MS, 6.0 * MS, 0.0))
    )
    driver = Driver(chains(1), policy)
    driver.board.operators[1].last_turn_ns = 10 * MS
    driver.dispatcher.tell(1, 3, 10 * MS)
    driver.board.operators[0].look_ns = NEVER_NS
    assert driver.take(10 * MS) == []
    assert driver.dispatcher.wake_ns(10 * MS) == 11 * MS  # an epoch later it may be worth it
    assert driver.take(15 * MS) == []
    assert driver.take(15 * MS + 1) == [1, 2]
    assert driver.dispatcher.wake_ns(16 * MS) > 17 * MS


class Seeing(MinLatency):
    """Remembers what it was shown."""

    def plan(self, snapshot: Snapshot, state: object) -> object:  # type: ignore[override]
        shown.append(snapshot)
        return super().plan(snapshot, state)  # type: ignore[arg-type]


shown: list[Snapshot] = []


def test_a_policy_sees_nothing_pending_of_who_may_not_run() -> None:
    driver = Driver(chains(1), Seeing())  # type: ignore[arg-type]
    driver.dispatcher.tell(1, 7, MS)
    driver.dispatcher.tell(2, 8, MS)
    driver.dispatcher.hold(2)
    driver.dispatcher.plan(2 * MS, driver.seen)
    assert shown[-1].pending.tolist() == [0, 7, 0]
    assert driver.take(2 * MS)[0] == 1
    driver.dispatcher.release(2, 8, 2 * MS)
    assert driver.take(2 * MS) == [2]


def test_plans_are_as_far_apart_as_they_cost_and_five_epochs_at_the_most() -> None:
    dispatcher = Driver(chains(1)).dispatcher
    for took_ns, after_ms in ((0, 1), (20_000, 2), (10 * MS, 5)):
        dispatcher.await_plan(5 * MS, took_ns)
        assert dispatcher.plan_due_ns == (5 + after_ms) * MS


@pytest.mark.parametrize("operators", [1, 300])
def test_a_board_is_read_by_name_on_both_sides(operators: int) -> None:
    topology = Topology(((),) * operators, ("map",) * operators)
    driver = Driver(topology)
    driver.dispatcher.tell(operators - 1, 5, MS)
    assert driver.board.columns["pending"].sum() == driver.board.operators[-1].pending == 5
    assert driver.take(MS) == [operators - 1]
