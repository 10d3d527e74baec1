"""A checkpoint goes back to any kept version and is copied while it is used; the rows are those of a run that
nobody disturbed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.checkpoints.contents import contents_of
from penstock.checkpoints.copying import copy
from penstock.checkpoints.rollback import roll_back
from penstock.checkpoints.verification import problems_of
from penstock.metrics.batches import BatchProgress
from penstock.query.errors import RunError
from penstock.state.errors import StateError
from tests.spark.batches.test_deliveries import build, newest, start, undisturbed, written
from tests.spark.checkpoint.test_resume import stopped_after

assert undisturbed  # a fixture


def runtime(root: Path) -> ps.Spark:
    return ps.Spark(checkpoint=root / "checkpoint", batch_events=40)


def version_after(root: Path, batches: int) -> int:
    """The newest version after so many batches."""
    (part,) = contents_of(root / "checkpoint")
    return max(version.version for version in part.versions if version.batches == batches)


def test_a_run_goes_back_and_on_with_state_positions_and_files(
    undisturbed: dict[str, list[Any]], tmp_path: Path
) -> None:
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    start(runtime(tmp_path), build(out), 1)
    then = written(out)
    start(runtime(tmp_path), build(out), 3)
    assert problems_of(checkpoint) == []
    went_back = roll_back(checkpoint, version_after(tmp_path, 2))
    assert written(out) == then
    assert (went_back.batches, newest(checkpoint).batches) == (2, 2)
    assert problems_of(checkpoint) == []
    assert build(out).run(on=runtime(tmp_path)).complete
    assert written(out) == undisturbed
    roll_back(checkpoint, version_after(tmp_path, 0))  # from the end to the beginning
    assert build(out).run(on=runtime(tmp_path)).complete
    assert written(out) == undisturbed
    assert problems_of(checkpoint) == []


@pytest.mark.slow
def test_a_rollback_that_is_killed_is_finished_by_the_next_start_or_by_itself(
    undisturbed: dict[str, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    start(runtime(tmp_path), build(out), 3)
    to = version_after(tmp_path, 1)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for owner, name in (
        ("penstock.checkpoints.spark_log.SparkLog", "clear"),
        ("penstock.state.store.StateStore", "commit"),
        ("penstock.state.store.StateStore", "drop"),
        ("penstock.connectors.files.text_delivery.TextDelivery", "roll_back"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(f"{owner}.{name}", killed)
            with pytest.raises(KeyboardInterrupt):
                roll_back(checkpoint, to)
        shutil.copytree(checkpoint, tmp_path / name / "checkpoint")
        shutil.copytree(out, tmp_path / name / "out")
    assert newest(checkpoint).batches == 1
    roll_back(checkpoint, to)
    assert problems_of(checkpoint) == []
    assert build(out).run(on=runtime(tmp_path)).complete
    assert written(out) == undisturbed
    for name in ("commit", "roll_back"):  # before it counted, and after
        shutil.rmtree(out)
        shutil.copytree(tmp_path / name / "out", out)
        assert build(out).run(on=runtime(tmp_path / name)).complete
        assert written(out) == undisturbed


@pytest.mark.slow
def test_nobody_goes_back_while_a_run_goes_on(undisturbed: dict[str, list[Any]], tmp_path: Path) -> None:
    told: list[str] = []

    def after_batch(batch: BatchProgress) -> None:
        with pytest.raises(RunError) as refused:
            roll_back(tmp_path / "checkpoint", 1)
        told.append(str(refused.value))

    app = build(tmp_path / "out")
    runtime(tmp_path).run(app.graph(), app.name, on_progress=after_batch)
    assert told
    assert all("another run uses the checkpoint" in text for text in told)
    assert written(tmp_path / "out") == undisturbed


def test_a_copy_is_made_while_a_run_goes_on_and_goes_on_itself(
    undisturbed: dict[str, list[Any]], tmp_path: Path
) -> None:
    out, copies = tmp_path / "out", tmp_path / "copies"

    def after_batch(batch: BatchProgress) -> None:
        copy(tmp_path / "checkpoint", copies / str(batch.batch_id) / "checkpoint")
        assert problems_of(tmp_path / "checkpoint") == []

    app = build(out)
    runtime(tmp_path).run(app.graph(), app.name, on_progress=after_batch)
    assert written(out) == undisturbed
    for batch_id in (0, 2):
        before = newest(copies / str(batch_id) / "checkpoint")
        assert 0 < before.batches < 6
        assert build(out).run(on=runtime(copies / str(batch_id))).complete
        assert written(out) == undisturbed


def test_sinks_that_cannot_go_back_are_named(spark: SparkSession, tmp_path: Path) -> None:
    given: list[Any] = []

    def app() -> ps.App:
        app = ps.App("left")
        rows = ps.sources.Rows([{"ts": n, "id": n} for n in range(90)], {"ts": "timestamp", "id": "int64"})
        stream = app.source("rows", rows, event_time="ts")
        app.sink("all", stream, ps.sinks.Callback(given.extend))
        app.sink("file", stream, ps.sinks.Csv(tmp_path / "out.csv"))
        return app

    stopped_after(runtime(tmp_path), app(), 1)
    to, size = version_after(tmp_path, 1), (tmp_path / "out.csv").stat().st_size
    with pytest.raises(
        StateError, match=r"query 'all' \(callback\) would get the rows since version \d+ again"
    ):
        roll_back(tmp_path / "checkpoint", to)
    assert (tmp_path / "out.csv").stat().st_size == size
    assert roll_back(tmp_path / "checkpoint", to, leave_sinks=True).left == ("all",)
    assert app().run(on=runtime(tmp_path)).complete
    assert [row["id"] for row in given] == [*range(80), *range(40, 90)]
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 91


@pytest.mark.slow
def test_a_sink_that_came_later_has_nothing_after_going_back_before_it(
    undisturbed: dict[str, list[Any]], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    start(runtime(tmp_path), build(out), 1)
    start(runtime(tmp_path), build(out, counts="further"), 3)
    roll_back(tmp_path / "checkpoint", version_after(tmp_path, 2))
    assert build(out, counts="further").run(on=runtime(tmp_path)).complete
    found = written(out)
    assert (found["even"], found["odd"]) == (undisturbed["even"], undisturbed["odd"])
    assert problems_of(tmp_path / "checkpoint") == []


@pytest.mark.slow
def test_groups_are_shown_verified_and_copied_and_each_goes_back_by_itself(
    undisturbed: dict[str, list[Any]], tmp_path: Path
) -> None:
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    grouped = ps.Spark(checkpoint=checkpoint, batch_events=40, groups=[["even"], ["odd", "counts"]])
    assert build(out).run(on=grouped).complete
    parts = contents_of(checkpoint)
    assert [part.group for part in parts] == [0, 1]
    assert [{sink.query for sink in part.sinks} for part in parts] == [{"even"}, {"odd", "counts"}]
    copy(checkpoint, tmp_path / "copy")
    assert problems_of(tmp_path / "copy") == problems_of(checkpoint) == []
    to = next(version.version for version in parts[1].versions if version.batches == 2)
    with pytest.raises(
        StateError, match="has the groups 0, 1; each goes back by itself: give --group NUMBER"
    ):
        roll_back(checkpoint, to)
    roll_back(checkpoint, to, group=1)
    assert written(out)["even"] == undisturbed["even"]
    assert written(out)["odd"] != undisturbed["odd"]
    assert build(out).run(on=grouped).complete
    assert written(out) == undisturbed


def test_output_that_was_changed_and_files_that_were_damaged_are_told(
    undisturbed: dict[str, list[Any]], tmp_path: Path
) -> None:
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    start(runtime(tmp_path), build(out), 3)
    for path in (max((checkpoint / "state" / "data").iterdir()), out / "even.csv"):
        whole = path.read_bytes()
        path.write_bytes(whole[:40] + b"?" + whole[41:])
        problems = problems_of(checkpoint)
        assert any(problem.startswith(f"version {newest(checkpoint).version}: ") for problem in problems)
        assert all("\n" not in problem for problem in problems)
        path.write_bytes(whole)
    (out / "odd.jsonl").rename(tmp_path / "odd.jsonl")
    with pytest.raises(StateError, match=r"does not reach back .* query 'odd' .* it is not there"):
        roll_back(checkpoint, version_after(tmp_path, 2))
    assert newest(checkpoint).batches == 4
