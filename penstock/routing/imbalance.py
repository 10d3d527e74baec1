"""LIT, the load imbalance between the tasks of an operator (ms-stream equations 10 and 11)."""

from __future__ import annotations

from collections.abc import Sequence


def mean_load(loads: Sequence[float]) -> float:
    """Equation 11."""
    return sum(loads) / len(loads)


def load_imbalance(loads: Sequence[float]) -> float:
    """Equation 10: how far the fullest task is above the mean, or the emptiest below it, as a share of it.

    Nothing to do is no imbalance. The second term never exceeds 1; with two tasks the first does not either.

    >>> load_imbalance([3.0, 1.0]), load_imbalance([4.0, 1.0, 1.0]), load_imbalance([0.0, 0.0])
    (0.5, 1.0, 0.0)
    """
    mean = mean_load(loads)
    if mean <= 0:
        return 0.0
    return max((max(loads) - mean) / mean, (mean - min(loads)) / mean)
