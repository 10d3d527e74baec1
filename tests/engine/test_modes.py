"""The baselines of the ablation: a thread per operator, queues of fresh batches, at any hand-over size."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import col, count, tumbling
from penstock.engine.node import Node
from penstock.engine.seat.assembly import assemble
from penstock.engine.seat.inline import InlineEngine
from penstock.engine.seat.settings import Settings
from penstock.memory.coordinator import MemoryCoordinator
from penstock.query.errors import PenstockError, RunError
from penstock.scheduling.catalogue import POLICIES, policy_named
from tests.scheduling.dispatch.checked import Checked

EVENTS = 3_000
SCHEMA = {"ts": "timestamp", "x": "int64"}
MODES = [(threads, memory) for threads in ("pool", "per_operator") for memory in ("blocks", "queues")]


def fill(offset: int, n: int, columns: dict[str, Any], start: int) -> None:
    columns["ts"][start : start + n] = np.arange(offset, offset + n) * 1_000
    columns["x"][start : start + n] = np.arange(offset, offset + n)


def app_of(limit: int | None, rate: float | None = None) -> tuple[ps.App, ps.sinks.Memory]:
    app, sink = ps.App("a"), ps.sinks.Memory()
    source = ps.sources.Generator(fill, SCHEMA, limit=limit, rate=rate)
    stream = app.source("numbers", source, event_time="ts")
    app.sink("odd", stream.filter(col("x") % 2 == 1).window(tumbling("1s")).agg(n=count()), sink)
    app.sink("all", stream, ps.sinks.Discard())
    return app, sink


@pytest.mark.parametrize(("threads", "memory"), MODES)
@pytest.mark.parametrize("block_events", [1, 384, 65_536])
def test_every_mode_gives_the_same_rows_at_every_hand_over_size(
    threads: str, memory: str, block_events: int
) -> None:
    app, sink = app_of(EVENTS)
    node = Node(workers=2, threads=threads, memory=memory, block_events=block_events, scheduling="state")
    summary = app.run(on=node)
    assert summary.complete
    assert sorted((row["window_start"], row["n"]) for row in sink.rows()) == [
        (0, 500),
        (1_000_000, 500),
        (2_000_000, 500),
    ]
    assert summary.metrics.latency["all"].count >= 1  # markers pass in every mode


@pytest.mark.parametrize(("threads", "memory"), MODES)
def test_stop_drains_what_is_under_way(threads: str, memory: str) -> None:
    started = threading.Event()
    seen: list[int] = []

    def note(rows: list[dict[str, Any]]) -> None:
        seen.extend(row["x"] for row in rows)
        started.set()

    app = ps.App("a")
    stream = app.source("numbers", ps.sources.Generator(fill, SCHEMA), event_time="ts")
    app.sink("out", stream, ps.sinks.Callback(note))
    execution = Node(workers=2, threads=threads, memory=memory, block_events=16).start(app.graph())
    assert started.wait(30)
    execution.stop()
    assert execution.wait(30)
    summary = execution.finish()
    assert seen == list(range(summary.metrics.read))


@pytest.mark.parametrize("threads", ["pool", "per_operator"])
def test_a_source_that_waits_for_its_next_event_can_be_stopped(threads: str) -> None:
    app, _ = app_of(None, rate=0.001)  # the first event is due in a quarter of an hour
    execution = Node(workers=2, threads=threads).start(app.graph())
    execution.stop()
    assert execution.wait(30)
    assert execution.finish().metrics.read == 0


@pytest.mark.parametrize(("threads", "memory"), MODES)
def test_an_error_ends_every_thread_and_names_the_step(threads: str, memory: str) -> None:
    def full(rows: list[dict[str, Any]]) -> None:
        raise OSError("disk is full")

    before = set(threading.enumerate())
    app = ps.App("a")
    stream = app.source("numbers", ps.sources.Generator(fill, SCHEMA), event_time="ts")
    app.sink("out", stream, ps.sinks.Callback(full))
    with pytest.raises(RunError, match=r"step 'out' failed: OSError: disk is full"):
        app.run(on=Node(workers=2, threads=threads, memory=memory))
    assert set(threading.enumerate()) <= before


def test_a_thread_per_operator_is_a_thread_per_operator() -> None:
    held, entered = threading.Event(), threading.Event()

    def wait(rows: list[dict[str, Any]]) -> None:
        entered.set()
        held.wait(30)

    app = ps.App("a")
    stream = app.source("numbers", ps.sources.Generator(fill, SCHEMA, limit=100), event_time="ts")
    app.sink("out", stream.filter(col("x") >= 0, name="every"), ps.sinks.Callback(wait))
    execution = Node(threads="per_operator").start(app.graph())
    assert entered.wait(30)
    names = {thread.name for thread in threading.enumerate()}
    assert "penstock-out" in names
    held.set()
    assert execution.wait(30)
    execution.finish()


def test_queues_give_their_batches_up_when_they_are_read() -> None:
    app, _ = app_of(EVENTS)
    metrics = app.run(on=Node(workers=2, memory="queues", block_events=64)).metrics
    assert metrics["numbers"].blocks_in_use <= 1  # the last batch stays until another follows
    assert metrics.memory_bytes < metrics.memory_cap_bytes


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"threads": "many"}, "threads must be 'pool' or 'per_operator': got 'many'"),
        ({"memory": "heap"}, "memory must be 'blocks' or 'queues': got 'heap'"),
        ({"costs": "most"}, "costs must be 'least' or 'mean': got 'most'"),
        ({"consumption": "most"}, "unknown consumption: 'most'"),
    ],
)
def test_modes_that_do_not_exist_are_refused(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(PenstockError, match=message):
        Node(**setting)


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_workers_run_what_the_model_of_the_dispatcher_gives_out(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.engine.dispatch.desk.Dispatcher", Checked)
    before = Checked.exchanges
    app, sink = app_of(EVENTS)
    app.run(on=Node(workers=2, scheduling=name, block_events=32, turn_blocks=1))
    assert sorted(row["n"] for row in sink.rows()) == [500, 500, 500]
    assert Checked.exchanges > before


@pytest.mark.parametrize("name", [None, *sorted(POLICIES)])
def test_turns_in_one_thread_give_the_same_rows_in_the_order_of_any_policy(name: str | None) -> None:
    app, sink = app_of(EVENTS)
    settings = Settings(workers=1, block_events=32)
    vertices = assemble(app.graph(), settings, MemoryCoordinator(background=False))
    for vertex in vertices:
        if hasattr(vertex.operator, "open"):
            vertex.operator.open()
    InlineEngine(vertices, settings.turn_limit, None if name is None else policy_named(name)).run()
    assert sorted(row["n"] for row in sink.rows()) == [500, 500, 500]
    assert all(vertex.finished for vertex in vertices)
