"""Aggregates, windows, keys and hashes of the reference interpreter: plain Python over complete lists."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import xxhash

from penstock.query.aggregates import Aggregate
from penstock.query.types import DataType, Schema
from penstock.query.windows import Session, Sliding, Window
from tests.reference_expressions import evaluate

Value = bool | int | float | str | None


# -- keys: NaN is one key, -0.0 is 0.0, null is a key of its own -----------------------------------


class _NaN:
    def __repr__(self) -> str:
        return "NaN"


NAN = _NaN()


def is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def key_of(values: Iterable[Any]) -> tuple[Any, ...]:
    """Values as a key that Python's ``==`` and ``hash`` treat as the contract asks."""
    return tuple(map(_key_part, values))


def _key_part(value: Any) -> Any:
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0  # −0.0 + 0.0 is 0.0
    return value


def rank_of(value: Any) -> tuple[bool, Any]:
    """A sort key with NaN above every number."""
    return (True, 0.0) if is_nan(value) else (False, value)


def sorted_by(rows: list[tuple[list[Any], Any]], descending: Sequence[bool]) -> list[tuple[list[Any], Any]]:
    """Pairs in the order of their values, each up or down, nulls last; equal ones stay in order."""
    for number, down in reversed(list(enumerate(descending))):
        there = [row for row in rows if row[0][number] is not None]
        # sorting is stable, also when reversed
        there.sort(key=lambda row: rank_of(row[0][number]), reverse=down)
        rows = there + [row for row in rows if row[0][number] is None]
    return rows


def wrapped(value: int, bits: int = 64) -> int:
    """Two's complement at that width."""
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


# -- Spark's xxhash64 ------------------------------------------------------------------------------


def xxhash64(values: Iterable[tuple[Value, DataType]]) -> int:
    """The chained hash of typed values from seed 42, as a signed number; nulls leave the seed as it is."""
    seed = 42
    for value, dtype in values:
        if value is not None:
            seed = xxhash.xxh64_intdigest(_bytes_of(value, dtype), seed)
    return wrapped(seed)


def _bytes_of(value: Any, dtype: DataType) -> bytes:
    if dtype is DataType.STRING:
        return str(value).encode()
    if dtype in (DataType.BOOL, DataType.INT32):
        return struct.pack("<i", int(value))
    if dtype in (DataType.INT64, DataType.TIMESTAMP):
        return struct.pack("<q", value)
    if dtype is DataType.FLOAT32:
        return struct.pack("<I", 0x7FC00000) if is_nan(value) else struct.pack("<f", value + 0.0)
    return struct.pack("<Q", 0x7FF8000000000000) if is_nan(value) else struct.pack("<d", value + 0.0)


# -- windows ---------------------------------------------------------------------------------------


def windows_over(times: Sequence[int], window: Window) -> list[tuple[int, int]]:
    """All windows [start, end) that hold at least one of ``times``, in order."""
    return WINDOW[type(window)](times, window)


def _aligned(times: Sequence[int], window: Sliding) -> list[tuple[int, int]]:
    found = _windows_of if window.clock.zone is None else _windows_by_clock
    return sorted({one for time in times for one in found(time, window)})


def _windows_of(time: int, window: Sliding) -> list[tuple[int, int]]:
    offset = window.clock.offset_us
    start = (time - offset) // window.slide_us * window.slide_us + offset  # floors, for negative times too
    found = []
    while start + window.size_us > time:
        found.append((start, start + window.size_us))
        start -= window.slide_us
    return found


def _windows_by_clock(time: int, window: Sliding) -> list[tuple[int, int]]:
    zone, offset = ZoneInfo(str(window.clock.zone)), window.clock.offset_us
    latest = (_local(time, zone) - offset) // window.slide_us
    day = 86_400_000_000 // window.slide_us  # clocks may be put back by so much
    found = []
    for number in range(latest - window.size_us // window.slide_us - 2, latest + day + 2):
        start = _first_shown(number * window.slide_us + offset, zone)
        end = _first_shown(number * window.slide_us + offset + window.size_us, zone)
        if start <= time < end:
            found.append((start, end))
    return found


@lru_cache(100_000)
def _first_shown(wall: int, zone: ZoneInfo) -> int:
    """The first moment at which clocks show that, or a later time if they skip it."""
    hour = 3_600_000_000
    offsets = {
        _local(wall + hours * hour, zone) - wall - hours * hour for hours in (-26, -2, -1, 0, 1, 2, 26)
    }
    exact = [wall - offset for offset in offsets if _local(wall - offset, zone) == wall]
    if exact:
        return min(exact)
    low, high = wall - 26 * hour, wall + 26 * hour
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _local(middle, zone) < wall else (low, middle)
    return high


def _local(time: int, zone: ZoneInfo) -> int:
    """What clocks show, as microseconds since they showed the start of 1970."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time)
    shown = moment.astimezone(zone).replace(tzinfo=UTC)
    return (shown - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _sessions(times: Sequence[int], window: Session) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for time in sorted(times):
        if found and time < found[-1][1]:
            found[-1] = (found[-1][0], time + window.gap_us)
        else:
            found.append((time, time + window.gap_us))
    return found


WINDOW: dict[type[Window], Callable[[Sequence[int], Any], list[tuple[int, int]]]] = {
    Sliding: _aligned,
    Session: _sessions,
}


# -- aggregates ------------------------------------------------------------------------------------

#: By name: ``f(function, values, dtype)`` of values that are not null, in event order. ``dtype`` is the type
#: of the result.
AGGREGATE: dict[str, Callable[[Any, list[Any], DataType], Any]] = {
    "count": lambda function, values, dtype: len(values),
    "count_distinct": lambda function, values, dtype: len({key_of([value]) for value in values}),
    "first": lambda function, values, dtype: values[0],
    "last": lambda function, values, dtype: values[-1],
    "min": lambda function, values, dtype: min(values, key=rank_of),
    "max": lambda function, values, dtype: max(values, key=rank_of),
    "sum": lambda function, values, dtype: wrapped(sum(values)) if dtype.is_integer else _total(values),
    "avg": lambda function, values, dtype: _mean(values),
    "variance": lambda function, values, dtype: _variance(values),
    "stddev": lambda function, values, dtype: _root(_variance(values)),
    "arg_min": lambda function, values, dtype: min(values, key=lambda pair: rank_of(pair[1]))[0],
    "arg_max": lambda function, values, dtype: max(values, key=lambda pair: rank_of(pair[1]))[0],
    "collect_list": lambda function, values, dtype: json.dumps(
        values[: function.limit], ensure_ascii=False, separators=(",", ":")
    ),
    "quantile": lambda function, values, dtype: _quantile(values, function.q),
}


def aggregate(what: Aggregate, values: list[Any], dtype: DataType) -> Value:
    """The aggregate of ``values`` (in event order, nulls included): tuples where it has several operands."""
    present = [value for value in values if value is not None and not (what.operands[1:] and None in value)]
    if not present:
        return what.function.of_none
    result: Value = AGGREGATE[what.function.name](what.function, present, dtype)
    return result


def aggregate_rows(what: Aggregate, rows: Sequence[Mapping[str, Any]], schema: Schema) -> Value:
    """The aggregate of rows in event order."""
    if what.where is not None:
        rows = [row for row in rows if evaluate(what.where, row, schema) is True]
    values = [tuple(evaluate(operand, row, schema) for operand in what.operands) for row in rows]
    single = len(what.operands) == 1
    return aggregate(what, [v[0] if single else v for v in values], what.result_type(schema).dtype)


def _total(values: list[Any]) -> float:
    if not all(math.isfinite(value) for value in values):
        return sum(float(value) for value in values)  # inf and NaN propagate as IEEE has it
    return _as_float(sum(map(Fraction, values), Fraction()))


def _mean(values: list[Any]) -> float:
    if not all(math.isfinite(value) for value in values):
        return _total(values)
    return _as_float(sum(map(Fraction, values), Fraction()) / len(values))


def _root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


def _variance(values: list[Any]) -> float | None:
    if len(values) < 2:
        return None
    if not all(math.isfinite(value) for value in values):
        return math.nan
    exact = [Fraction(value) for value in values]
    mean = sum(exact, Fraction()) / len(exact)
    return _as_float(sum(((value - mean) ** 2 for value in exact), Fraction()) / (len(exact) - 1))


def _quantile(values: list[Any], q: float) -> float:
    ranked = sorted((float(value) for value in values), key=rank_of)
    position = q * (len(ranked) - 1)
    below = math.floor(position)
    share = position - below
    if share == 0.0:
        return ranked[below]
    return ranked[below] + (ranked[below + 1] - ranked[below]) * share


def _as_float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
