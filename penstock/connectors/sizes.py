"""How much memory events take: what batches are limited by.

An estimate is enough. It decides where batches are cut, and no result depends on that.
"""

from __future__ import annotations

import re

from penstock.query.types import DataType, Field, Schema

_STRING_BYTES = 32  # of one whose length nobody knows
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def event_bytes(schema: Schema) -> int:
    """About how much memory an event of this schema takes.

    >>> event_bytes(Schema(ts="timestamp", lane="int32", speed="float64?", name="string"))
    53
    """
    return max(1, sum(_column_bytes(field) for field in schema))


def _column_bytes(field: Field) -> int:
    width = _STRING_BYTES if field.dtype is DataType.STRING else field.dtype.numpy.itemsize
    return width + field.nullable


def parsed_bytes(size: int | str) -> int | None:
    """A number of bytes, or a text such as ``"64m"``, in bytes; None if it is neither.

    >>> parsed_bytes("64m"), parsed_bytes("2GiB"), parsed_bytes(1_000), parsed_bytes("64")
    (67108864, 2147483648, 1000, None)
    """
    if isinstance(size, bool) or not isinstance(size, int | str):
        return None
    if isinstance(size, int):
        return size
    found = re.fullmatch(r"\s*(\d+)\s*([kmgt])(?:i?b)?\s*", size.lower())
    return None if found is None else int(found[1]) * _UNITS[found[2]]
