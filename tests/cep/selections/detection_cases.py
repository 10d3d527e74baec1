"""Apps with a detector, and what they must find: written with loops over all pairs of events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import penstock as ps
from penstock.cep.selections.instances import Columns, Matches
from penstock.cep.selections.selections import Ints, Predicates
from penstock.cep.selections.splitter_pairs import Conjunction, Sequence, one_of
from penstock.cep.selections.splitter_rows import RowPredicates
from penstock.cep.selections.splitter_windows import TimeWindows, TupleWindows

Row = dict[str, Any]

SCHEMA = ps.Schema(ts="timestamp", kind="int64", tag="string?", key="int64", value="int64?")
TAGS = ("begins", "ends", None)  # by kind
OUTPUT = {"first": (0, "value"), "second": (1, "value"), "at": (1, "ts")}


class Rising:
    """Pairs (i, j) of a selection with a larger value at j; an absent value is 0."""

    def detect(self, columns: Columns, starts: Ints, stops: Ints) -> Matches:
        values = np.asarray(columns["value"])
        of, pairs = [], []
        for one, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
            for i in range(start, stop):
                for j in range(i + 1, stop):
                    if values[j] > values[i]:
                        of.append(one)
                        pairs.append((i, j))
        return Matches(np.array(of, np.int64), np.array(pairs, np.int64).reshape(-1, 2))


def in_order(rows: list[Row]) -> list[Row]:
    return [row for _, row in sorted(enumerate(rows), key=lambda pair: (pair[1]["ts"], pair[0]))]


def sequence_by_key(rows: list[Row]) -> list[tuple[int, int, int]]:
    """(start, stop, closer) of every selection, by number."""
    found = []
    for i, row in enumerate(rows):
        if row["kind"] == 0:
            ends = [
                j for j in range(i + 1, len(rows)) if rows[j]["kind"] == 1 and rows[j]["key"] == row["key"]
            ]
            found.append((i, ends[0] + 1, ends[0]) if ends else (i, len(rows), len(rows) - 1))
    return found


def conjunction(rows: list[Row]) -> list[tuple[int, int, int]]:
    found = []
    for i, row in enumerate(rows):
        if row["kind"] in (0, 1):
            ends = [j for j in range(i + 1, len(rows)) if rows[j]["kind"] == 1 - row["kind"]]
            found.append((i, ends[0] + 1, ends[0]) if ends else (i, len(rows), len(rows) - 1))
    return found


def tuple_windows(rows: list[Row]) -> list[tuple[int, int, int]]:
    starts = range(0, len(rows), 2)
    return [(i, min(i + 5, len(rows)), min(i + 5, len(rows)) - 1) for i in starts]


def time_windows(rows: list[Row]) -> list[tuple[int, int, int]]:
    found = []
    last = rows[-1]["ts"] if rows else 0
    for k in range(-10, last // 3 + 1):
        inside = [p for p, row in enumerate(rows) if 3 * k <= row["ts"] < 3 * k + 8]
        if inside:
            stop = inside[-1] + 1
            found.append((inside[0], stop, min(stop, len(rows) - 1)))
    return found


FAMILIES: dict[str, tuple[Callable[[], Predicates], Callable[[list[Row]], list[tuple[int, int, int]]]]] = {
    "sequence": (
        lambda: Sequence(one_of("tag", "begins"), one_of("tag", "ends"), by="key"),
        sequence_by_key,
    ),
    "rows": (
        lambda: RowPredicates(
            lambda event, state: event["tag"] == "begins",
            lambda selection, event, state: (
                event["tag"] == "ends" and event["key"] == selection.start_event["key"]
            ),
        ),
        sequence_by_key,
    ),
    "conjunction": (lambda: Conjunction(one_of("kind", 0), one_of("kind", 1)), conjunction),
    "tuple windows": (lambda: TupleWindows(5, 2), tuple_windows),
    "time windows": (lambda: TimeWindows(8, 3), time_windows),
}


def expected(rows: list[Row], family: str) -> list[Row]:
    """One detector, one selection after the other as they close."""
    events = in_order(rows)
    selections = sorted(
        (closer, number, start, stop)
        for number, (start, stop, closer) in enumerate(FAMILIES[family][1](events))
    )
    found: list[Row] = []
    for closer, _, start, stop in selections:
        for i in range(start, stop):
            for j in range(i + 1, stop):
                first, second = events[i]["value"], events[j]["value"]
                if (second or 0) > (first or 0):
                    found.append(
                        {
                            "sequence": len(found),
                            "closed_at": events[closer]["ts"],
                            "first": first,
                            "second": second,
                            "at": events[j]["ts"],
                        }
                    )
    return found


def app_of(
    rows: list[Row],
    family: str,
    degree: int | ps.Degree,
    assignment: str = "round_robin",
    sink: Any = None,
    detector: type[Rising] = Rising,
    partitions: int = 1,
) -> tuple[ps.App, Any]:
    """An app that detects, and its sink."""
    app = ps.App("detect")
    columns = {name: [row[name] for row in rows] for name in SCHEMA.names}
    source = ps.sources.Columns(columns, SCHEMA, partitions=partitions)
    events = app.source("events", source, event_time="ts", lateness="3us")
    found = events.detect(
        FAMILIES[family][0], detector, OUTPUT, degree=degree, assignment=assignment, name="matches"
    )
    sink = sink or ps.sinks.Memory()
    app.sink("out", found, sink)
    return app, sink


def rows_of(sink: ps.sinks.Memory) -> list[Row]:
    """In the order in which they were written."""
    return [{name: plain(value) for name, value in row.items()} for row in sink.rows()]


def plain(value: Any) -> Any:
    if hasattr(value, "timestamp"):
        return round(value.timestamp() * 1e6)
    return value


def make_rows(drawn: list[tuple[int, int, int, int, int | None]]) -> list[Row]:
    """Times that rise, disturbed by no more than the lateness."""
    now, rows = 10, []
    for step, back, kind, key, value in drawn:
        now += step
        rows.append({"ts": now + back, "kind": kind, "tag": TAGS[kind], "key": key, "value": value})
    return rows
