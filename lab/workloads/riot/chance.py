"""Chance that can be asked again: numbers that depend on a seed, a place and a purpose only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_GOLDEN = 0x9E3779B97F4A7C15


def uniform(seed: int, purpose: str, places: NDArray[np.int64]) -> NDArray[np.float64]:
    """A number in [0, 1) for each place; other purposes give other numbers.

    >>> uniform(1, "temperature", np.arange(3))[2:] == uniform(1, "temperature", np.arange(2, 3))
    array([ True])
    """
    return (bits(seed, purpose, places) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def bits(seed: int, purpose: str, places: NDArray[np.int64]) -> NDArray[np.uint64]:
    """64 mixed bits for each place (splitmix64 of a counter)."""
    words = np.frombuffer(purpose.encode(), np.uint8).tolist()
    key = np.random.SeedSequence([seed, *words]).generate_state(1, np.uint64)[0]
    mixed: NDArray[np.uint64] = key + places.astype(np.uint64) * np.uint64(_GOLDEN)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
