"""What each function of the language means: plain Python over plain values, too simple to be wrong.

By name: ``f(function, values, dtype)``: ``values`` are the operands', ``dtype`` is the type of the result.
A strict function is not asked about nulls.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import xxhash

from penstock.query.types import DataType

Reference = Callable[[Any, list[Any], DataType], Any]
REFERENCE: dict[str, Reference] = {}

_BITS = {DataType.INT32: 32, DataType.INT64: 64, DataType.TIMESTAMP: 64}


def means(*names: str) -> Callable[[Reference], Reference]:
    def register(meaning: Reference) -> Reference:
        REFERENCE.update(dict.fromkeys(names, meaning))
        return meaning

    return register


# -- numbers -------------------------------------------------------------------------------------------------


@means("neg", "abs")
def _sign_changed(function: Any, values: list[Any], dtype: DataType) -> Any:
    changed = -values[0] if function.name == "neg" else abs(values[0])
    return changed if dtype.is_float else wrap(changed, _BITS[dtype])


@means("floor", "ceil")
def _whole(function: Any, values: list[Any], dtype: DataType) -> Any:
    (a,) = values
    if a != a:
        return 0
    if isinstance(a, float) and math.isinf(a):
        return 2**63 - 1 if a > 0 else -(2**63)
    whole = math.floor(a) if function.name == "floor" else math.ceil(a)
    return max(-(2**63), min(2**63 - 1, whole))


@means("round")
def _round(function: Any, values: list[Any], dtype: DataType) -> Any:
    (a,) = values
    if isinstance(a, int) or math.isnan(a) or math.isinf(a):
        return a
    whole = math.trunc(a)
    away = 1 if a > 0 else -1
    return float(whole + away if abs(a - whole) >= 0.5 else whole)


@means("sqrt")
def _sqrt(function: Any, values: list[Any], dtype: DataType) -> Any:
    return math.sqrt(values[0]) if values[0] >= 0 else math.nan


@means("exp")
def _exp(function: Any, values: list[Any], dtype: DataType) -> Any:
    try:
        return math.exp(values[0])
    except OverflowError:
        return math.inf


@means("log")
def _log(function: Any, values: list[Any], dtype: DataType) -> Any:
    a = float(values[0])
    if a == 0:
        return -math.inf
    return math.log(a) if a > 0 else math.nan


@means("pow")
def _pow(function: Any, values: list[Any], dtype: DataType) -> Any:
    a, b = map(float, values)
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:  # a root of a negative number, or a negative power of 0
        if a < 0:
            return math.nan
        return -math.inf if math.copysign(1, a) < 0 and b % 2 == 1 else math.inf


@means("sign")
def _sign(function: Any, values: list[Any], dtype: DataType) -> Any:
    (a,) = values
    return a if a != a else type(a)((a > 0) - (a < 0))


# -- strings -------------------------------------------------------------------------------------------------


@means("lower")
def _lower(function: Any, values: list[Any], dtype: DataType) -> Any:
    return values[0].lower()


@means("upper")
def _upper(function: Any, values: list[Any], dtype: DataType) -> Any:
    return values[0].upper()


@means("length")
def _length(function: Any, values: list[Any], dtype: DataType) -> Any:
    return len(values[0])


@means("starts_with")
def _starts_with(function: Any, values: list[Any], dtype: DataType) -> Any:
    return values[0][: len(function.prefix)] == function.prefix


@means("ends_with")
def _ends_with(function: Any, values: list[Any], dtype: DataType) -> Any:
    return values[0][max(0, len(values[0]) - len(function.suffix)) :] == function.suffix


@means("contains")
def _contains(function: Any, values: list[Any], dtype: DataType) -> Any:
    size = len(function.part)
    return any(values[0][at : at + size] == function.part for at in range(len(values[0]) - size + 1))


@means("trim")
def _trim(function: Any, values: list[Any], dtype: DataType) -> Any:
    characters = list(values[0])
    while characters and characters[0] in function.characters:
        del characters[0]
    while characters and characters[-1] in function.characters:
        del characters[-1]
    return "".join(characters)


@means("substr")
def _substr(function: Any, values: list[Any], dtype: DataType) -> Any:
    end = math.inf if function.length is None else function.start + function.length
    return "".join(c for at, c in enumerate(values[0]) if function.start <= at < end)


@means("replace")
def _replace(function: Any, values: list[Any], dtype: DataType) -> Any:
    return function.new.join(_parts(values[0], function.old))


@means("split_part")
def _split_part(function: Any, values: list[Any], dtype: DataType) -> Any:
    return dict(enumerate(_parts(values[0], function.separator), 1)).get(function.part, "")


@means("regexp_match")
def _regexp_match(function: Any, values: list[Any], dtype: DataType) -> Any:
    return re.search(function.pattern, values[0]) is not None


@means("regexp_extract")
def _regexp_extract(function: Any, values: list[Any], dtype: DataType) -> Any:
    found = re.search(function.pattern, values[0])
    return None if found is None else found.group(function.group)


@means("concat")
def _concat(function: Any, values: list[Any], dtype: DataType) -> Any:
    return "".join(values)


def _parts(text: str, separator: str) -> list[str]:
    parts, part, at = [], "", 0
    while at < len(text):
        if text[at : at + len(separator)] == separator:
            parts.append(part)
            part, at = "", at + len(separator)
        else:
            part, at = part + text[at], at + 1
    return [*parts, part]


# -- times ---------------------------------------------------------------------------------------------------


@means("truncate")
def _truncate(function: Any, values: list[Any], dtype: DataType) -> Any:
    return wrap(values[0] // function.unit_us * function.unit_us, 64)


@means("year", "month", "day", "quarter")
def _date(function: Any, values: list[Any], dtype: DataType) -> Any:
    # The calendar repeats itself every 400 years: Python's knows the first 400 and no end.
    era, day = divmod(values[0] // 86_400_000_000 + date(1970, 1, 1).toordinal() - 1, 146_097)
    found = date.fromordinal(day + 1)
    return {
        "year": found.year + 400 * era,
        "month": found.month,
        "day": found.day,
        "quarter": (found.month + 2) // 3,
    }[function.name]


@means("hour", "minute", "second")
def _clock(function: Any, values: list[Any], dtype: DataType) -> Any:
    seconds = values[0] // 1_000_000 % 86_400
    return {"hour": seconds // 3600, "minute": seconds // 60 % 60, "second": seconds % 60}[function.name]


@means("day_of_week")
def _day_of_week(function: Any, values: list[Any], dtype: DataType) -> Any:
    return (values[0] // 86_400_000_000 + 3) % 7 + 1


@means("parse_time")
def _parse_time(function: Any, values: list[Any], dtype: DataType) -> Any:
    try:
        time = datetime.strptime(values[0], function.format)
    except ValueError:
        return None
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return round((aware - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)


@means("format_time")
def _format_time(function: Any, values: list[Any], dtype: DataType) -> Any:
    day, second_us = divmod(values[0], 86_400_000_000)
    era, day = divmod(day + date(1970, 1, 1).toordinal() - 1, 146_097)
    found = date.fromordinal(day + 1)
    clock = datetime(2000, 1, 1) + timedelta(microseconds=second_us)
    text = function.format.replace("%%", "\0").replace("%Y", f"{found.year + 400 * era:04d}")
    text = text.replace("%m", f"{found.month:02d}").replace("%d", f"{found.day:02d}")
    text = text.replace("%j", found.strftime("%j"))
    for code in ("%H", "%M", "%S", "%f"):
        text = text.replace(code, clock.strftime(code))
    return text.replace("\0", "%")


# -- choices -------------------------------------------------------------------------------------------------


@means("least", "greatest")
def _extreme(function: Any, values: list[Any], dtype: DataType) -> Any:
    there = [value for value in values if value is not None]
    choose = min if function.name == "least" else max
    return choose(there, key=rank) if there else None


@means("coalesce")
def _coalesce(function: Any, values: list[Any], dtype: DataType) -> Any:
    return next((value for value in values if value is not None), None)


def hashed(values: list[Any], types: list[DataType]) -> int:
    """``hash_of``: unlike the others it depends on the types of its operands."""
    seed = 42
    for value, dtype in zip(values, types, strict=True):
        if value is not None:
            seed = xxhash.xxh64_intdigest(_bytes(value, dtype), seed)
    return wrap(seed, 64)


def rank(value: Any) -> tuple[bool, Any]:
    """Orders values: NaN is larger than every number."""
    return (True, 0) if value != value else (False, value)


def wrap(value: int, bits: int) -> int:
    """An integer of so many bits, wrapped around."""
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def _bytes(value: Any, dtype: DataType) -> bytes:
    if dtype is DataType.STRING:
        encoded: bytes = value.encode("utf-8")
        return encoded
    if dtype.is_float:
        value = math.nan if value != value else value + 0.0  # one NaN, and -0.0 becomes 0.0
        return struct.pack("<f" if dtype is DataType.FLOAT32 else "<d", value)
    return struct.pack("<i" if dtype in (DataType.BOOL, DataType.INT32) else "<q", value)
