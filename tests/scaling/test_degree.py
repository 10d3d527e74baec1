"""The smallest degree: the paper's four, the bounds they rest on, and the search."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.query.errors import PenstockError
from penstock.scaling.bounds import COVERED, arrivals_bound, service_bound
from penstock.scaling.degree import Requirement, degree_for, least_degree
from penstock.scaling.distributions import (
    Distribution,
    deterministic,
    exponential,
    normal,
    pareto,
    uniform,
)
from penstock.scaling.queueing import within_limit_mdc, within_limit_mmc

PAPER = Requirement(limit=15, probability=0.95)


@pytest.mark.parametrize(
    ("arrivals", "service", "instances"),
    [
        (uniform(0.1, 0.2), exponential(0.3), 10),
        (exponential(0.04), uniform(0.1, 0.2), 6),
        (pareto(0.05, 2.0), exponential(0.3), 6),
        (exponential(0.0666667), pareto(0.05, 2.0), 10),
    ],
    ids=["uniform workload", "uniform service", "pareto workload", "pareto service"],
)
def test_the_papers_degrees_follow_from_the_stated_distributions(
    arrivals: Distribution, service: Distribution, instances: int
) -> None:
    assert least_degree(arrivals, service, PAPER).instances == instances


def test_a_pareto_bound_of_6667_ms_as_printed_gives_the_same_degree() -> None:
    assert least_degree(exponential(0.06667), exponential(0.3), PAPER).instances == 6


def test_five_cars_a_second_at_a_service_time_of_1250_ms_need_eight() -> None:
    assert least_degree(exponential(0.2), deterministic(1.25), PAPER).instances == 8


def test_counting_only_those_that_wait_gives_other_degrees_than_the_papers() -> None:
    """Why events in service count: without them it would be 9, 6, 6, 9."""

    def waiting_only(offered: float, queue: Callable[[float, int, int], float]) -> int:
        return next(
            c
            for c in range(math.floor(offered) + 1, 30)
            if queue(offered, c, PAPER.limit + c) >= PAPER.probability
        )

    pairs = [(0.3 / 0.04321, within_limit_mmc), (0.199 / 0.04, within_limit_mdc)]
    pairs += [(0.3 / 0.06667, within_limit_mmc), (0.5 / 0.066667, within_limit_mdc)]
    assert [waiting_only(*pair) for pair in pairs] == [9, 6, 6, 9]


@settings(deadline=None, max_examples=60)
@given(st.floats(0.0, 9.0), st.integers(10, 60), st.floats(0.5, 0.99), st.booleans())
def test_the_degree_is_the_least_that_holds(
    offered: float, limit: int, wanted: float, constant: bool
) -> None:
    queue = within_limit_mdc if constant else within_limit_mmc
    found = degree_for(offered, queue, Requirement(limit, wanted))
    assert found.instances >= 1
    assert found.instances > offered
    if found.attainable:
        assert found.within_limit >= wanted
        fewer = found.instances - 1
        assert fewer <= offered or fewer < 1 or queue(offered, fewer, limit) < wanted


def test_a_limit_below_what_is_in_service_cannot_be_kept_and_says_so() -> None:
    found = degree_for(30.0, within_limit_mdc, PAPER)
    assert not found.attainable
    assert found.instances > 30


def test_no_load_still_needs_one_instance() -> None:
    assert degree_for(0.0, within_limit_mmc, PAPER).instances == 1


@pytest.mark.parametrize(
    "found",
    [uniform(0.1, 0.2), pareto(0.05, 2.0), pareto(0.01, 0.8), normal(1.0, 0.2), deterministic(0.3)],
    ids=lambda found: found.family.value,
)
def test_bounds_lie_on_the_safe_side(found: Distribution) -> None:
    shares = np.linspace(0.001, COVERED, 500)
    times = np.array([found.quantile(share) for share in shares])
    times = times[times > 0]
    arriving, serving = arrivals_bound(found), service_bound(found)
    assert (arriving.cdf(times) >= np.minimum(found.cdf(times), COVERED) - 1e-9).all()
    below = times[times < serving.mean]
    assert (serving.cdf(below) <= found.cdf(below)).all()
    slightly_slower = exponential(arriving.mean * 1.01)
    assert (slightly_slower.cdf(times) < np.minimum(found.cdf(times), COVERED)).any()


def test_a_normal_distribution_that_reaches_far_below_zero_asks_for_no_crowd() -> None:
    """Few exponential times may look normal: the rate is what it was, and so is the degree."""
    arrivals = normal(0.0178, 0.0144)
    assert 0.01 < arrivals_bound(arrivals).mean < 0.0178
    assert least_degree(arrivals, deterministic(0.02), Requirement()).instances <= 3


def test_requirements_that_make_no_sense_are_refused() -> None:
    for limit, probability in ((-1, 0.9), (15, 0.0), (15, 1.0)):
        with pytest.raises(PenstockError):
            Requirement(limit, probability)
