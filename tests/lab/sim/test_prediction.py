"""Predicted orders of policies."""

from __future__ import annotations

import pytest

from lab.sim.arrivals import Regular
from lab.sim.distributions import Constant
from lab.sim.machine import Machine
from lab.sim.operators import Cost, SimGraph, SimOperator
from lab.sim.prediction import (
    THREADS,
    Prediction,
    agreement,
    highest,
    order_by_latency,
    order_by_rate,
    ordered_pairs,
)
from lab.sim.scheduled import Run


def pipeline() -> SimGraph:
    """Two operators of 10 µs an event at 20,000 events a second: two cores could do five times as much."""
    cost = Cost(Constant(10_000.0), turn_ns=1_000.0)
    return SimGraph(
        (SimOperator("a", cost), SimOperator("b", cost)), ((1,), ()), {0: Regular(20_000.0, 1_000_000)}
    )


def test_the_highest_value_is_found_above_and_below_one() -> None:
    assert highest(lambda value: value <= 5.3, 16.0, 0.01) == pytest.approx(5.3, rel=0.01)
    assert highest(lambda value: value <= 0.3, 16.0, 0.01) == pytest.approx(0.3, rel=0.01)
    assert highest(lambda value: True, 16.0) == 16.0
    assert highest(lambda value: False, 16.0) == 0.0


def test_policies_are_ordered_by_what_they_sustain() -> None:
    # a thread per operator on two cores that pays 400 µs to wake up does less than workers that go on
    machine = Machine(2, context_switch_ns=400_000)
    run = Run(0.3, drain_s=0.2, mark_every_ns=5_000_000)
    found = order_by_rate(pipeline(), ["congestion", THREADS], machine, 2, run, limit_ms=20.0, accuracy=0.05)
    assert {one.policy for one in found} == {"congestion", THREADS}
    assert found[0].figure >= found[1].figure
    assert 2.0 < found[0].figure <= 5.2


def test_policies_are_ordered_by_latency() -> None:
    machine = Machine(2, context_switch_ns=100_000)
    run = Run(0.1, mark_every_ns=5_000_000)
    found = order_by_latency(pipeline(), ["first_come", "congestion", THREADS], machine, 2, run)
    assert [one.figure for one in found] == sorted(one.figure for one in found)


def test_agreement_counts_pairs_that_have_an_order_in_both() -> None:
    predicted = [Prediction("a", 10.0), Prediction("b", 8.0), Prediction("c", 7.9)]
    assert agreement(predicted, {"a": 100.0, "b": 50.0, "c": 10.0}) == 1.0  # b and c are too close to tell
    assert agreement(predicted, {"a": 100.0, "b": 200.0, "c": 10.0}) == 0.5
    assert agreement(predicted, {"a": 100.0}) == 1.0


def test_pairs_that_have_an_order_are_named_with_whether_it_is_the_same() -> None:
    predicted = [Prediction("a", 10.0), Prediction("b", 8.0), Prediction("c", 7.9)]
    measured = {"a": 100.0, "b": 200.0, "c": 10.0}
    assert ordered_pairs(predicted, measured) == {("a", "b"): False, ("a", "c"): True}
