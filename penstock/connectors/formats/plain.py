"""Which texts are numbers without a doubt, so that a few bad ones do not make all others slow."""

from __future__ import annotations

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.memory.arrow import ArrowArray

_MINUS, _POINT, _ZERO, _NINE = (ord(sign) for sign in "-.09")


def plain_numbers(array: ArrowArray, kind: pa.DataType) -> NDArray[np.bool_]:
    """Nulls, and texts of digits, with a point among them if ``kind`` is a float, that surely fit."""
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    texts = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    whole = not pa.types.is_floating(kind)
    plain = _plain(ends, texts, whole, 9 if pa.types.is_int32(kind) else 18)
    return plain | array.is_null().to_numpy(zero_copy_only=False) if array.null_count else plain


@numba.njit(nogil=True, cache=True, boundscheck=False)
def _plain(ends: NDArray[np.int32], texts: NDArray[np.uint8], whole: bool, most: int) -> NDArray[np.bool_]:
    plain = np.zeros(len(ends) - 1, np.bool_)
    for row in range(len(plain)):
        place, end = ends[row], ends[row + 1]
        if place < end and texts[place] == _MINUS:
            place += 1
        digits, point = 0, whole
        while place < end:
            if _ZERO <= texts[place] <= _NINE:
                digits += 1
            elif point or texts[place] != _POINT or digits == 0 or place + 1 == end:
                break
            else:
                point = True
            place += 1
        plain[row] = place == end and 0 < digits <= most
    return plain
