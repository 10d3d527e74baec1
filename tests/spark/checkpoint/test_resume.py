"""A run that was stopped goes on from its checkpoint: with other tasks, and with an app that has changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.checkpoints.positions import Progress
from penstock.query.user_functions import Context, ProcessFunction
from penstock.routing.route import even_route
from penstock.spark.batches.balancing import Reports, Routing
from penstock.spark.batches.run import SparkRun
from penstock.spark.batches.summary import SparkSummary
from penstock.state.errors import StateError
from penstock.state.store import StateStore
from tests.engine.test_equivalence import difference
from tests.reference import Row, run_reference
from tests.spark import crash_app

_PATIENCE_S = 300.0
_EVENTS = 300


def stopped_after(runtime: ps.Spark, app: ps.App, batch_id: int) -> tuple[SparkRun, SparkSummary]:
    """Runs until a batch has counted, and stops."""
    run = runtime.start(app.graph(), app.name, last_batch=batch_id)
    assert run.wait(_PATIENCE_S)
    return run, run.finish()


def check(rows: Mapping[str, list[Row]], expected: Mapping[str, list[Row]]) -> None:
    assert rows.keys() == expected.keys()
    for query in expected:
        missing, unexpected = difference(expected[query], rows[query])
        assert (missing, unexpected) == ([], []), query


def written(output: Path) -> dict[str, list[Row]]:
    return {folder.name: pq.read_table(folder).to_pylist() for folder in output.iterdir()}


def crash_reference(joined: bool) -> dict[str, list[Row]]:
    app, _ = crash_app.build(None, joined, _EVENTS)
    return run_reference(app.graph(), crash_app.inputs(joined, _EVENTS))


# -- the same app --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_stopped_run_goes_on_with_other_tasks(spark: SparkSession, tmp_path: Path) -> None:
    for tasks, until in ((None, 1), (2, 3), (5, 5), (None, None)):
        app, _ = crash_app.build(tmp_path / "out", False, _EVENTS)
        runtime = ps.Spark(checkpoint=tmp_path / "checkpoint", tasks=tasks, batch_events=40)
        if until is None:
            assert app.run(on=runtime).complete
        else:
            run, summary = stopped_after(runtime, app, until)
            assert not summary.complete
            assert summary.open_windows > 0
            assert not run.changes
    check(written(tmp_path / "out"), crash_reference(False))


def test_the_number_of_tasks_changes_between_batches(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, sinks = crash_app.build(None, True, _EVENTS)

    def after(self: Routing, reports: Reports, progress: Progress) -> tuple[int, ...]:
        tasks = 2 if progress.batch_id < 2 else 5 if progress.batch_id < 5 else 3
        return even_route(len(progress.routing), tasks)

    monkeypatch.setattr(Routing, "after", after)
    run = ps.Spark(tasks=2, batch_events=30).start(app.graph(), app.name)
    assert run.wait(_PATIENCE_S)
    assert run.finish().complete
    tasks = [batch.tasks for batch in sorted(run.batches, key=lambda batch: batch.batch_id)]
    assert list(dict.fromkeys(tasks)) == [2, 5, 3]
    check({name: sink.rows() for name, sink in sinks.items()}, crash_reference(True))


@pytest.mark.slow
def test_a_complete_run_has_nothing_left_to_do(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runtime = ps.Spark(checkpoint=tmp_path / "checkpoint")
    for _ in range(2):
        app = lanes(tmp_path / "out")
        assert app.run(on=runtime).complete
    assert "is complete already" in "\n".join(caplog.messages)
    check(written(tmp_path / "out"), expected_of(lanes(None)))


@pytest.mark.slow
def test_a_large_state_is_kept_as_changes_and_read_again(spark: SparkSession, tmp_path: Path) -> None:
    def build() -> ps.App:
        app = ps.App("large")
        number = np.arange(24_000)
        columns = {"ts": number, "id": number * 7 % 20_011}
        events = app.source("events", ps.sources.Columns(columns, {"ts": "timestamp", "id": "int64"}), "ts")
        app.sink("first", events.deduplicate("id"), ps.sinks.Parquet(tmp_path / "out"))
        return app

    runtime = ps.Spark(checkpoint=tmp_path / "checkpoint", batch_events=2_000)
    stopped_after(runtime, build(), 8)
    latest = StateStore(tmp_path / "checkpoint" / "state").latest()
    assert latest is not None
    assert any(entry.chain for entry in latest.files)
    assert build().run(on=runtime).complete
    found = pq.read_table(tmp_path / "out").column("id").to_pylist()
    assert sorted(found) == list(range(20_011))


# -- an app that has changed ---------------------------------------------------------------------------------

_LANES = {"ts": "timestamp", "lane": "int64", "speed": "float64", "car": "string"}


def lane_rows() -> list[Row]:
    return [
        {"ts": n * 1_000, "lane": n * n % 5, "speed": float(n % 11), "car": f"c{n % 7}"} for n in range(240)
    ]


class Every(ProcessFunction):
    """Every so-manieth event of a key."""

    def __init__(self, count: int) -> None:
        self.count = count

    def on_event(self, event: Row, context: Context) -> list[Row]:
        context.state["n"] += 1
        return [{"n": context.state["n"]}] if context.state["n"] % self.count == 0 else []


def lanes(
    output: Path | None,
    *,
    least: float = 2.0,
    counts: bool = True,
    best: bool = False,
    every: tuple[int, ...] = (),
    source: str = "lanes",
    partitions: int = 1,
) -> ps.App:
    """Counts, first cars, and more on demand."""
    app = ps.App("lanes")
    rows = ps.sources.Rows(lane_rows(), _LANES, partitions=partitions)
    stream = app.source(source, rows, event_time="ts")
    window = ps.tumbling("50ms")

    def sink(name: str) -> Any:
        return ps.sinks.Memory() if output is None else ps.sinks.Parquet(output / name)

    if counts:
        fast = stream.filter(ps.col("speed") > least)
        counted = fast.key_by("lane").window(window).agg(n=ps.count(), name="per_lane")
        app.sink("counts", counted, sink("counts"))
    for place, count in enumerate(every):
        named = stream.key_by("lane").process(Every(count), output={"n": "int64"}, state={"n": "int64"})
        app.sink(f"every_{place}", named, sink(f"every_{place}"))
    app.sink("first", stream.key_by("lane").window(window).agg(top=ps.max("speed")), sink("first"))
    if best:  # reads a column that nobody else does
        app.sink("best", stream.key_by("car").window(window).agg(n=ps.count(), name="cars"), sink("best"))
    return app


def expected_of(app: ps.App) -> dict[str, list[Row]]:
    return run_reference(app.graph(), {"lanes": [lane_rows()]})


def change(tmp_path: Path, before: Mapping[str, Any], after: Mapping[str, Any]) -> SparkSummary:
    """Runs one app for two batches, then another to the end."""
    runtime = ps.Spark(checkpoint=tmp_path / "checkpoint", batch_events=60)
    stopped_after(runtime, lanes(tmp_path / "out", **before), 1)
    return lanes(tmp_path / "out", **after).run(on=runtime)


def test_a_new_query_starts_without_state_and_the_others_go_on(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    summary = change(tmp_path, {}, {"best": True})
    assert summary.changes == "'cars' starts without state: it is new"
    assert "the app has changed since its checkpoint\n'cars' starts" in "\n".join(caplog.messages)
    rows, expected = written(tmp_path / "out"), expected_of(lanes(None, best=True))
    new, of_all = rows.pop("best"), expected.pop("best")
    check(rows, expected)
    assert 0 < sum(row["n"] for row in new) < sum(row["n"] for row in of_all)


@pytest.mark.slow
def test_the_state_of_a_query_that_is_gone_is_dropped(spark: SparkSession, tmp_path: Path) -> None:
    summary = change(tmp_path, {"best": True}, {})
    assert summary.changes == "'cars' is no longer there: its state is dropped"
    rows = written(tmp_path / "out")
    del rows["best"]
    check(rows, expected_of(lanes(None)))


@pytest.mark.slow
def test_an_operator_behind_a_changed_step_starts_without_state(spark: SparkSession, tmp_path: Path) -> None:
    summary = change(tmp_path, {}, {"least": 7.0})
    assert summary.changes == "'per_lane' starts without state: it computes something else now"
    rows, expected = written(tmp_path / "out"), expected_of(lanes(None, least=7.0))
    check({"first": rows["first"]}, {"first": expected["first"]})


@pytest.mark.slow
def test_functions_of_one_name_never_take_each_others_state(spark: SparkSession, tmp_path: Path) -> None:
    summary = change(tmp_path, {"every": (2, 3)}, {"every": (3,)})
    assert "starts without state: it computes something else now" in summary.changes
    assert "is no longer there" in summary.changes
    assert len(summary.changes.splitlines()) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("after", "settings", "told"),
    [
        (
            {"source": "roads"},
            {},
            r"^the app's sources have changed: checkpoint '.*' was made with lanes, the",
        ),
        (
            {"partitions": 3},
            {},
            r"^source 'lanes' has changed: it had 1 partitions, now it has 3; read it as",
        ),
        (
            {},
            {"virtual_partitions": 32},
            r"^the checkpoint has another number of virtual partitions: '.*' has 64, the run was given 32; ",
        ),
    ],
)
def test_what_a_checkpoint_cannot_follow_is_said(
    after: dict[str, Any], settings: dict[str, Any], told: str, spark: SparkSession, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    stopped_after(ps.Spark(checkpoint=checkpoint, batch_events=60), lanes(tmp_path / "out"), 1)
    with pytest.raises(StateError, match=told):
        lanes(tmp_path / "out", **after).run(on=ps.Spark(checkpoint=checkpoint, **settings))
    assert lanes(tmp_path / "out").run(on=ps.Spark(checkpoint=checkpoint)).complete
    check(written(tmp_path / "out"), expected_of(lanes(None)))
