"""Parallel detection gives what one detector gives: the same matches in the same order, whatever the
degree, its changes, the policy, the threads and the cuts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.cep.degree_control import DegreeControl
from penstock.cep.instances import Columns, Matches
from penstock.cep.selections import Ints, Predicates
from penstock.cep.splitter_operator import SplitterOperator
from penstock.cep.splitter_pairs import Conjunction, Sequence, one_of
from penstock.cep.splitter_rows import RowPredicates
from penstock.cep.splitter_windows import TimeWindows, TupleWindows
from penstock.engine.execution import Execution
from penstock.engine.settings import Settings
from penstock.metrics.degree import DegreeMetrics
from penstock.query.detecting import ASSIGNMENTS
from penstock.scaling.planner import QueueingPlanner
from penstock.scaling.profiles import measure_profile
from penstock.scaling.slices import Slicing

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


def app_of(rows: list[Row], family: str, degree: int | ps.Degree, assignment: str) -> tuple[ps.App, Any]:
    """An app that detects, and its sink."""
    app = ps.App("detect")
    columns = {name: [row[name] for row in rows] for name in SCHEMA.names}
    source = ps.sources.Columns(columns, SCHEMA)
    events = app.source("events", source, event_time="ts", lateness="3us")
    found = events.detect(
        FAMILIES[family][0], Rising, OUTPUT, degree=degree, assignment=assignment, name="matches"
    )
    sink = ps.sinks.Memory()
    app.sink("out", found, sink)
    return app, sink


def run(
    rows: list[Row],
    family: str,
    node: ps.Node,
    degree: int | ps.Degree = 1,
    assignment: str = "round_robin",
) -> tuple[list[Row], Any]:
    app, sink = app_of(rows, family, degree, assignment)
    summary = node.run(app.graph())
    return rows_of(sink), summary


def rows_of(sink: ps.sinks.Memory) -> list[Row]:
    """In the order in which they were written."""
    return [{name: _plain(value) for name, value in row.items()} for row in sink.rows()]


def _plain(value: Any) -> Any:
    if hasattr(value, "timestamp"):
        return round(value.timestamp() * 1e6)
    return value


drawn_row = st.tuples(
    st.integers(0, 3),
    st.integers(-3, 0),
    st.integers(0, 2),
    st.integers(0, 2),
    st.none() | st.integers(0, 9),
)
rows_strategy = st.lists(drawn_row, max_size=50)


def make_rows(drawn: list[tuple[int, int, int, int, int | None]]) -> list[Row]:
    """Times that rise, disturbed by no more than the lateness."""
    now, rows = 10, []
    for step, back, kind, key, value in drawn:
        now += step
        rows.append({"ts": now + back, "kind": kind, "tag": TAGS[kind], "key": key, "value": value})
    return rows


nodes = st.builds(
    ps.Node,
    workers=st.integers(1, 3),
    scheduling=st.sampled_from(["state", "congestion", "round_robin"]),
    block_events=st.integers(2, 64),
    source_batch=st.integers(1, 20),
    threads=st.sampled_from(["pool", "pool", "per_operator"]),
    memory=st.sampled_from(["blocks", "queues"]),
)


@pytest.mark.parametrize("family", FAMILIES)
def test_parallel_is_sequential_whatever_the_degree_and_its_changes(family: str) -> None:
    @settings(deadline=None, max_examples=15)
    @given(
        rows_strategy,
        nodes,
        st.integers(1, 5),
        st.lists(st.tuples(st.integers(0, 50), st.integers(1, 5)), max_size=6),
        st.sampled_from(ASSIGNMENTS),
    )
    def check(
        drawn: list[tuple[int, int, int, int, int | None]],
        node: ps.Node,
        start: int,
        changes: list[tuple[int, int]],
        assignment: str,
    ) -> None:
        rows = make_rows(drawn)
        found, summary = run(rows, family, node, ps.Degree(start, 5, tuple(changes)), assignment)
        assert found == expected(rows, family)
        degrees = summary.metrics.degrees
        assert all(1 <= one.observed == one.requested <= one.most for one in degrees.values())
        assert set(degrees) == ({"matches"} if rows else set())

    check()


def test_the_degree_changes_where_it_is_asked_to_and_buffers_are_freed() -> None:
    rows = make_rows([(1, 0, n % 2, n % 3, n % 7) for n in range(3000)])
    degree = ps.Degree(1, 4, ((500, 4), (1000, 2), (1500, 3)))
    app, sink = app_of(rows, "sequence", degree, "round_robin")
    execution = Execution(app.graph(), Settings(workers=2, source_batch=50, block_events=64))
    execution.start()
    assert execution.wait(300)
    summary = execution.finish()
    assert rows_of(sink) == expected(rows, "sequence")
    splitter = next(v.operator for v in execution._vertices if v.operator.id == "matches.splitter")
    assert isinstance(splitter, SplitterOperator)
    assert splitter.degrees_seen == [1, 4, 2, 3]
    assert splitter._buffer.events < 3000
    busy = {one.id: one.emitted for one in summary.metrics.operators if ".instance" in one.id}
    assert all(busy[f"matches.instance{number}"] > 0 for number in range(4))
    assert summary.metrics.degrees == {"matches": DegreeMetrics(3, 3, 3, 4)}
    assert "'matches': degree 3" in str(summary)


def test_queueing_theory_sets_the_degree_of_a_running_detector() -> None:
    """100 events a second of 20 ms offer a load of 2, then 200 of 40 ms one of 8."""
    profile = measure_profile("rising", [100.0, 200.0], lambda rate: np.full(20, 0.02 * (rate / 100.0)))
    random = np.random.default_rng(6)
    between = np.concatenate((random.exponential(0.01, 1000), random.exponential(0.005, 1000)))
    times = np.cumsum(between * 1e6).astype(int).tolist()
    rows = [
        {"ts": ts, "kind": n % 2, "tag": TAGS[n % 2], "key": n % 3, "value": n % 5}
        for n, ts in enumerate(times)
    ]
    control = ps.Degree(
        most=6, control=lambda: DegreeControl(QueueingPlanner(profile), Slicing(arrivals=250))
    )
    node = ps.Node(workers=2, source_batch=100, block_events=64)
    found, summary = run(rows, "sequence", node, control)
    assert found == expected(rows, "sequence")
    told = summary.metrics.degrees["matches"]
    assert told.planned in (8, 9, 10)  # what it would take
    assert (told.requested, told.observed, told.most) == (6, 6, 6)
    assert "degree 6, requested 6, planned" in str(told)
