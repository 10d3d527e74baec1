"""Where a key's words are looked for first in a hash table: the same for inserting and for looking up."""

from __future__ import annotations

import numpy as np
from numba import njit

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@njit(error_model="numpy")
def mix(h, word):  # type: ignore[no-untyped-def]
    """The hash of words so far, with one more: start from ``uint64(0)``."""
    h = (h ^ np.uint64(word)) * _FACTOR
    return h ^ (h >> _HALF)
