"""Slices, classification, forecasts, profiles and the planner that joins them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from penstock.query.errors import PenstockError
from penstock.scaling.classification import classify
from penstock.scaling.degree import Requirement
from penstock.scaling.distributions import (
    Distribution,
    Family,
    deterministic,
    exponential,
    normal,
    pareto,
    uniform,
)
from penstock.scaling.forecast import Naive, ObservedRate, RateLine, Seasonal, Trend
from penstock.scaling.planner import QueueingPlanner, RateHistory
from penstock.scaling.profiles import OperatorProfile, measure_profile
from penstock.scaling.slices import ArrivalLog, Slicing, TimeSlice


@pytest.mark.parametrize(
    "drawn",
    [exponential(0.2), deterministic(0.2), normal(1.0, 0.1), uniform(0.1, 0.2), pareto(0.05, 2.0)],
    ids=lambda drawn: drawn.family.value,
)
@pytest.mark.parametrize("count", [400, 1600])
def test_every_family_is_recognised(drawn: Distribution, count: int) -> None:
    for seed in range(6):
        found = classify(drawn.sample(count, seed))
        assert found.distribution.family is drawn.family
        assert found.distribution.parameters == pytest.approx(drawn.parameters, rel=0.35)


def test_a_good_fit_has_a_p_value_that_a_bad_one_has_not() -> None:
    good = [classify(exponential(0.2).sample(400, seed)).p_value for seed in range(10)]
    mixed = np.concatenate((normal(1.0, 0.05).sample(200, 1), normal(3.0, 0.05).sample(200, 2)))
    assert np.mean(np.array(good) > 0.05) > 0.8
    assert classify(mixed).p_value < 0.001


@pytest.mark.parametrize(
    ("drawn", "same"),
    [
        (exponential(0.2), stats.expon(scale=0.2)),
        (normal(1.0, 0.1), stats.norm(1.0, 0.1)),
        (uniform(0.1, 0.2), stats.uniform(0.1, 0.1)),
        (pareto(0.05, 2.0), stats.pareto(2.0, scale=0.05)),
    ],
    ids=["exponential", "normal", "uniform", "pareto"],
)
def test_closed_forms_are_scipys(drawn: Distribution, same: Any) -> None:
    times, shares = np.linspace(0.0, 2.0, 101), np.linspace(0.01, 0.99, 50)
    assert drawn.cdf(times) == pytest.approx(same.cdf(times))
    assert drawn.quantiles(shares) == pytest.approx(same.ppf(shares))
    measured = drawn.sample(200, 1)
    fitted = classify(measured)
    expected = stats.ks_1samp(measured, fitted.distribution.cdf).statistic
    assert fitted.distance == pytest.approx(expected)


def test_too_few_or_negative_times_are_refused() -> None:
    for times in (np.ones(3), np.array([1.0] * 10 + [-1.0]), np.zeros(50)):
        with pytest.raises(PenstockError, match="cannot classify"):
            classify(times)


def test_slices_of_arrivals_do_not_depend_on_how_arrivals_are_given() -> None:
    times = np.cumsum(exponential(0.2).sample(1000, 4))
    whole = ArrivalLog(Slicing(arrivals=90)).add(times, times[-1])
    log = ArrivalLog(Slicing(arrivals=90))
    parts = [found for part in np.array_split(times, 37) if len(part) for found in log.add(part, part[-1])]
    assert [found.end_s for found in parts] == [found.end_s for found in whole]
    assert all((a.between_s == b.between_s).all() for a, b in zip(parts, whole, strict=True))
    assert all(len(found.between_s) == 90 for found in whole)
    assert len(whole) == 11


def test_slices_of_time_overlap_and_count_from_the_arrival_before() -> None:
    log = ArrivalLog(Slicing(slength_s=4.0, sfreq_s=2.0))
    found = log.add(np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.5, 6.0]), 6.0)
    assert [(one.start_s, one.end_s) for one in found] == [(-2.0, 2.0), (0.0, 4.0), (2.0, 6.0)]
    assert [one.between_s.tolist() for one in found] == [[1.0, 1.0], [1.0] * 4, [1.0, 1.0, 1.5, 0.5]]


@pytest.mark.parametrize(
    "wrong", [{}, {"arrivals": 0}, {"slength_s": 1.0}, {"arrivals": 5, "slength_s": 1.0, "sfreq_s": 1.0}]
)
def test_slicings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(PenstockError):
        Slicing(**wrong)  # type: ignore[arg-type]


def line(count: int, every_s: float = 80.0) -> list[ObservedRate]:
    return [ObservedRate(n * every_s, 1.0 + 0.01 * n) for n in range(count)]


def test_the_naive_forecast_goes_on_with_the_last_rate() -> None:
    assert Naive().ahead(line(9), 60.0) == pytest.approx(1.08)


def test_the_trend_forecast_extends_a_straight_line() -> None:
    ahead = Trend().ahead(line(20), 160.0)
    assert ahead == pytest.approx(1.19 + 0.01 * 2.5, abs=0.002)
    assert Trend().ahead(line(2), 160.0) == pytest.approx(1.01)


def test_a_line_is_extended_as_far_as_asked_for_and_noise_is_averaged() -> None:
    assert RateLine().ahead(line(40), 1000.0) == pytest.approx(1.395 + 0.01 * 1000.0 / 80.0, abs=1e-6)
    noise = np.random.default_rng(1).normal(5.0, 0.25, 22)
    level = [ObservedRate(80.0 * n, float(rate)) for n, rate in enumerate(noise)]
    assert RateLine().ahead(level, 960.0) == np.median(noise)
    assert RateLine().ahead(line(40)[::-1][:2], 60.0) == line(40)[38].rate
    falling = [ObservedRate(80.0 * n, max(3.0 - 0.2 * n, 0.0)) for n in range(15)]
    assert RateLine().ahead(falling, 1e6) == 0.0


def test_the_planner_looks_as_far_ahead_as_selections_last() -> None:
    profile = measure_profile("detector", [1.0, 2.0, 5.0], polynomial, selection_s=900.0)
    rising = RateHistory(tuple(ObservedRate(80.0 * n, 2.0 + 0.05 * n) for n in range(22)))
    between = exponential(1 / 3.1).sample(400, 1)
    found = TimeSlice(80.0 * 22 - 80.0, 80.0 * 22, between)
    plans = [
        QueueingPlanner(profile, forecast=RateLine(), as_printed=printed).plan(found, rising)[0]
        for printed in (True, False)
    ]
    assert plans[0] is not None
    assert plans[1] is not None
    gained = 1 / plans[1].expected.mean - 1 / plans[0].expected.mean
    assert gained == pytest.approx(900.0 * 0.05 / 80.0, rel=0.1)
    assert plans[1].degree.instances > plans[0].degree.instances


def test_the_seasonal_forecast_knows_what_comes_at_this_hour() -> None:
    day = 86_400.0
    times = np.arange(0.0, 3 * day, day / 48)
    seen = [ObservedRate(t, 3.0 + 2.0 * np.sin(2 * np.pi * t / day)) for t in times]
    ahead = Seasonal(day).ahead(seen, day / 4)
    expected = 3.0 + 2.0 * np.sin(2 * np.pi * (times[-1] + day / 4) / day)
    assert ahead == pytest.approx(expected, abs=0.1)
    assert Seasonal(day).ahead(seen[:48], day / 4) == seen[47].rate


def polynomial(rate: float) -> np.ndarray:
    return 0.05 * rate**2 * np.linspace(0.9, 1.1, 100)


def test_a_profile_interpolates_by_powers_and_survives_its_file(tmp_path: Path) -> None:
    profile = measure_profile("detector", [0.5, 1.0, 2.0, 5.0], polynomial)
    top = np.percentile(polynomial(1.0), 99)
    assert profile.service_s(3.0) == pytest.approx(9.0 * top)
    assert profile.service_s(10.0) == pytest.approx(100.0 * top)
    assert profile.service_s(1.0, 50) == pytest.approx(0.05)
    profile.save(tmp_path / "profile.json")
    assert OperatorProfile.load(tmp_path / "profile.json") == profile


def test_a_file_that_is_no_profile_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    for text in ("{}", "[1]", "no json", '{"format": 9, "operator": "x", "entries": []}'):
        path.write_text(text)
        with pytest.raises(PenstockError, match="not an operator profile"):
            OperatorProfile.load(path)


def test_the_planner_joins_them() -> None:
    profile = measure_profile("detector", [1.0, 2.0, 5.0], polynomial)
    planner = QueueingPlanner(profile, Requirement(15, 0.95))
    between = exponential(0.2).sample(400, 1)
    plan, workload = planner.plan(TimeSlice(0.0, float(between.sum()), between), RateHistory())
    assert plan is not None
    assert plan.classified.distribution.family is Family.EXPONENTIAL
    assert plan.service.mean == pytest.approx(1.37 * (0.2 / between.mean()) ** 2, rel=0.01)
    assert 7 <= plan.degree.instances <= 11
    assert len(workload.seen) == 1
    nothing, same = planner.plan(TimeSlice(0.0, 1.0, between[:3]), workload)
    assert nothing is None
    assert same is workload
