"""Runs of the node engine: they end, they stop, they fail with a name, they measure themselves."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import col, count, tumbling
from penstock.engine.node import Node
from penstock.engine.seat.execution import Execution
from penstock.metrics.turns import TurnLog
from penstock.query.errors import PenstockError, RunError

EVENTS = 2_000
SCHEMA = {"ts": "timestamp", "x": "int64"}


def fill(offset: int, n: int, columns: dict[str, Any], start: int) -> None:
    columns["ts"][start : start + n] = np.arange(offset, offset + n) * 1_000
    columns["x"][start : start + n] = np.arange(offset, offset + n)


def numbers(limit: int | None = EVENTS) -> ps.sources.Generator:
    return ps.sources.Generator(fill, SCHEMA, limit=limit)


def small(**settings: Any) -> Node:
    return Node(**{"workers": 2, "block_events": 16, "chunk_blocks": 2, "max_chunks": 2, **settings})


def test_a_bounded_run_ends_complete_with_every_window_closed() -> None:
    app, sink = ps.App("a"), ps.sinks.Memory()
    stream = app.source("numbers", numbers(), event_time="ts")
    app.sink("odd", stream.filter(col("x") % 2 == 1).window(tumbling("1s")).agg(n=count()), sink)
    summary = app.run(on=small())
    assert summary.complete
    assert [row["n"] for row in sorted(sink.rows(), key=lambda row: row["window_start"])] == [500, 500]
    assert (summary.metrics.read, summary.metrics.written) == (EVENTS, 2)
    assert summary.open_windows == 0
    assert "complete after" in str(summary)


def test_metrics_name_every_operator_and_count_what_passed() -> None:
    app = ps.App("a")
    stream = app.source("numbers", numbers(), event_time="ts")
    app.sink("even", stream.filter(col("x") % 2 == 0, name="evens"), ps.sinks.Memory())
    metrics = app.run(on=small()).metrics
    assert [operator.id for operator in metrics.operators] == ["numbers", "evens", "even"]
    evens = metrics["evens"]
    assert (evens.processed, evens.emitted, evens.selectivity, evens.pending) == (EVENTS, EVENTS // 2, 0.5, 0)
    assert evens.cost_ns > 0
    assert metrics["even"].processed == EVENTS // 2


@pytest.mark.parametrize("settings", [{}, {"threads": "per_operator"}, {"binding": "greedy"}])
def test_a_turn_log_has_every_turn_and_what_it_sent(settings: dict[str, Any]) -> None:
    app, log = ps.App("a"), TurnLog()
    stream = app.source("numbers", numbers(), event_time="ts")
    app.sink("even", stream.filter(col("x") % 2 == 0, name="evens"), ps.sinks.Memory())
    metrics = app.run(on=small(turn_log=log, **settings)).metrics
    assert sorted(log.turns) == ["even", "evens", "numbers"]
    for operator in metrics.operators:
        turns = log.turns[operator.id]
        assert sum(turn.taken for turn in turns) == operator.processed
        assert len(turns) == operator.turns
        assert [turn.began_ns for turn in turns] == sorted(turn.began_ns for turn in turns)
    assert sum(turn.emitted for turn in log.turns["evens"]) == EVENTS // 2


def test_workers_count_how_often_they_decide() -> None:
    app = ps.App("a")
    app.sink("all", app.source("numbers", numbers(), event_time="ts"), ps.sinks.Memory())
    assert app.run(on=small()).metrics.decisions > 0


def test_latency_markers_reach_every_sink_and_are_timed() -> None:
    app = ps.App("a")
    stream = app.source("numbers", numbers(), event_time="ts")
    app.sink("all", stream, ps.sinks.Memory())
    app.sink("windows", stream.window(tumbling("1h")).agg(n=count()), ps.sinks.Memory())
    metrics = app.run(on=small()).metrics
    assert metrics.latency["all"].count >= 1
    assert (
        metrics.latency["windows"].count == metrics.latency["all"].count
    )  # windows let markers pass at once
    assert metrics.latency["all"].largest_ns > 0


def test_a_slow_reader_holds_the_source_back_within_the_cap() -> None:
    held = threading.Semaphore(0)
    blocked = threading.Event()
    app = ps.App("a")
    stream = app.source("numbers", numbers(None), event_time="ts")
    taken: list[int] = []

    def slow(rows: list[dict[str, Any]]) -> None:
        blocked.set()
        held.acquire()
        taken.extend(row["x"] for row in rows)

    app.sink("slow", stream, ps.sinks.Callback(slow))
    execution = small(workers=1).start(app.graph())
    assert blocked.wait(30)
    metrics = execution.metrics()
    assert metrics["numbers"].emitted <= 2 * 2 * 16  # two chunks of two blocks of 16 events
    assert metrics.memory_bytes <= metrics.memory_cap_bytes
    execution.stop()
    held.release(1_000_000)
    assert execution.wait(30)
    execution.finish()
    assert taken == list(range(len(taken)))
    assert len(taken) == execution.metrics().read


def test_stop_drains_what_is_under_way_and_leaves_open_windows_unwritten() -> None:
    started = threading.Event()
    seen: list[int] = []

    def note(rows: list[dict[str, Any]]) -> None:
        seen.extend(row["x"] for row in rows)
        started.set()

    app, windows = ps.App("a"), ps.sinks.Memory()
    stream = app.source("numbers", numbers(None), event_time="ts")
    app.sink("all", stream, ps.sinks.Callback(note))
    app.sink("days", stream.window(tumbling("100000d")).agg(n=count()), windows)
    execution = small().start(app.graph())
    assert started.wait(30)
    execution.stop()
    assert execution.wait(30)
    summary = execution.finish()
    assert not summary.complete
    assert len(seen) == summary.metrics.read  # nothing lost
    assert windows.rows() == []
    assert summary.open_windows == 1
    assert "windows not whole" in str(summary)


def test_a_function_that_raises_stops_the_run_and_is_named_with_the_event() -> None:
    def unlucky(event: dict[str, Any]) -> list[dict[str, Any]]:
        if event["x"] == 13:
            raise ValueError("thirteen")
        return [event]

    app = ps.App("a")
    stream = app.source("numbers", numbers(), event_time="ts")
    app.sink("out", stream.flat_map(unlucky, output=SCHEMA, name="luck"), ps.sinks.Memory())
    with pytest.raises(RunError) as raised:
        app.run(on=small())
    for part in ("luck", "unlucky", "thirteen", "13"):
        assert part in str(raised.value)


def test_a_sink_that_raises_stops_the_run_and_is_named() -> None:
    def full(rows: list[dict[str, Any]]) -> None:
        raise OSError("disk is full")

    app = ps.App("a")
    app.sink("out", app.source("numbers", numbers(None), event_time="ts"), ps.sinks.Callback(full))
    with pytest.raises(RunError, match=r"step 'out' failed: OSError: disk is full"):
        app.run(on=small())


def test_no_thread_is_left_behind() -> None:
    before = set(threading.enumerate())
    app = ps.App("a")
    app.sink("out", app.source("numbers", numbers(), event_time="ts"), ps.sinks.Discard())
    app.run(on=small(workers=3))
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": -1}, "workers must be at least 0: got -1"),
        ({"max_chunks": 1}, "max_chunks must be at least 2: got 1"),
        ({"marker_every_ms": 0}, "marker_every_ms must be at least 1: got 0"),
        ({"block_events": 0}, "block_events must be at least 1: got 0"),
        ({"block_events": 1.5}, "block_events must be at least 1: got 1.5"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(PenstockError, match=message):
        Node(**settings)


def test_an_unknown_policy_is_refused_before_anything_starts() -> None:
    app = ps.App("a")
    app.sink("out", app.source("numbers", numbers(), event_time="ts"), ps.sinks.Discard())
    with pytest.raises(PenstockError, match="unknown policy: 'fastest'"):
        Execution(app.graph(), Node(scheduling="fastest"))


def test_partitions_of_a_source_are_read_side_by_side_and_count_as_one_operator() -> None:
    rows = [{"ts": i * 1_000, "x": i} for i in range(900)]
    app, sink = ps.App("a"), ps.sinks.Memory()
    source = ps.sources.Rows(rows, SCHEMA, partitions=3, ordered=True)
    stream = app.source("rows", source, event_time="ts")
    app.sink("windows", stream.window(tumbling("300ms")).agg(n=count(), first=ps.first("x")), sink)
    execution = Execution(app.graph(), small(workers=2))
    execution.start()
    assert execution.wait(30)
    metrics = execution.finish().metrics
    assert [operator.kind for operator in metrics.operators] == ["source", "agg", "sink"]
    assert metrics["rows"].processed == metrics.read == 900
    found = sorted((row["window_start"], row["n"], row["first"]) for row in sink.rows())
    assert found == [(0, 300, 0), (300_000, 300, 300), (600_000, 300, 600)]
