"""How strings are read as numbers in a kernel: by tables, computed once per distinct string."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from penstock.kernels.code import Code, either
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


def made(builder: KernelBuilder, function: Callable[..., str], operands: list[Code]) -> Code:
    """A string that Python makes of values: it is given strings, and other values as they are."""
    texts, strings = [code.dtype is DataType.STRING for code in operands], builder.strings

    def text(*words: int) -> str:
        pairs = zip(words, texts, strict=True)
        return function(*(strings.text(word) if is_text else word for word, is_text in pairs))

    null = builder.flag(either(*(code.null for code in operands)))
    words = ", ".join(f"int64({code.value})" for code in operands)
    value = f"make_text({builder.maker(text, len(operands))}, ({words},))"
    if null is not None:
        value = f"int64(0) if {null} else {value}"
    return Code(builder.assign(f"int32({value})"), null, DataType.STRING)


def written(builder: KernelBuilder, code: Code) -> Code:
    """A boolean or a number as a string."""
    if not code.dtype.is_float:
        return made(builder, _WRITERS[code.dtype], [code])
    bits = Code(builder.assign(f"float64({code.value}).view(int64)"), code.null, DataType.INT64)
    return made(builder, _WRITERS[code.dtype], [bits])


def _float_of(bits: int) -> float:
    (value,) = struct.unpack("<d", struct.pack("<q", bits))
    return float(value)


#: How the values of a type are written, floats by their bits: with the fewest digits that say the number.
_WRITERS: dict[DataType, Callable[[int], str]] = {
    DataType.BOOL: lambda value: "true" if value else "false",
    DataType.INT32: str,
    DataType.INT64: str,
    DataType.FLOAT32: lambda bits: repr(float(str(np.float32(_float_of(bits))))),
    DataType.FLOAT64: lambda bits: repr(_float_of(bits)),
}


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
