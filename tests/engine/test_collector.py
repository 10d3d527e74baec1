from __future__ import annotations

import gc
from typing import Any

import penstock as ps
from penstock.engine import collector


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


def test_a_run_sets_aside_and_gives_back() -> None:
    seen: list[int] = []
    app = ps.App("numbers")
    source = ps.sources.Columns({"ts": [1, 2, 3]}, {"ts": "timestamp"})
    stream = app.source("numbers", source, event_time="ts")
    app.sink("seen", stream, ps.sinks.Callback(lambda rows: seen.append(gc.get_freeze_count())))
    app.run(on=ps.Node(workers=1))
    assert seen[0] > 0
    assert gc.get_freeze_count() == 0
