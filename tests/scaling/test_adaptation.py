"""The fleet: what is planned, requested and observed, and who is reused; and the CPU rule."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.baselines.cpu_rule import CpuHistory, CpuRule
from penstock.query.errors import PenstockError
from penstock.scaling.adaptation import Act, Command, Fleet, InstancePhase

TH = 60.0


def acts(commands: tuple[Command, ...]) -> list[tuple[str, int]]:
    return [(command.act.value, command.instance) for command in commands]


def degrees(fleet: Fleet) -> tuple[int, int, int]:
    return fleet.planned, fleet.requested, fleet.observed


def test_more_instances_are_there_a_horizon_later() -> None:
    fleet, commands = Fleet.of(2).request(4, 100.0, TH)
    assert acts(commands) == [("deploy", 2), ("deploy", 3)]
    assert degrees(fleet) == (4, 4, 2)
    fleet, commands = fleet.advance(159.0)
    assert (acts(commands), fleet.observed) == ([], 2)
    fleet, commands = fleet.advance(160.0)
    assert acts(commands) == [("register", 2), ("register", 3)]
    assert degrees(fleet) == (4, 4, 4)


def test_fewer_leave_a_horizon_later_and_shut_down_when_drained() -> None:
    fleet, commands = Fleet.of(3).request(1, 0.0, TH)
    assert commands == ()
    assert degrees(fleet) == (1, 1, 3)
    fleet, commands = fleet.advance(TH)
    assert sorted(acts(commands)) == [("unregister", 1), ("unregister", 2)]
    assert (degrees(fleet), fleet.alive) == ((1, 1, 1), 3)
    fleet, commands = fleet.advance(200.0, drained={2})
    assert acts(commands) == [("shut_down", 2)]
    assert fleet.alive == 2


def test_draining_instances_are_reused_at_once_and_only_the_rest_is_deployed() -> None:
    fleet, _ = Fleet.of(3).request(2, 0.0, TH)
    fleet, _ = fleet.advance(TH)
    fleet, commands = fleet.request(4, 70.0, TH)
    assert acts(commands) == [("register", 2), ("deploy", 3)]
    assert degrees(fleet) == (4, 4, 3)


def test_who_has_not_left_yet_stays_and_who_is_not_there_yet_need_not_come() -> None:
    fleet, _ = Fleet.of(3).request(2, 0.0, TH)
    fleet, commands = fleet.request(3, 30.0, TH)
    assert commands == ()
    fleet, commands = fleet.request(5, 40.0, TH)
    assert acts(commands) == [("deploy", 3), ("deploy", 4)]
    fleet, commands = fleet.request(4, 50.0, TH)
    assert acts(commands) == [("shut_down", 4)]
    assert degrees(fleet) == (4, 4, 3)
    assert fleet.next_due_s == 100.0


def test_a_fleet_without_instances_is_refused() -> None:
    with pytest.raises(PenstockError, match="at least one"):
        Fleet.of(0)
    with pytest.raises(PenstockError, match="at least one"):
        Fleet.of(2).request(0, 0.0, TH)


@settings(max_examples=40)
@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(1, 9), st.floats(0.0, 100.0), st.sets(st.integers(0, 30))), max_size=25),
)
def test_whatever_is_asked_for_some_are_registered_and_the_request_is_the_plan(
    first: int, steps: list[tuple[int, float, set[int]]]
) -> None:
    fleet, now = Fleet.of(first), 0.0
    open_for: dict[int, bool] = dict.fromkeys(fleet.registered, True)
    for degree, waits, drained in steps:
        now += waits
        fleet, commands = fleet.advance(now, drained)
        for more in (commands, None):
            if more is None:
                fleet, more = fleet.request(degree, now, TH)
                assert degrees(fleet)[:2] == (degree, degree)
            for command in more:
                if command.act is Act.REGISTER:
                    open_for[command.instance] = True
                elif command.act is Act.UNREGISTER:
                    open_for[command.instance] = False
        assert fleet.observed >= 1
        assert set(fleet.registered) == {number for number, is_open in open_for.items() if is_open}
        assert all(
            one.phase is not InstancePhase.DRAINING or not open_for[one.number] for one in fleet.instances
        )
    fleet, _ = fleet.advance(now + TH)
    assert fleet.observed == fleet.planned


def test_the_cpu_rule_needs_two_frames_that_agree() -> None:
    rule, history, degree = CpuRule(), CpuHistory(), 4
    trace = []
    for load in (0.8, 0.6, 0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.4, 0.6):
        degree, history = rule.plan(degree, [load] * degree, history)
        trace.append(degree)
    assert trace == [4, 4, 4, 5, 5, 5, 4, 4, 3, 3]


def test_the_cpu_rule_averages_over_instances_and_keeps_one() -> None:
    rule = CpuRule()
    _, history = rule.plan(2, [1.0, 0.0], CpuHistory())
    assert rule.plan(2, [1.0, 0.1], history)[0] == 2
    _, history = rule.plan(1, [0.0], CpuHistory())
    assert rule.plan(1, [0.0], history)[0] == 1
