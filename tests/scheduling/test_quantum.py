"""Equation 4 of enjima, the right way round."""

from __future__ import annotations

import numpy as np

from penstock.scheduling.quantum import events_until


def test_as_many_events_as_fit_into_the_rest_of_the_epoch() -> None:
    # 1 ms is left; at 10 ns, 1 µs and 1 ms an event
    assert events_until(0, 1_000_000, np.array([10.0, 1_000.0, 1e6]), 1).tolist() == [100_000, 1_000, 1]


def test_never_fewer_than_the_least() -> None:
    assert events_until(0, 1_000_000, np.array([10.0, 1_000.0]), 5_000).tolist() == [100_000, 5_000]


def test_the_least_when_the_epoch_is_over() -> None:
    assert events_until(7, 7, np.array([1.0, 2.0]), 64).tolist() == [64, 64]
