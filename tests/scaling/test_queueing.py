"""Queueing formulas against closed forms, published figures and series, and an independent simulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ciw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from penstock.query.errors import PenstockError
from penstock.scaling.queueing import (
    lengths_mdc,
    waiting_mdc,
    waits_mmc,
    within_limit_mdc,
    within_limit_mmc,
)

Queue = Callable[[float, int, int], float]


def mean_waiting(offered: float, instances: int) -> float:
    waiting = waiting_mdc(offered, instances)
    return float(waiting @ np.arange(len(waiting)))


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9, 0.99, 0.999])
def test_one_instance_is_the_formula_of_pollaczek_and_khinchine(load: float) -> None:
    assert mean_waiting(load, 1) == pytest.approx(load**2 / (2 * (1 - load)), rel=1e-7)
    assert lengths_mdc(load, 1, 1)[0] == pytest.approx(1 - load, rel=1e-7)
    assert lengths_mdc(load, 1, 1)[1] == pytest.approx((1 - load) * np.expm1(load), rel=1e-7)


@pytest.mark.parametrize(("offered", "instances"), [(0.7, 1), (1.8, 2), (4.5, 5), (9.5, 10)])
def test_mmc_equals_its_textbook_sum(offered: float, instances: int) -> None:
    weights = [1.0]
    for n in range(1, 2000):
        weights.append(weights[-1] * offered / min(n, instances))
    share = np.cumsum(weights) / np.sum(weights)
    for limit in (0, 1, instances - 1, instances, instances + 7):
        assert within_limit_mmc(offered, instances, limit) == pytest.approx(share[limit], rel=1e-10)


@pytest.mark.parametrize(
    ("offered", "instances", "waits"), [(1, 2, (1, 3)), (2, 3, (4, 9)), (3, 4, (27, 53)), (4, 5, (128, 231))]
)
def test_erlang_c_is_its_fraction(offered: int, instances: int, waits: tuple[int, int]) -> None:
    """(aᶜ / c!) c / (c − a) over itself and Σ aⁿ / n! below c, worked out by hand."""
    assert waits_mmc(float(offered), instances) == pytest.approx(waits[0] / waits[1], rel=1e-12)


# λ = 9, μ = 5 with 2 and with 4 servers: number waiting and response time as the tests of Octave's queueing
# package have them (inst/qsmmm.m), to three digits, from slides of ETH Zürich on M/M/m queues (ASL 2017).
@pytest.mark.parametrize(
    ("instances", "waiting", "response"),
    [(2, 7.674, 1.053), (4, 0.105, 0.212)],
)
def test_mmc_has_the_waiting_numbers_that_others_publish(
    instances: int, waiting: float, response: float
) -> None:
    rate, service = 9.0, 1 / 5
    load = rate * service / instances
    found = waits_mmc(rate * service, instances) * load / (1 - load)
    assert found == pytest.approx(waiting, abs=1e-3)
    assert found / rate + service == pytest.approx(response, abs=1e-3)


# An Erlang C table for trunked radio ("Table C", Scribd document 831962299): the load at which 5 % of calls
# are delayed by 8 channels, and 1 % by 10, to two digits.
@pytest.mark.parametrize(("instances", "offered", "waits"), [(8, 3.87, 0.05), (10, 4.08, 0.01)])
def test_erlang_c_has_the_loads_of_a_printed_table(instances: int, offered: float, waits: float) -> None:
    assert waits_mmc(offered - 0.01, instances) < waits < waits_mmc(offered + 0.01, instances)


# The wait of every c-th event is a walk with a wall, W' = max(W + 1 − Γ(c) / a, 0). Spitzer's identity says:
# P(W = 0) = exp(− Σ P(S_l > 0) / l) and E W = Σ E(S_l)⁺ / l, sums over walks of l services that know
# neither roots nor transforms. P(W = 0) is what Janssen and van Leeuwaarden call the Erlang D formula
# (Back to the roots of the M/D/s queue and the works of Erlang, Crommelin, and Pollaczek).
@pytest.mark.parametrize("load", [0.1, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("instances", [1, 2, 3, 5, 10, 40])
def test_mdc_is_the_sum_over_walks_of_spitzer(instances: int, load: float) -> None:
    offered = load * instances
    walks = np.arange(1.0, 40_000.0)
    events = walks * instances
    behind = special.gammainc(events, walks * offered)  # P(A ≥ l c) = P(Γ(l c) ≤ l a)
    nobody_waits = np.exp(-np.sum(behind / walks))
    assert within_limit_mdc(offered, instances, instances - 1) == pytest.approx(nobody_waits, rel=1e-9)
    waits = np.sum(behind - instances / offered * special.gammainc(events + 1, walks * offered))
    assert mean_waiting(offered, instances) == pytest.approx(offered * waits, rel=1e-8, abs=1e-14)


# M/D/2 and M/D/3 at λ = 2 as Q-MAM computes them (Pérez, Van Velthoven and Van Houdt, Q-MAM: a tool for
# solving infinite queues using matrix-analytic methods, 2008): mean number in the system, mean wait and
# P(Q = n). Published in the tests of LINE, the solver of Imperial College (imperial-qore/line-solver,
# cpp/tests/test_qsys_mapdc.cpp); good to 1e-8, as Q-MAM cuts the distribution off.
@pytest.mark.parametrize(
    ("service", "instances", "number", "wait", "lengths"),
    [
        (
            0.6,
            2,
            1.55164329134673,
            0.175821645673367,
            {0: 0.238685365188794, 1: 0.322629269626472, 2: 0.231148685357196},
        ),
        (1.2, 3, 3.72936053685491, 0.664680268427454, {0: 0.0498414304563823, 3: 0.181953124332401}),
    ],
)
def test_mdc_has_the_figures_that_others_publish(
    service: float, instances: int, number: float, wait: float, lengths: dict[int, float]
) -> None:
    rate = 2.0
    found = lengths_mdc(rate * service, instances, 400)
    assert found @ np.arange(len(found)) == pytest.approx(number, rel=1e-8)
    assert mean_waiting(rate * service, instances) / rate == pytest.approx(wait, rel=1e-7)
    assert {n: found[n] for n in lengths} == pytest.approx(lengths, rel=1e-8)


# Mean waits of M/D/c over those of M/M/c: the exact values are between a half and one, and approach a half
# as the load grows (Tijms, New and old results for the M/D/c queue).
@pytest.mark.parametrize("instances", [2, 5, 10, 50])
def test_constant_service_halves_the_wait_in_heavy_traffic(instances: int) -> None:
    def ratio(load: float) -> float:
        offered = load * instances
        return mean_waiting(offered, instances) / (waits_mmc(offered, instances) * load / (1 - load))

    assert 0.5 < ratio(0.99) < ratio(0.9) < ratio(0.5) < 1.0
    assert ratio(0.999) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("instances", [1, 2, 4, 9])
def test_mdc_solves_the_balance_of_one_service_time(instances: int) -> None:
    """p_j = Σ_{k ≤ c} p_k a_j + Σ_{k > c} p_k a_{j − k + c} (Crommelin)."""
    offered, longest = 0.85 * instances, 400
    found = lengths_mdc(offered, instances, longest)
    poisson = np.exp(
        np.arange(longest + 1) * np.log(offered)
        - offered
        - np.cumsum(np.log(np.maximum(np.arange(longest + 1), 1)))
    )
    for j in range(60):
        after = found[: instances + 1].sum() * poisson[j]
        after += sum(found[k] * poisson[j - k + instances] for k in range(instances + 1, j + instances + 1))
        assert found[j] == pytest.approx(after, abs=1e-11)


@pytest.mark.parametrize("queue", [within_limit_mmc, within_limit_mdc])
def test_a_thousand_instances_at_999_permille_are_stable(queue: Queue) -> None:
    offered, instances = 999.0, 1000
    shares = [queue(offered, instances, limit) for limit in (0, 500, 900, 999, 1100, 2000, 6000, 20000)]
    assert all(0.0 <= share <= 1.0 and np.isfinite(share) for share in shares)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0, abs=1e-6)
    # heavy traffic: the wait beyond c decays by 1 − ρ a place, twice as fast when service is constant
    pace = 2.0 if queue is within_limit_mdc else 1.0
    tails = [1.0 - queue(offered, instances, limit) for limit in (2000, 2500)]
    assert np.log(tails[0] / tails[1]) / 500 == pytest.approx(pace * 0.001, rel=0.01)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 60), st.floats(0.01, 0.98), st.integers(0, 80))
def test_more_instances_never_make_the_queue_longer(instances: int, load: float, limit: int) -> None:
    for queue in (within_limit_mmc, within_limit_mdc):
        offered = load * instances
        few, many = queue(offered, instances, limit), queue(offered, instances + 1, limit)
        assert many >= few - 1e-9
        assert 0.0 <= few <= 1.0


def test_an_overloaded_queue_is_refused() -> None:
    with pytest.raises(PenstockError, match="at least 4"):
        within_limit_mmc(3.0, 3, 10)


@pytest.mark.parametrize(
    ("queue", "service"),
    [
        (within_limit_mmc, ciw.dists.Exponential(1.0)),
        (within_limit_mdc, ciw.dists.Deterministic(1.0)),
    ],
)
def test_formulas_agree_with_an_independent_simulation(queue: Queue, service: Any) -> None:
    offered, instances, until = 3.2, 4, 6000.0
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(offered)],
        service_distributions=[service],
        number_of_servers=[instances],
    )
    ciw.seed(3)
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_time(until)
    records = simulation.get_all_records()
    arrived = np.sort([record.arrival_date for record in records])
    left = np.sort([record.exit_date for record in records])
    seen = np.linspace(100.0, until - 100.0, 20_000)
    lengths = np.searchsorted(arrived, seen, side="right") - np.searchsorted(left, seen, side="right")
    for limit in (1, 3, 5, 8):
        assert np.mean(lengths <= limit) == pytest.approx(queue(offered, instances, limit), abs=0.025)
