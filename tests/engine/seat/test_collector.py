from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import penstock as ps
from penstock.engine.seat import collector


def test_what_is_there_is_set_aside_until_the_last_run_ends() -> None:
    assert gc.get_freeze_count() == 0
    collector.begin_run()
    first = gc.get_freeze_count()
    assert first > 0
    made_meanwhile: list[Any] = [[] for _ in range(5_000)]
    collector.begin_run()
    assert gc.get_freeze_count() >= first + len(made_meanwhile)
    collector.end_run()
    assert gc.get_freeze_count() > 0
    collector.end_run()
    assert gc.get_freeze_count() == 0


def test_what_the_user_has_set_aside_stays_so() -> None:
    gc.freeze()
    try:
        collector.begin_run()
        collector.end_run()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_much_that_runs_have_left_is_collected_before_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    collections: list[str] = []
    monkeypatch.setattr(collector.gc, "collect", lambda: collections.append("full"))
    monkeypatch.setattr(collector, "_left_bytes", 0)
    monkeypatch.setattr(collector, "_left_runs", 0)
    for left_bytes in (0, 200 << 20, 0, 100 << 20, 0):
        collector.begin_run()
        collector.end_run(left_bytes)
    assert collections == ["full"]  # before the last
    for _ in range(102):
        collector.begin_run()
        collector.end_run()
    assert collections == ["full", "full"]


def test_the_blocks_of_a_run_are_freed_with_it() -> None:
    app = ps.App("numbers")
    source = ps.sources.Columns({"ts": list(range(1000))}, {"ts": "timestamp"})
    app.sink("out", app.source("numbers", source, event_time="ts"), ps.sinks.Discard())
    execution = ps.Node(workers=1).start(app.graph())
    assert execution.wait(30)
    memory = [
        weakref.ref(column.base)
        for vertex in execution._vertices
        for outlet in vertex.outlets
        for column in outlet.columns
    ]
    assert memory
    execution.finish()
    assert [kept() for kept in memory] == [None] * len(memory)


def test_a_run_sets_aside_and_gives_back() -> None:
    seen: list[int] = []
    app = ps.App("numbers")
    source = ps.sources.Columns({"ts": [1, 2, 3]}, {"ts": "timestamp"})
    stream = app.source("numbers", source, event_time="ts")
    app.sink("seen", stream, ps.sinks.Callback(lambda rows: seen.append(gc.get_freeze_count())))
    app.run(on=ps.Node(workers=1))
    assert seen[0] > 0
    assert gc.get_freeze_count() == 0
