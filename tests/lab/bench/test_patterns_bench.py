"""The benchmark of patterns in the small; no test looks at a speed."""

from __future__ import annotations

import numpy as np

from lab.bench.patterns.by_start import run_match, trades
from lab.bench.patterns.detection import SIMULATED, measure_costs, simulate, workload
from lab.bench.patterns.splitter import (
    make_batches,
    measure_families,
    measure_literally,
    measure_windows,
)


def test_the_splitter_is_measured_for_every_overlap_and_family() -> None:
    assert all(rate > 0 for rate in measure_windows(1, 1).values())
    assert all(rate > 0 for rate in measure_families(1, 1).values())
    assert measure_literally(50, 10) > 0


def test_a_match_by_start_finds_what_one_detector_finds() -> None:
    columns = trades(6_000)
    found = {run_match(columns, degree) for degree in (None, 1, 2)}
    assert len(found) == 1
    assert found.pop() > 50


def test_batches_follow_each_other() -> None:
    first, second = make_batches(2, 1500)
    assert (first.stop, second.first) == (1500, 1500)
    assert np.count_nonzero(second.columns["kind"] == 0) == 1


def test_simulated_work_is_what_the_detector_counts() -> None:
    traffic = workload(400.0, 0.5)
    costs = measure_costs(traffic)
    assert costs.per_selection.sum() == costs.comparisons > 0
    rates = simulate(costs, len(traffic))
    assert [rates[degree] for degree in SIMULATED] == sorted(rates.values())
