"""A value in generated code, and the few words in which types are written there."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.inference import Typed
from penstock.query.types import DataType


@dataclass(frozen=True)
class Code:
    """A value in generated code: the temporaries that hold it. Under a null the value is anything."""

    value: str
    null: str | None  # None: never null
    dtype: DataType


#: How a generated kernel converts to each type.
SCALAR = {
    DataType.BOOL: "bool_",
    DataType.INT32: "int32",
    DataType.INT64: "int64",
    DataType.FLOAT32: "float32",
    DataType.FLOAT64: "float64",
    DataType.TIMESTAMP: "int64",
    DataType.STRING: "int32",
}

#: How it writes the zero of each type.
ZERO = {dtype: "False" if dtype is DataType.BOOL else f"{SCALAR[dtype]}(0)" for dtype in DataType}


def settled(typed: Typed) -> DataType:
    """The type that a value is computed in: constants that nothing else decides are int64."""
    return DataType.INT64 if typed.weak and typed.dtype is DataType.INT32 else typed.dtype


def either(*nulls: str | None) -> str | None:
    """The null flag of something that is null as soon as one of its parts is."""
    present = [null for null in nulls if null is not None]
    if not present:
        return None
    return present[0] if len(present) == 1 else f"({' | '.join(present)})"
