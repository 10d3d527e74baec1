"""The benchmark of degrees in the small: what it measures is what it says."""

from __future__ import annotations

import numpy as np
import pytest

from lab.bench.degree.bounds import run_bounds, served
from lab.bench.degree.runs import (
    REQUIREMENT,
    Scenario,
    arrivals_settings,
    controllers,
    least_fixed,
    load_of,
    measure_scenario,
    run_one,
)
from lab.sim.queue_lengths import QueueLengths
from penstock.scaling.queueing import within_limit_mmc


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return measure_scenario(0.3)


def test_the_profile_is_scaled_to_the_papers_percentile_and_grows_with_the_square(scenario: Scenario) -> None:
    profile = scenario.profile
    assert profile.service_s(5.0) == pytest.approx(1.25)
    assert profile.service_s(5.0) / profile.service_s(2.5) == pytest.approx(4.0, rel=0.25)
    assert profile.selection_s == pytest.approx(892.0, abs=8.0)


def test_every_controller_runs_and_says_what_it_came_to(scenario: Scenario) -> None:
    load = load_of(arrivals_settings(False, 1500.0, 1), scenario.comparison_s)
    for name, make in controllers(scenario).items():
        found = run_one(load, make()).summary()
        assert 0.0 <= found["share_within_limit"] <= found["share_within_limit_exits_only"] <= 1.0, name  # type: ignore[operator]
        assert found["mean_instances_alive"] >= found["mean_degree"], name  # type: ignore[operator]
        assert found["most_selections_open"] > 4_000, name  # type: ignore[operator]


def test_the_least_constant_degree_holds_and_one_less_does_not(scenario: Scenario) -> None:
    load = load_of(arrivals_settings(False, 2500.0, 2), scenario.comparison_s)
    least, tried = least_fixed(load)
    for degree, found in tried.items():
        held = found.queue.share_within(REQUIREMENT.limit) >= REQUIREMENT.probability
        assert held == (degree >= least)


def test_bounded_distributions_keep_the_limit_with_the_papers_degrees() -> None:
    for found in run_bounds(REQUIREMENT, 5_000).values():
        assert found.degree == found.paper
        assert found.queue.share_within(REQUIREMENT.limit) >= REQUIREMENT.probability


def test_first_come_first_served_is_the_queue_of_the_formula() -> None:
    random = np.random.default_rng(7)
    arrived = np.cumsum(random.exponential(1 / 3.0, 30_000))
    left = served(arrived, random.exponential(1.0, 30_000), 4)
    found = QueueLengths.of(arrived, left, float(arrived[-1]))
    for limit in (2, 5, 10):
        assert found.share_within(limit) == pytest.approx(within_limit_mmc(3.0, 4, limit), abs=0.03)
