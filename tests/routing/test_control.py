"""Planned, requested, observed: when a plan is carried out."""

from __future__ import annotations

import random

import pytest

from penstock.query.errors import PenstockError
from penstock.routing.control import LoadHistory, RoutingControl
from penstock.routing.load import MeasuredLoad

SKEWED = MeasuredLoad((0, 0, 1, 1), 2, (60, 20, 10, 10), (80.0, 20.0))


def test_a_plan_waits_until_moves_have_cooled_down() -> None:
    control, memory = RoutingControl(cooldown=2), LoadHistory()
    moved = []
    for _ in range(3):
        decision, memory = control.look([SKEWED], memory)
        assert decision.planned.moves
        assert decision.lit == pytest.approx(0.6)
        moved.append(len(decision.moves))
    assert moved == [0, 0, 1]
    assert memory.looks == 0
    assert memory.requested == 1


def test_what_is_requested_is_the_planned_route_or_the_one_that_is() -> None:
    held, _ = RoutingControl(cooldown=5).look([SKEWED], LoadHistory())
    assert held.requested == SKEWED.route != held.planned.route
    moved, _ = RoutingControl(cooldown=0).look([SKEWED], LoadHistory())
    assert moved.requested == moved.planned.route


def test_what_gains_too_little_is_left_alone() -> None:
    decision, _ = RoutingControl(cooldown=0, least_gain=2.0).look([SKEWED], LoadHistory())
    assert decision.planned.moves
    assert decision.moves == ()


def test_an_idle_look_says_nothing() -> None:
    idle = MeasuredLoad((0, 1), 2, (0, 0), (0.0, 0.0))
    memory = LoadHistory((0.7, 0.3), 5)
    decision, after = RoutingControl(cooldown=0).look([idle], memory)
    assert decision.moves == ()
    assert after == memory


def test_noise_alone_moves_nothing_once_it_has_settled() -> None:
    chance = random.Random(3)
    weights = sorted(min(chance.paretovariate(1.2), 8.0) for _ in range(64))
    control, memory = RoutingControl(), LoadHistory()
    route = tuple(partition // 16 for partition in range(64))
    moves = []
    for _ in range(200):
        rows = tuple(int(100 * weight * chance.uniform(0.9, 1.1)) for weight in weights)
        spent = [0.0] * 4
        for partition, task in enumerate(route):
            spent[task] += rows[partition]
        decision, memory = control.look([MeasuredLoad(route, 4, rows, tuple(spent))], memory)
        route = decision.requested
        moves.append(len(decision.moves))
    assert sum(moves) >= 1
    assert sum(moves[20:]) == 0


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(PenstockError, match="smoothing"):
        RoutingControl(smoothing=0.0)
    with pytest.raises(PenstockError, match="cooldown"):
        RoutingControl(cooldown=-1)
