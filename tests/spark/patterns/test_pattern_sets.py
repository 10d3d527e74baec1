"""Pattern sets on Spark: each pattern sees the events between its addition and its removal, whatever the
tasks and the batches."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import penstock as ps
from penstock.checkpoints.pattern_log import SetLog
from penstock.engine.seat.settings import Settings
from penstock.query.patterns.sets import PatternChange
from penstock.query.patterns.texts import pattern_of
from penstock.state.manifest import Manifest
from tests.cep.patterns.strategies import SCHEMA
from tests.cep.patterns.test_match_set import PATTERNS, change
from tests.spark.in_process import InProcess
from tests.spark.patterns import pattern_set_app

Rows = list[dict[str, Any]]

engines = st.builds(Settings, block_events=st.sampled_from((4, 64, 1024)), turn_blocks=st.integers(1, 3))
Change = tuple[str, str, bool]  # what, the pattern, and whether at a time of its own
kinds = st.sampled_from(("add", "add", "add", "remove"))
changed = st.lists(st.tuples(kinds, st.sampled_from(sorted(PATTERNS)), st.booleans()), min_size=1, max_size=3)


def small_app(rows: Rows, keys: tuple[str, ...]) -> tuple[ps.App, ps.PatternSet, ps.sinks.Memory]:
    app, patterns, sink = ps.App("live"), ps.PatternSet({"x": "int64"}), ps.sinks.Memory()
    source = ps.sources.Rows(rows, SCHEMA, partitions=2)
    events: Any = app.source("events", source, event_time="ts", lateness="3us")
    app.sink("found", (events.key_by(*keys) if keys else events).match_set(patterns, name="set"), sink)
    return app, patterns, sink


def drawn_rows(choose: random.Random) -> Rows:
    """In no order, but hardly late."""
    now, rows = choose.choice((-20, 1_700_000_000_000_000)), []
    for _ in range(choose.randint(40, 160)):
        now += choose.choice((0, 0, 1, 2))
        behind = choose.choice((0, 0, 1, 3, 9))
        rows.append({"ts": now - behind, "k": choose.randrange(5), "x": None, "y": choose.randrange(4)})
    return rows


def on_a_node(rows: Rows, keys: tuple[str, ...], changes: Sequence[PatternChange]) -> Rows:
    """What one process gives that knows all changes beforehand."""
    app, patterns, sink = small_app(rows, keys)
    patterns._changes = list(changes)
    app.run(on=ps.Node(workers=1))
    return sink.rows()


def note(manifest: Manifest, seen: dict[int, PatternChange]) -> bool:
    """Notes the changes that a version has, by their numbers in the order of time; whether the run is
    complete."""
    log = SetLog.of(manifest.progress["patterns"]["set"])
    for number in [one for one in seen if one >= log.applied]:
        del seen[number]  # another may have come before it
    seen |= {one.number: PatternChange(one.name, one.at_us, pattern_of(one.text)) for one in log.in_force}
    seen |= dict(enumerate(log.changes(), log.applied))
    return bool(manifest.progress["complete"])


@pytest.mark.filterwarnings(
    "ignore:.*changes later than asked:penstock.query.patterns.matching.PatternWarning"
)
@pytest.mark.parametrize("keys", [("k",), ()])
def test_tasks_make_every_change_at_its_time(keys: tuple[str, ...], tmp_path: Path) -> None:
    """Cut, routed, repeated, moved, stopped and started again at random, with changes between batches."""
    counted: list[int] = []
    folder = tmp_path / "state"

    @settings(max_examples=15)
    @given(changed, st.lists(changed, max_size=5), st.integers(0, 2**16), engines)
    def check(declared: list[Change], changes: list[list[Change]], seed: int, engine: Settings) -> None:
        choose = random.Random(seed)
        shutil.rmtree(folder, ignore_errors=True)
        rows, waiting = drawn_rows(choose), list(changes)
        seen: dict[int, PatternChange] = {}
        found: Rows = []
        complete, begin_us = False, rows[0]["ts"]
        while not complete:
            app, patterns, sink = small_app(rows, keys)
            for number, (kind, name, timed) in enumerate(declared):  # at every start
                change(patterns, kind, name, begin_us + 7 * number if timed else None)
            run = InProcess(app.graph(), folder, random.Random(choose.random()), engine)

            def between(run: InProcess = run, patterns: ps.PatternSet = patterns) -> None:
                note(run.manifest, seen)
                if waiting and choose.random() < 0.7:
                    for kind, name, timed in waiting.pop(0):
                        at_us = max(patterns._passed_us, begin_us) + choose.randint(0, 20)
                        change(patterns, kind, name, at_us if timed else None)

            run.before_batch = between
            run.run(choose.randint(1, 4) if choose.random() < 0.5 else None)
            complete = note(run.manifest, seen)
            found += sink.rows()
        expected = on_a_node(rows, keys, [seen[number] for number in sorted(seen)])
        assert sorted(map(repr, found)) == sorted(map(repr, expected))
        if not keys:
            assert found == expected  # one task has it all: the order is that of the events
        counted.append(len(found))

    check()
    assert sum(counted) > 100, "too few matches to mean anything"


# -- with Spark ------------------------------------------------------------------------------------


def test_changes_made_by_what_is_found_count_when_they_say(spark: SparkSession) -> None:
    reacting = pattern_set_app.Reacting()
    app, reacting.patterns, sink = pattern_set_app.build(None, pattern_set_app.DECLARED, reacting)
    run = ps.Spark(tasks=2, batch_events=100).start(app.graph(), app.name)
    run.wait()
    assert run.finish().complete
    assert [one.at_us for one in reacting.patterns.changes] == [at for at, *_ in pattern_set_app.CHANGES]
    assert pattern_set_app.ordered(sink.rows()) == pattern_set_app.sequential()


def test_a_run_that_goes_on_has_the_patterns_that_were_added_while_it_ran(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Changed as soon as possible, stopped, started again by a program that knows only what it declares."""
    runtime = ps.Spark(checkpoint=tmp_path / "checkpoint", batch_events=60)
    app, patterns, sink = pattern_set_app.build(None, 1)
    run = runtime.start(app.graph(), app.name, last_batch=1)
    pattern, reported = pattern_set_app.PATTERNS["fall"]
    patterns.add("down", pattern, {"id": ps.bound(reported)["id"]}, within="40us")
    patterns.remove("rise")
    pattern_set_app.make(patterns, 2)
    run.wait()
    run.finish()
    made = patterns.changes
    assert made[1].at_us == made[2].at_us
    assert made[1].at_us is not None
    first = sink.rows()

    app, patterns, sink = pattern_set_app.build(None, 1)
    run = runtime.start(app.graph(), app.name)
    assert patterns.names == ("down", "climb")
    run.wait()
    assert run.finish().complete
    alone, known, expected = pattern_set_app.build(None, 0)
    known._changes = list(made)
    alone.run(on=ps.Node(workers=1))
    assert pattern_set_app.ordered(first + sink.rows()) == pattern_set_app.ordered(expected.rows())
    assert len(expected.rows()) > 100
