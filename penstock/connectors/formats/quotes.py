"""Which lines of CSV have quotes that every reader of CSV understands alike."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

#: Python's reader, which defines what a line with quotes means, takes no longer field.
_FIELD_BYTES = 131_072
_QUOTE, _RETURN = ord('"'), ord("\r")


@numba.njit(nogil=True, cache=True, boundscheck=False)
def odd_lines(data: NDArray[np.uint8], ends: NDArray[np.int64], delimiter: int) -> NDArray[np.bool_]:
    """The lines that are blank, long, have a carriage return, or a quote that neither begins a field, nor
    ends one, nor is doubled inside of such a field."""
    odd = np.zeros(len(ends), np.bool_)
    place = 0
    for line in range(len(ends)):
        end = ends[line]
        regular = 0 < end - place <= _FIELD_BYTES
        while regular and place < end:  # a field
            if data[place] == _QUOTE:
                place += 1
                while place < end:
                    if data[place] == _RETURN:
                        regular = False
                    if data[place] != _QUOTE:
                        place += 1
                    elif place + 1 < end and data[place + 1] == _QUOTE:
                        place += 2
                    else:
                        break
                regular = regular and place < end  # at a quote
                place += 1
                regular = regular and (place == end or data[place] == delimiter)
            else:
                while place < end and data[place] != delimiter:
                    if data[place] == _QUOTE or data[place] == _RETURN:
                        regular = False
                    place += 1
            place += 1  # behind the delimiter, or behind the line end
        odd[line] = not regular
        place = end + 1
    return odd
