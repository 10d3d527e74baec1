"""The virtual clock."""

from __future__ import annotations

import pytest

from lab.sim.clock import SimulatedClock


def test_actions_happen_in_order_of_time_and_then_of_asking() -> None:
    clock, seen = SimulatedClock(), []
    for time_ns, name in ((30, "c"), (10, "a"), (10, "b"), (40, "never")):
        clock.at(time_ns, seen.append, name)
    clock.run(30)
    assert seen == ["a", "b", "c"]
    assert clock.now_ns == 30


def test_an_action_may_ask_for_another_at_the_same_time() -> None:
    clock, seen = SimulatedClock(), []
    clock.at(5, lambda: clock.at(5, seen.append, clock.now_ns))
    clock.run(5)
    assert seen == [5]


def test_time_does_not_run_backwards() -> None:
    clock = SimulatedClock()
    clock.run(10)
    with pytest.raises(ValueError, match="forwards"):
        clock.at(9, print)
