"""Arrival processes: how many events come when."""

from __future__ import annotations

import numpy as np
import pytest

from lab.sim.arrivals import Arrivals, Frames, Poisson, Regular, Steps, morning
from penstock.workloads.traffic.settings import Profile, TrafficSettings
from penstock.workloads.traffic.simulation import TrafficSimulation


def groups(process: Arrivals, until_ns: int) -> list[tuple[int, int]]:
    times, counts = process.groups(until_ns, np.random.default_rng(3))
    return list(zip(times.tolist(), counts.tolist(), strict=True))


def test_a_regular_rate_brings_what_is_due() -> None:
    # 2.5 events a millisecond: 2, then 3, by turns
    assert groups(Regular(2_500.0), 4_000_000) == [(0, 2), (1_000_000, 3), (2_000_000, 2), (3_000_000, 3)]


def test_moments_without_events_are_left_out() -> None:
    assert groups(Regular(500.0), 4_000_000) == [(1_000_000, 1), (3_000_000, 1)]


def test_steps_change_the_rate_at_their_times() -> None:
    steps = Steps(((0, 1_000.0), (2_000_000, 5_000.0)))
    assert groups(steps, 4_000_000) == [(0, 1), (1_000_000, 1), (2_000_000, 5), (3_000_000, 5)]
    assert groups(steps, 1_000_000) == [(0, 1)]


def test_frames_start_again_at_their_end() -> None:
    frames = Frames([7, 9], period_ns=10, phase_ns=5)
    assert groups(frames, 40) == [(5, 7), (15, 9), (25, 7), (35, 9)]


def test_poisson_arrivals_are_single_ordered_and_as_many_as_the_rate_says() -> None:
    times, counts = Poisson(10_000.0).groups(10**9, np.random.default_rng(1))
    assert (counts == 1).all()
    assert (np.diff(times) >= 0).all()
    assert len(times) == pytest.approx(10_000, abs=300)
    gaps = np.diff(times)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05)


@pytest.mark.parametrize(
    "process", [Regular(1_000.0), Poisson(1_000.0), Steps(((0, 1_000.0),)), Frames([10], 10_000_000)]
)
def test_scaling_scales_the_number_of_events(process: Arrivals) -> None:
    _, counts = process.groups(10**9, np.random.default_rng(0))
    _, doubled = process.scaled(2.0).groups(10**9, np.random.default_rng(0))
    assert doubled.sum() == pytest.approx(2 * counts.sum(), rel=0.1)


def test_the_morning_is_that_of_the_traffic_workload() -> None:
    settings = TrafficSettings(cars=100, roads=2, profile=Profile.MORNING, morning_s=4.0)
    traffic = TrafficSimulation(settings)
    assert morning(100, 4.0).tolist() == [traffic.cars_in(frame) for frame in range(100)]
