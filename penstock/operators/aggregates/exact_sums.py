"""Sums of floats that lose nothing: Neumaier's sum, and variances from sums of twice the usual precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.compiled.fixed import part

Floats = NDArray[np.float64]

_SPLITTER = 134217729.0  # 2**27 + 1: cuts a float64 into two halves of 26 bits (Veltkamp)


@part(forceinline=True)
def add_exactly(total: float, lost: float, value: float) -> tuple[float, float]:
    """``total + value``, and ``lost`` with what that addition rounded away."""
    added = total + value
    if abs(total) >= abs(value):
        lost += (total - added) + value
    else:
        lost += (value - added) + total
    return added, lost


@part(forceinline=True)
def error_of_square(value: float) -> float:
    """What ``value * value`` rounds away (Dekker)."""
    scaled = value * _SPLITTER
    upper = scaled - (scaled - value)
    lower = value - upper
    return ((upper * upper - value * value) + 2.0 * upper * lower) + lower * lower


def variance_of(
    total: Floats, total_lost: Floats, squares: Floats, squares_lost: Floats, count: NDArray[np.int64]
) -> Floats:
    """Sample variances from sums of values and of squares, each with what it lost; 0 of fewer than two."""
    with np.errstate(all="ignore"):
        n = np.maximum(count, 1).astype(np.float64)
        a, a_low = _normal(squares, squares_lost)
        b, b_low = _normal(total, total_lost)
        # mean · total, to twice the precision: product, then quotient with its remainder
        product, product_low = _product(b, b)
        product_low = product_low + 2.0 * b * b_low
        quotient = product / n
        back, back_low = _product(quotient, n)
        quotient_low = (((product - back) - back_low) + product_low) / n
        difference = a - quotient
        borrowed = np.where(
            np.abs(a) >= np.abs(quotient), (a - difference) - quotient, a - (quotient + difference)
        )
        moment = np.maximum(difference + (borrowed + (a_low - quotient_low)), 0.0)
        result = np.where(count > 1, moment / np.maximum(n - 1.0, 1.0), 0.0)
        result = np.where(np.isfinite(squares), result, np.inf)  # finite values whose squares are too large
        return np.where(np.isfinite(total), result, np.nan)


def _normal(total: Floats, lost: Floats) -> tuple[Floats, Floats]:
    high = total + lost
    return high, (total - high) + lost


def _product(a: Any, b: Any) -> tuple[Floats, Floats]:
    product = a * b
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(value: Floats) -> tuple[Floats, Floats]:
    scaled = value * _SPLITTER
    upper = scaled - (scaled - value)
    return upper, value - upper
