"""A function or sink that never returns, on Spark: a stopped run ends, names it, and the next one goes on."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.query.errors import QueryError, RunError
from penstock.spark.batches.run import SparkRun
from penstock.spark.batches.stuck import Grace, TurnNotes
from penstock.state.store import StateStore
from tests.spark.disturbed import BATCH_EVENTS, Rows, build, expected, rows_of, wait_for

SCHEMA = ps.Schema(ts="timestamp", number="int64")
EVENTS, FATAL = 60, 35


@pytest.fixture(scope="module")
def undisturbed() -> Rows:
    return expected()


@dataclass(frozen=True)
class Stays:
    """Does not return from one event, as long as the pipe ``gate`` has no writer."""

    folder: Path

    def __call__(self, event: dict[str, Any]) -> Iterable[dict[str, Any]]:
        if event["number"] == FATAL and (self.folder / "gate").exists():
            (self.folder / "entered").touch()
            with (self.folder / "gate").open():  # opening a pipe waits for a writer
                pass
        return [event]


class Gate:
    """A sink's function that stays in its first call until it is opened."""

    def __init__(self) -> None:
        self.entered, self.opened, self.left = threading.Event(), threading.Event(), threading.Event()

    def __call__(self, row: object) -> None:
        if not self.left.is_set():
            self.entered.set()
            self.opened.wait()
            self.left.set()


def _app(
    function: Callable[[dict[str, Any]], Iterable[dict[str, Any]]] | None, gate: Gate | None
) -> tuple[ps.App, ps.sinks.Memory]:
    app, sink = ps.App("hanging"), ps.sinks.Memory()
    data = {"ts": [n * 1_000 for n in range(EVENTS)], "number": list(range(EVENTS))}
    events = app.source("events", ps.sources.Columns(data, SCHEMA), event_time="ts")
    if function is not None:
        events = events.flat_map(function, {"ts": "timestamp", "number": "int64"}, name="stays")
    app.sink("rows", events, sink)
    if gate is not None:
        app.sink("hung", events, ps.sinks.Callback(gate))
    return app, sink


def _stopped(run: SparkRun) -> RunError:
    run.stop()
    assert run.wait(60)
    with pytest.raises(RunError) as raised:
        run.finish()
    return raised.value


def _numbers(sink: ps.sinks.Memory) -> list[int]:
    return sorted(row["number"] for row in sink.rows())


@pytest.mark.parametrize("tasks", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_function_that_hangs_in_a_task_is_named_and_its_batch_comes_again(
    tasks: int, spark: SparkSession, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "gate")
    app, sink = _app(Stays(tmp_path), None)
    runtime = ps.Spark(
        checkpoint=tmp_path / "checkpoint", batch_events=10, tasks=tasks, stop_grace="2s", restarts=0
    )
    run = runtime.start(app.graph(), app.name)
    wait_for(lambda: run.wait(0.01) or (tmp_path / "entered").exists(), "the function to hang")
    error = _stopped(run)
    assert "the run was stopped and step 'stays' did not come back within 2 s" in str(error)
    committed = StateStore(tmp_path / "checkpoint" / "state").latest()
    assert committed is not None
    assert committed.batches == 3
    assert _numbers(sink) == list(range(30))

    (tmp_path / "gate").unlink()
    assert app.run(on=runtime).complete
    assert _numbers(sink) == list(range(EVENTS))


def test_a_sink_that_hangs_is_named_and_its_batch_never_counts(spark: SparkSession, tmp_path: Path) -> None:
    gate = Gate()
    app, sink = _app(None, gate)
    runtime = ps.Spark(checkpoint=tmp_path / "checkpoint", batch_events=10, stop_grace="100ms")
    run = runtime.start(app.graph(), app.name)
    wait_for(lambda: run.wait(0.01) or gate.entered.is_set(), "the sink to hang")
    error = _stopped(run)
    assert "the run was stopped and the sink of query 'hung' did not come back within 0.1 s" in str(error)

    gate.opened.set()
    assert gate.left.wait(60)
    assert app.run(on=runtime).complete
    assert _numbers(sink) == list(range(EVENTS))


@pytest.mark.slow
def test_a_batch_that_ends_within_the_grace_time_counts(
    spark: SparkSession, undisturbed: Rows, tmp_path: Path
) -> None:
    app, sinks = build()
    runtime = ps.Spark(checkpoint=tmp_path / "checkpoint", batch_events=BATCH_EVENTS)
    run = runtime.start(app.graph(), app.name)
    wait_for(lambda: run.wait(0.01) or run.batches, "a batch")
    run.stop()
    assert not run.finish().complete
    assert app.run(on=replace(runtime, stop_grace=None)).complete
    assert rows_of(sinks) == undisturbed


def test_what_was_noted_before_the_stop_is_forgotten(tmp_path: Path) -> None:
    notes = TurnNotes(str(tmp_path))
    (tmp_path / "old.turn").write_text('["gone"]')
    (tmp_path / "other.rows").touch()
    notes.forget()
    (tmp_path / "new.turn").write_text('["slow", "slower"]')
    assert notes.steps() == ["slow", "slower"]
    assert (tmp_path / "other.rows").exists()


def test_a_lock_that_is_free_is_taken_whatever_the_grace_time() -> None:
    grace = Grace(None)
    grace.begin()
    assert grace.acquire(threading.Lock())


def test_sinks_are_named_before_steps(tmp_path: Path) -> None:
    (tmp_path / "new.turn").write_text('["slow"]')
    told = str(Grace(5).error(["b", "a"], TurnNotes(str(tmp_path))))
    assert "the sink of query 'a' and the sink of query 'b' did not come back within 5 s" in told


def test_a_grace_time_that_is_none_is_refused() -> None:
    with pytest.raises(QueryError, match="stop_grace must be positive"):
        ps.Spark(stop_grace="0s")
