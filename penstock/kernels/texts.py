"""How strings are read as numbers in a kernel: by tables, computed once per distinct string."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from penstock.kernels.code import Code
from penstock.query.types import DataType

if TYPE_CHECKING:
    from penstock.kernels.builder import KernelBuilder


def parse_number(builder: KernelBuilder, code: Code, dtype: DataType) -> Code:
    """A string as a number; null where it is none."""
    parameters = builder.parameters
    values = parameters.add_string_table(
        lambda text: parsed(text, dtype) or 0, dtype, shared_as=f"value as {dtype}"
    )
    misfits = parameters.add_string_table(
        lambda text: parsed(text, dtype) is None, DataType.BOOL, shared_as=f"misfit as {dtype}"
    )
    value = builder.assign(f"{builder.table(values)}[uint64({code.value})]")
    misfit = f"{builder.table(misfits)}[uint64({code.value})]"
    null = builder.assign(misfit if code.null is None else f"{code.null} | {misfit}")
    return Code(value, null, dtype)


def parsed(text: str, dtype: DataType) -> int | float | None:
    """The number that a text says, or None: decimal digits only, in the range of the type.

    >>> parsed(" -1e3 ", DataType.FLOAT64), parsed("1.5", DataType.INT64), parsed("nan", DataType.FLOAT64)
    (-1000.0, None, None)
    """
    text = text.strip()
    if dtype.is_integer:
        if not _INTEGER.fullmatch(text):
            return None
        number = int(text)
        limits = np.iinfo(dtype.numpy)
        return number if limits.min <= number <= limits.max else None
    if not _DECIMAL.fullmatch(text):
        return None
    value = float(text)
    with np.errstate(over="ignore"):
        return float(np.float32(value)) if dtype is DataType.FLOAT32 else value


_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
