"""Events, aggregates and plain-Python results that the tests of all windowed operators share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import strategies as st

from penstock.memory.layout import LATE, ORDER, SUB
from penstock.query.aggregates import (
    Aggregate,
    arg_max,
    arg_min,
    avg,
    collect_list,
    count,
    count_distinct,
    first,
    last,
    max_,
    median,
    min_,
    quantile,
    stddev,
    sum_,
    variance,
)
from penstock.query.expr import col
from penstock.query.types import Schema
from tests.harness import Harness, layout, same
from tests.reference_aggregates import aggregate_rows, key_of, windows_over

NAN, INF = math.nan, math.inf
TYPES = {
    "ts": "timestamp",
    "town": "string?",
    "lane": "int32",
    "speed": "float64?",
    "load": "int64?",
    "share": "float32",
    "seen": "bool?",
}
INPUT = layout(TYPES, "ts", [ORDER, SUB, LATE])

EVERYTHING = {
    "n": count(),
    "speeds": count("speed"),
    "loads": sum_("load"),
    "speed_sum": sum_("speed"),
    "speed_min": min_("speed"),
    "speed_max": max_("speed"),
    "lane_min": min_("lane"),
    "lane_max": max_("lane"),
    "share_max": max_("share"),
    "ts_max": max_("ts"),
    "speed_avg": avg("speed"),
    "lane_avg": avg("lane"),
    "load_avg": avg("load"),
    "speed_var": variance("speed"),
    "speed_dev": stddev("speed"),
    "lane_var": variance("lane"),
    "town_first": first("town"),
    "town_last": last("town"),
    "speed_first": first("speed"),
    "towns": count_distinct("town"),
    "speeds_distinct": count_distinct("speed"),
    "half": median("speed"),
    "lane_high": quantile("lane", 0.9),
    "doubled": sum_(col("lane") * 2),
    "fastest": arg_max("town", "speed"),
    "lightest": arg_min("speed", "load"),
    "least_lane": arg_min("share", "lane", where=col("speed") > 1.0),
    "lanes": collect_list("lane", 3),
    "fast_shares": collect_list("share", 100, where=col("speed") > 1.0),
    "towns_listed": collect_list("town", 2),
    "fast": count(where=col("speed") > 1.0),
    "seen_loads": sum_("load", where=col("seen")),
    "seen_lane": max_("lane", where=~col("seen")),
    "odd_first": first("town", where=col("lane") % 2 == 1),
    "fast_towns": count_distinct("town", where=col("speed") > 1.0),
}

EVENT = st.fixed_dictionaries(
    {
        "ts": st.integers(-40, 40) | st.integers(-400, 400),
        "town": st.sampled_from([None, "a", "b"]),
        "lane": st.integers(-2, 2) | st.sampled_from([2**31 - 1, -(2**31)]),
        "speed": st.none() | st.integers(-9, 9).map(float) | st.sampled_from([NAN, INF, -0.0, 0.1]),
        "load": st.none() | st.integers(-5, 5) | st.sampled_from([2**63 - 1, -(2**63)]),
        "share": st.sampled_from([0.5, -0.25, 3.0]),
        "seen": st.sampled_from([None, True, False]),
        LATE: st.integers(0, 9).map(lambda number: number == 0),
    }
)


def aggregate_types(keys: Sequence[str], aggregates: dict[str, Aggregate]) -> dict[str, str]:
    """The columns that a windowed aggregate emits."""
    types = {key: TYPES[key] for key in keys} | {"window_start": "timestamp", "window_end": "timestamp"}
    schema = Schema.of(TYPES)
    for name, one in aggregates.items():
        result = one.result_type(schema)
        types[name] = f"{result.dtype}{'?' if result.nullable else ''}"
    return types


def values(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def expected_rows(
    window: Any, keys: Sequence[str], aggregates: dict[str, Aggregate], events: list[dict[str, Any]]
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """What the step must emit, by key, start and end."""
    schema = Schema.of(TYPES)
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for event in sorted(events, key=lambda event: (event["ts"], event[ORDER])):
        if not event[LATE]:
            groups.setdefault(key_of(event[key] for key in keys), []).append(event)
    rows = {}
    for key, members in groups.items():
        for start, end in windows_over([event["ts"] for event in members], window):
            inside = [event for event in members if start <= event["ts"] < end]
            row: dict[str, Any] = {}
            for name, one in aggregates.items():
                row[name] = aggregate_rows(one, inside, schema)
            rows[(*key, start, end)] = row
    return rows


def assert_same_rows(
    found: list[dict[str, Any]], keys: Sequence[str], expected: dict[tuple[Any, ...], dict[str, Any]]
) -> None:
    by_key = {
        (*key_of(row[key] for key in keys), row["window_start"], row["window_end"]): row for row in found
    }
    assert len(by_key) == len(found)
    assert by_key.keys() == expected.keys()
    for key, row in expected.items():
        for name, value in row.items():
            got = by_key[key][name]
            close = isinstance(value, float) and got == pytest.approx(value, rel=1e-9, abs=1e-12)
            assert close or same(got, value), (key, name, got, value)
    ends = [row["window_end"] for row in found]
    assert ends == sorted(ends)


def run_in_pieces(harness: Harness, events: list[dict[str, Any]], cuts: list[int]) -> None:
    """Feeds events in the order of the list, with a watermark that is true after each cut."""
    position = 0
    for cut in sorted({min(cut, len(events)) for cut in cuts}):
        harness.feed(events[position:cut])
        position = cut
        on_time = [event["ts"] for event in events[cut:] if not event[LATE]]
        if on_time:
            harness.watermark(min(on_time))
    harness.feed(events[position:])
    harness.end()
