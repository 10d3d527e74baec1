"""A checkpoint made while files were watched goes on without watching, and the other way round."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.checkpoints.folders import resume
from penstock.checkpoints.positions import PartitionProgress, Progress
from penstock.spark.batches.preparation import prepare
from penstock.state.errors import StateError
from penstock.state.manifest import Manifest
from penstock.state.store import StateStore
from tests.engine.test_equivalence import difference
from tests.reference import Row, run_reference

_PATIENCE_S = 120.0
_SCHEMA = {"ts": "timestamp", "lane": "int64", "car": "int64"}
_ROWS = 20  # of a file


def file_rows(file: int) -> list[Row]:
    numbers = range(file * _ROWS, (file + 1) * _ROWS)
    return [{"ts": n * 10_000, "lane": n * n % 3, "car": n} for n in numbers]


def write_file(folder: Path, file: int) -> None:
    folder.mkdir(exist_ok=True)
    lines = [f"{row['ts']},{row['lane']},{row['car']}" for row in file_rows(file)]
    temporary = folder / f"{file:03d}.tmp"
    temporary.write_text("\n".join(["ts,lane,car", *lines, ""]))
    temporary.rename(folder / f"{file:03d}.csv")


def bytes_of(folder: Path, files: int) -> int:
    return sum(path.stat().st_size for path in sorted(folder.iterdir())[:files])


def build(inputs: list[Path], out: Path, watch: bool) -> ps.App:
    app = ps.App("switched")
    for number, folder in enumerate(inputs):
        source = ps.sources.Csv(folder, _SCHEMA, watch=watch)
        cars = app.source(f"cars{number}", source, event_time="ts")
        lanes = cars.key_by("lane").window(ps.tumbling("150ms")).agg(cars=ps.count())
        app.sink(f"lanes{number}", lanes, ps.sinks.Parquet(out / f"lanes{number}"))
    return app


def check(inputs: list[Path], out: Path, files: list[int]) -> None:
    app = build(inputs, out, False)
    rows = {
        f"cars{place}": [[row for file in range(count) for row in file_rows(file)]]
        for place, count in enumerate(files)
    }
    for query, expected in run_reference(app.graph(), rows).items():
        assert difference(expected, pq.read_table(out / query).to_pylist()) == ([], []), query


def rows_read(checkpoint: Path) -> int:
    """The events that the newest version counts."""
    manifest = StateStore(checkpoint / "state").latest()
    return 0 if manifest is None else int(manifest.progress["totals"].get("events", 0))


def watch_until(runtime: ps.Spark, app: ps.App, rows: int) -> None:
    """Runs until so many events were read, and stops."""
    run = runtime.start(app.graph(), app.name)
    deadline = time.monotonic() + _PATIENCE_S
    while run.progress.rows_in < rows:
        assert not run.wait(0.05), "a run that watches has ended"
        assert time.monotonic() < deadline
    run.stop()
    assert run.wait(_PATIENCE_S)
    assert not run.finish().complete


def read_to_the_end(runtime: ps.Spark, app: ps.App) -> None:
    run = runtime.start(app.graph(), app.name)
    ended = run.wait(_PATIENCE_S)
    if not ended:
        run.stop()
    summary = run.finish()
    assert ended, "a bounded run in which nothing more comes goes on"
    assert summary.complete


def test_what_was_watched_to_its_end_ends_without_watching(spark: SparkSession, tmp_path: Path) -> None:
    inputs, out = [tmp_path / "in"], tmp_path / "out"
    for file in range(3):
        write_file(inputs[0], file)
    runtime = ps.Spark(checkpoint=tmp_path / "checkpoint")
    watch_until(runtime, build(inputs, out, True), 3 * _ROWS)
    read_to_the_end(runtime, build(inputs, out, False))
    check(inputs, out, [3])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_checkpoint_is_watched_or_not_from_run_to_run(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    choose = random.Random(seed)
    inputs, out = [tmp_path / "in0", tmp_path / "in1"][: choose.randint(1, 2)], tmp_path / "out"
    files, read = [0] * len(inputs), 0

    def add(most: int) -> None:
        for place, folder in enumerate(inputs):
            for _ in range(choose.randint(0, most)):
                write_file(folder, files[place])
                files[place] += 1

    for folder in inputs:
        folder.mkdir()
    batch_events, tasks = choose.choice([15, 45, None]), choose.choice([None, 2])
    runtime = ps.Spark(checkpoint=tmp_path / "checkpoint", batch_events=batch_events, tasks=tasks)
    for _ in range(choose.randint(1, 3)):
        add(3)
        added = sum(files) * _ROWS - read
        # perhaps not all that is there
        until = max(0, added - choose.choice([0, 0, _ROWS]))
        watch_until(runtime, build(inputs, out, True), until)
        read = rows_read(tmp_path / "checkpoint")
    for place, folder in enumerate(inputs):  # a bounded source has a file at least
        if not files[place]:
            write_file(folder, 0)
            files[place] = 1
    if choose.random() < 0.5:
        watch_until(runtime, build(inputs, out, True), sum(files) * _ROWS - read)
    read_to_the_end(runtime, build(inputs, out, False))
    check(inputs, out, files)


@pytest.mark.parametrize(
    ("watch", "files", "told"), [(True, 2, "now it has none"), (False, 3, "now it ends at {}")]
)
def test_a_source_that_has_ended_does_not_go_on(watch: bool, files: int, told: str, tmp_path: Path) -> None:
    inputs, out = [tmp_path / "in0", tmp_path / "in1"], tmp_path / "out"
    for folder in inputs:
        for file in range(2):
            write_file(folder, file)

    def finished(watch: bool) -> list[bool]:
        prepared = prepare(build(inputs, out, watch).graph(), str(tmp_path), None)
        manifest, _, _ = resume(store, prepared.stages, prepared.finals(), (0,), "run")
        return [source[0].finished for source in Progress.from_json(manifest.progress).sources.values()]

    store = StateStore(tmp_path / "state")
    ends = [bytes_of(inputs[0], files) for files in range(4)]
    progress = {f"cars{n}": {0: PartitionProgress(ends[2 - n])} for n in range(2)}
    store.commit(Manifest(1, "run", 1, {}, Progress(progress, (0,)).to_json()))
    assert finished(True) == [False, False]
    assert finished(False) == [True, False]
    progress["cars0"] = {0: PartitionProgress(ends[2], finished=True)}
    store.commit(Manifest(2, "run", 1, {}, Progress(progress, (0,)).to_json()))
    assert finished(False) == [True, False]
    for file in range(2, files):
        write_file(inputs[0], file)
    told = told.format(bytes_of(inputs[0], files))
    with pytest.raises(StateError, match=f"'cars0' goes on behind its end: .* at {ends[2]} .* {told}"):
        finished(watch)
