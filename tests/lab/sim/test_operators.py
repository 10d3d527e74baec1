"""Costs, selectivity and graphs."""

from __future__ import annotations

import numpy as np
import pytest

from lab.sim.distributions import Constant
from lab.sim.operators import COLD_AFTER_NS, Cost, PerGroup, Ratio, SimGraph, SimulatedWindow
from tests.lab.sim.graphs import At, line, operator

RANDOM = np.random.default_rng(0)


def test_a_turn_costs_its_fixed_part_its_events_and_their_sorting() -> None:
    cost = Cost(Constant(2.0), turn_ns=100.0, sort_ns=1.0)
    assert cost.of(8, RANDOM) == 100 + 16 + 8 * 3
    assert cost.of(1, RANDOM) == 102
    assert cost.of(0, RANDOM) == 100
    assert cost.mean_ns(8) == 140.0


def test_hand_overs_cost_the_fixed_part_each() -> None:
    cost = Cost(turn_ns=10.0, batch=4)
    assert [cost.handovers(count) for count in (0, 1, 4, 5, 9)] == [1, 1, 1, 2, 3]
    assert cost.of(9, RANDOM) == 30


def test_jitter_keeps_the_mean() -> None:
    cost, random = Cost(turn_ns=1_000.0, jitter=0.3), np.random.default_rng(2)
    drawn = np.array([cost.of(1, random) for _ in range(5_000)])
    assert drawn.mean() == pytest.approx(1_000, rel=0.02)
    assert drawn.std() > 200


def test_a_ratio_adds_up_fractions_and_lets_markers_pass() -> None:
    emit = Ratio(0.4).emitter()
    assert emit([(10, 1, False)]) == []
    assert emit([(20, 1, True)]) == [(20, 0, True)]  # 0.8 is no event yet, but the marker goes on
    assert emit([(30, 3, False), (40, 2, False)]) == [(40, 2, False)]  # 0.8 + 2.0


def test_a_window_emits_when_a_later_event_closes_it() -> None:
    emit = SimulatedWindow(period_ns=100, groups=5).emitter()
    assert emit([(10, 3, False), (90, 2, False)]) == []
    assert emit([(99, 1, True)]) == [(99, 0, True)]
    assert emit([(100, 1, False)]) == [(100, 5, False)]
    assert emit([(350, 1, True)]) == [(350, 5, True)]


def test_a_window_counts_what_it_closes() -> None:
    closed = SimulatedWindow(period_ns=100, groups=5, closing_ns=1.0).closings()
    assert closed([(10, 3, False), (90, 2, False)]) == 0
    assert closed([(100, 1, False), (150, 1, False), (210, 1, False)]) == 2
    assert closed([(205, 1, False)]) == 0  # late


def test_a_window_that_tells_the_time_sends_something_with_every_turn() -> None:
    emit = SimulatedWindow(period_ns=100, groups=5, tells_time=True).emitter()
    assert emit([(10, 3, False), (90, 2, False)]) == [(90, 0, False)]
    assert emit([(100, 1, False)]) == [(100, 5, False)]
    assert emit([]) == []


def test_an_operator_that_was_idle_for_long_is_cold() -> None:
    cost = Cost(Constant(2.0), turn_ns=100.0, cold_ns=40.0)
    idle = [0, COLD_AFTER_NS // 2, COLD_AFTER_NS, 5 * COLD_AFTER_NS]
    assert [cost.of(8, RANDOM, idle_ns) for idle_ns in idle] == [116, 136, 156, 156]


def test_one_result_per_group() -> None:
    assert PerGroup(2).emitter()([(10, 300, True), (20, 0, True)]) == [(10, 2, True), (20, 0, True)]


def test_a_graph_knows_its_ends_and_who_leads_to_them() -> None:
    operators = tuple(operator(name, 1.0) for name in "abcd")
    graph = SimGraph(operators, ((1, 2), (3,), (), ()), {0: At(((0, 1),))})
    assert graph.ends() == (2, 3)
    assert graph.ends_reached() == ((2, 3), (3,), (2,), (3,))
    assert graph.topology.kinds == ("source", "b", "sink", "sink")


def test_copies_stand_beside_one_another() -> None:
    graph = line(1.0, 2.0, arrivals=At(((0, 1),))).repeated(2)
    assert graph.children == ((1,), (), (3,), ())
    assert sorted(graph.arrivals) == [0, 2]
    assert graph.operators[3].name == "op1_1"


def test_readers_need_larger_numbers() -> None:
    with pytest.raises(ValueError, match="larger numbers"):
        SimGraph((operator("a", 1.0), operator("b", 1.0)), ((), (0,)), {})
