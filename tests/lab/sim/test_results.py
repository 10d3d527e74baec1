"""What results say of a run."""

from __future__ import annotations

import pytest

from lab.sim.results import Recorder, SimResult
from tests.lab.sim.graphs import At, side_by_side


def result_of(*samples_ms: tuple[float, float]) -> SimResult:
    """Of one query: when born (s), and the latency (ms)."""
    recorder = Recorder(side_by_side(1.0, 1.0, arrivals={0: At(((0, 1),)), 1: At(((0, 1),))}))
    for born_s, latency_ms in samples_ms:
        recorder.sample(0, int(born_s * 1e9), int(latency_ms * 1e6))
    recorder.fill(0, 0)
    recorder.empty(0, 3 * 10**9)
    recorder.fill(1, 9 * 10**9)  # and still so at the end
    recorder.freeze(10 * 10**9, [5 * 10**9])
    return recorder.result(10.0, arrived=2)


def test_shares_and_quantiles_of_what_was_born_since() -> None:
    result = result_of((0.0, 500.0), (1.0, 10.0), (2.0, 19.9), (3.0, 20.0))
    assert result.under(20.0) == 0.5
    assert result.under(20.0, since_s=1.0) == pytest.approx(2 / 3)
    assert result.quantile_ms(1.0, since_s=1.0) == 20.0


def test_mean_latency_over_time() -> None:
    seconds, means = result_of((0.2, 10.0), (0.9, 30.0), (2.1, 5.0)).mean_over_time(1.0)
    assert seconds.tolist() == [0.0, 2.0]
    assert means.tolist() == [20.0, 5.0]


def test_the_distribution_has_an_open_end() -> None:
    shares = result_of((0.0, 5.0), (0.0, 9.9), (0.0, 15.0), (0.0, 2_000.0)).distribution(10.0, 30.0)
    assert shares == {"0-10": 0.5, "10-20": 0.25, "20-30": 0.0, "30+": 0.25}


def test_utilisation_and_its_variation() -> None:
    result = result_of((0.0, 1.0))
    assert result.utilisation.tolist() == [0.3, 0.1]
    assert result.utilisation_variation == pytest.approx(0.5)  # deviation 0.1 over mean 0.2
    assert result.thread_utilisation.tolist() == [0.5]
