"""Memory that is freed stays with the process, so that short runs measure what long ones do.

Every run allocates its blocks anew: some hundred megabytes, returned to the system when it ends. Here the
first touch of a page takes 3 to 5 µs, 70,000 of them in a run of one second. A service pays that once; a
benchmark of many short runs would pay it in each, in the middle of what it measures.
"""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of mallopt, in malloc.h
_LARGEST = (1 << 31) - 1


def keep_freed_memory() -> bool:
    """Tells the C library; False where it does not know how to."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # One arena, so that what one thread frees another can have.
    return all(
        (mallopt(_MMAP_THRESHOLD, 1 << 30), mallopt(_TRIM_THRESHOLD, _LARGEST), mallopt(_ARENA_MAX, 1))
    )
