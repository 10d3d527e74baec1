"""Which rows of a table are those that it had before, by the hashes of both."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from penstock.compiled.fixed import part
from penstock.state.row_hash import Hashes
from penstock.state.tables import Ints

# How far apart rows are looked for before the hash table must find them.
_REACH = 8


def matched(
    spans: Ints, first: Hashes, second: Hashes, old_first: Hashes, old_second: Hashes
) -> tuple[Ints, NDArray[np.bool_]]:
    """For each row an old one that is equal, or -1, and which old ones were found.

    Each is found at most once, so of rows that equal each other as many are found as both sides have.

    ``spans`` has, per table, where its rows begin and end, and where the old ones do.
    """
    found = np.full(len(first), -1, np.int64)
    kept = np.zeros(len(old_first), np.bool_)
    _match_in_order(spans, first, second, old_first, old_second, found, kept)
    _match_anywhere(first, second, old_first, old_second, found, kept)
    return found, kept


@njit(nogil=True, cache=True)
def _match_in_order(
    spans: NDArray[np.int64],
    first: Hashes,
    second: Hashes,
    old_first: Hashes,
    old_second: Hashes,
    found: NDArray[np.int64],
    kept: NDArray[np.bool_],
) -> None:
    """Rows that stayed in order, which most do. Wherever it gives up, ``_match_anywhere`` goes on."""
    for number in range(len(spans)):
        row, end, old, old_end = spans[number]
        missed = 0
        while row < end and old < old_end and missed < 64 + (row - spans[number, 0]) // 4:
            step = old_step = 1
            for reach in range(_REACH):
                far, old_far = row + reach, old + reach
                if (
                    far < end
                    and old_far < old_end
                    and _same(first, second, far, old_first, old_second, old_far)
                ):
                    step, old_step = reach, reach  # changed in place
                    break
                if old_far < old_end and _same(first, second, row, old_first, old_second, old_far):
                    step, old_step = 0, reach  # some were removed
                    break
                if far < end and _same(first, second, far, old_first, old_second, old):
                    step, old_step = reach, 0  # some were put in between
                    break
            else:
                missed += 1
                row, old = row + 1, old + 1
                continue
            row, old = row + step, old + old_step
            found[row] = old
            kept[old] = True
            row, old = row + 1, old + 1


@njit(nogil=True, cache=True)
def _match_anywhere(
    first: Hashes,
    second: Hashes,
    old_first: Hashes,
    old_second: Hashes,
    found: NDArray[np.int64],
    kept: NDArray[np.bool_],
) -> None:
    """Finds, for each row that has none yet, an equal one among those that are left: as many as there are."""
    left = 0
    for old in range(len(kept)):
        left += not kept[old]
    if left == 0:
        return
    size = 16
    while size < 2 * left:
        size *= 2
    mask = np.uint64(size - 1)
    heads = np.full(size, -1, np.int64)
    following = np.full(len(kept), -1, np.int64)
    for old in range(len(kept) - 1, -1, -1):  # backwards, so that the earliest is found first
        if not kept[old]:
            slot = old_first[old] & mask
            following[old] = heads[slot]
            heads[slot] = old
    for row in range(len(found)):
        if found[row] >= 0:
            continue
        before = np.int64(-1)
        old = heads[first[row] & mask]
        while old >= 0:
            if _same(first, second, row, old_first, old_second, old):
                found[row] = old
                kept[old] = True
                if before < 0:
                    heads[first[row] & mask] = following[old]
                else:
                    following[before] = following[old]
                break
            before, old = old, following[old]


@part(forceinline=True)
def _same(first: Any, second: Any, row: Any, old_first: Any, old_second: Any, old: Any) -> Any:
    return first[row] == old_first[old] and second[row] == old_second[old]
