"""Numbers in kernels, where the processor's own instruction would differ from the meaning we promise."""

from __future__ import annotations

import numpy as np
from numba import njit

_MIN64, _MAX64 = np.int64(-(2**63)), np.int64(2**63 - 1)
_MIN32, _MAX32 = np.int64(-(2**31)), np.int64(2**31 - 1)


@njit(error_model="numpy")
def floor_div(a, b):  # type: ignore[no-untyped-def]
    """``a // b`` in int64, towards minus infinity; the smallest integer by -1 wraps. ``b`` must not be 0."""
    if b == -1:
        return np.int64(0) - a
    return a // b


@njit(error_model="numpy")
def floor_mod(a, b):  # type: ignore[no-untyped-def]
    """``a % b`` in int64 with the sign of ``b``. ``b`` must not be 0."""
    if b == -1:
        return np.int64(0)
    return a % b


@njit(error_model="numpy")
def to_int64(x):  # type: ignore[no-untyped-def]
    """Towards zero; saturates; NaN gives 0."""
    wide = np.float64(x)
    if wide != wide:
        return np.int64(0)
    if wide >= 9223372036854775808.0:
        return _MAX64
    if wide < -9223372036854775808.0:
        return _MIN64
    return np.int64(wide)


@njit(error_model="numpy")
def to_int32(x):  # type: ignore[no-untyped-def]
    """Towards zero; saturates; NaN gives 0."""
    return np.int32(min(max(to_int64(x), _MIN32), _MAX32))


@njit(error_model="numpy")
def round_half_away(x):  # type: ignore[no-untyped-def]
    """To the nearest whole number, halves away from zero, in the type of ``x``."""
    whole = np.trunc(x)
    if abs(x - whole) >= 0.5:  # exact: a number has a fraction only where doubling it is exact
        whole += np.copysign(type(x)(1.0), x)
    return whole


@njit(error_model="numpy")
def contains_int(values, wanted):  # type: ignore[no-untyped-def]
    """Whether the sorted ``values`` hold ``wanted``."""
    low, high = 0, values.size
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low < values.size and values[low] == wanted


@njit(error_model="numpy")
def contains_float(values, wanted):  # type: ignore[no-untyped-def]
    """Whether the sorted ``values``, NaN last, hold ``wanted``."""
    size = values.size
    if wanted != wanted:
        return size > 0 and values[size - 1] != values[size - 1]
    while size > 0 and values[size - 1] != values[size - 1]:
        size -= 1
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low < size and values[low] == wanted
