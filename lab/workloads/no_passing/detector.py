"""Who overtook whom: a vehicle that entered after another and left before it.

A selection opens when a passes the entry and closes when a passes the exit. Every exit in it is compared
with all entries in it, as the paper's operator does it; an exit whose vehicle is among them has overtaken a.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from lab.workloads.no_passing.data import ENTRY, EXIT
from penstock.cep.selections.instances import Columns, Matches
from penstock.cep.selections.selections import Ints
from penstock.cep.selections.splitter_pairs import Sequence, one_of


def predicates() -> Sequence:
    """P_s: some vehicle enters. P_c: the same vehicle leaves; its exit is not part of the selection."""
    return Sequence(one_of("pos", ENTRY), one_of("pos", EXIT), by="vehicle", includes_close=False)


class NoPassing:
    """The detector; ``comparisons`` counts those that it has made.

    Its matches are (entry of a, entry of b, exit of b), in the order of b's exits.
    """

    def __init__(self) -> None:
        self.comparisons = 0

    def detect(self, columns: Columns, starts: Ints, stops: Ints) -> Matches:
        of, positions, made = _overtakings(
            np.ascontiguousarray(columns["pos"], np.int32),
            np.ascontiguousarray(columns["vehicle"], np.int64),
            np.ascontiguousarray(starts),
            np.ascontiguousarray(stops),
        )
        self.comparisons += made
        return Matches(of, positions)


@numba.njit(
    "Tuple((int64[::1], int64[:, ::1], int64))(int32[::1], int64[::1], int64[::1], int64[::1])",
    cache=True,
    nogil=True,
)
def _overtakings(
    pos: NDArray[np.int32], vehicles: Ints, starts: Ints, stops: Ints
) -> tuple[Ints, NDArray[np.int64], int]:
    longest = 0
    for i in range(len(starts)):
        longest = max(longest, stops[i] - starts[i])
    entered = np.empty(longest, np.int64)  # places of the entries of the selection at hand
    of = np.empty(64, np.int64)
    found = np.empty((64, 3), np.int64)
    count = 0
    made = 0
    for i in range(len(starts)):
        listed = 0
        for place in range(starts[i] + 1, stops[i]):
            if pos[place] == ENTRY:
                entered[listed] = place
                listed += 1
                continue
            made += listed
            by = -1
            for k in range(listed):  # all of them: the paper's operator does not stop early
                if vehicles[entered[k]] == vehicles[place]:
                    by = entered[k]
            if by >= 0:
                if count == len(of):
                    more_of = np.empty(2 * count, np.int64)
                    more_of[:count] = of
                    of = more_of
                    more = np.empty((2 * count, 3), np.int64)
                    more[:count] = found
                    found = more
                of[count] = i
                found[count, 0] = starts[i]
                found[count, 1] = by
                found[count, 2] = place
                count += 1
    return of[:count].copy(), found[:count].copy(), made
