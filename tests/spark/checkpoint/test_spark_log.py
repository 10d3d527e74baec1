"""The manifest alone decides: Spark's logs are made anew from it, whatever has become of them."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from lab.bench.faults.power import PowerRecorder
from penstock.checkpoints.source_log import SourceLog
from penstock.checkpoints.spark_log import SparkLog
from penstock.query.errors import RunError
from penstock.spark.batches.ways import way
from penstock.state.errors import StateError
from penstock.state.files import Folder
from penstock.state.manifest import Manifest
from penstock.state.store import StateStore
from tests.spark.checkpoint.test_resume import stopped_after

_ROWS = [{"ts": number * 1_000, "id": number} for number in range(120)]
_TYPES = {"ts": "timestamp", "id": "int64"}


def own_app(root: Path, spark: SparkSession) -> ps.App:
    """Rows of ours, a filter, a file."""
    app = ps.App("own")
    rows = app.source("rows", ps.sources.Rows(_ROWS, _TYPES), event_time="ts")
    app.sink("even", rows.filter(ps.col("id") % 2 == 0), ps.sinks.Csv(root / "out.csv"))
    return app


def frame_app(root: Path, spark: SparkSession, *, counts: bool = False) -> ps.App:
    """Files that Spark finds, one a batch; ``counts`` are what it can aggregate itself."""
    folder = root / "in"
    if not folder.exists():
        folder.mkdir()
        for start in range(0, 120, 20):
            lines = (
                json.dumps({"ts": row["ts"] / 1e6, "id": row["id"]}) for row in _ROWS[start : start + 20]
            )
            (folder / f"{start:03}.json").write_text("\n".join(lines))
    frame = spark.readStream.schema("ts double, id long").option("maxFilesPerTrigger", 1).json(str(folder))
    app = ps.App("frames")
    source = ps.sources.Spark(frame.selectExpr("cast(ts as timestamp) as ts", "id"), bounded=True)
    rows = app.source("rows", source, event_time="ts")
    if counts:
        app.sink("counts", rows.window(ps.tumbling("7ms")).agg(n=ps.count()), ps.sinks.Memory())
    else:
        app.sink("even", rows.filter(ps.col("id") % 2 == 0), ps.sinks.Csv(root / "out.csv"))
    return app


Build = Callable[[Path, SparkSession], ps.App]
BUILDS = [own_app, frame_app]


def runtime(root: Path, **settings: Any) -> ps.Spark:
    return ps.Spark(checkpoint=root / "checkpoint", **{"batch_events": 20, **settings})


def ids(root: Path) -> list[int]:
    lines = (root / "out.csv").read_text().splitlines()[1:]
    return sorted(int(line.rpartition(",")[2]) for line in lines)


def newest(root: Path) -> Manifest:
    manifest = StateStore(root / "checkpoint" / "state").latest()
    assert manifest is not None
    return manifest


EVEN = list(range(0, 120, 2))


@pytest.mark.parametrize("build", BUILDS)
def test_after_a_power_cut_a_run_goes_on_from_the_manifest(
    build: Build, spark: SparkSession, tmp_path: Path
) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    build(root, spark)
    recorder = PowerRecorder(root, tmp_path / "journal")
    recorder.begin()
    for last_batch in (0, 2):
        with recorder.here():
            stopped_after(runtime(root), build(root, spark), last_batch)
        recorder.cut()  # Spark syncs nothing of its logs
        assert not list((root / "checkpoint").glob("spark/offsets/*"))
        assert newest(root).batches == last_batch + 1
    assert build(root, spark).run(on=runtime(root)).complete
    assert ids(root) == EVEN


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _garbage(path: Path) -> None:
    path.write_bytes(b"v1\n{ no json")


@pytest.mark.parametrize("build", BUILDS)
def test_damaged_logs_of_spark_are_made_anew(
    build: Build, spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for batch_id, damage in enumerate((_emptied, _garbage, Path.unlink)):
        stopped_after(runtime(tmp_path), build(tmp_path, spark), batch_id)
        log = tmp_path / "checkpoint" / "spark"
        for path in [log / "metadata", *log.glob("offsets/[0-9]*"), *log.glob("commits/[0-9]*")]:
            damage(path)
    assert build(tmp_path, spark).run(on=runtime(tmp_path)).complete
    assert ids(tmp_path) == EVEN
    assert "fasterxml" not in capfd.readouterr().err


def test_a_batch_that_did_not_count_comes_back_as_small_as_batches_are_now(
    spark: SparkSession, tmp_path: Path
) -> None:
    def app_of(fails: bool, seen: list[int]) -> ps.App:
        def take(rows: Any) -> None:
            if fails:
                raise OSError("no")
            seen.extend(row["id"] for row in rows)

        app = ps.App("smaller")
        rows = app.source("rows", ps.sources.Rows(_ROWS, _TYPES), event_time="ts")
        app.sink("all", rows, ps.sinks.Callback(take))
        return app

    seen: list[int] = []
    with pytest.raises(RunError, match="sink of query 'all' failed in batch 0"):
        app_of(True, seen).run(on=runtime(tmp_path, batch_events=100))
    run, _ = stopped_after(runtime(tmp_path, batch_events=15), app_of(False, seen), 1)
    assert [batch.rows_in for batch in run.batches] == [15, 15]
    assert app_of(False, seen).run(on=runtime(tmp_path, batch_events=100)).complete
    assert seen == list(range(120))


def test_files_that_spark_planned_for_a_batch_that_did_not_count_are_planned_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    stopped_after(runtime(tmp_path), frame_app(tmp_path, spark), 1)
    entries = tmp_path / "checkpoint" / "spark" / "sources" / "0"
    (entries / "2").write_text("")  # of a batch that no manifest names, and not synced
    assert frame_app(tmp_path, spark).run(on=runtime(tmp_path)).complete
    assert ids(tmp_path) == EVEN


def test_a_list_of_files_that_a_manifest_relies_on_is_told_when_it_is_damaged(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    stopped_after(runtime(tmp_path), frame_app(tmp_path, spark), 1)
    before = ids(tmp_path)
    entry = tmp_path / "checkpoint" / "spark" / "sources" / "0" / "1"
    text = entry.read_text()
    damaged = [("", "is damaged"), (text[:-9], "is damaged"), (text.replace(".json", ".jsom"), "checksum")]
    for content, told in damaged:
        entry.write_text(content)
        with pytest.raises(StateError, match=rf"cannot be read: '.*/sources/0/1' .*{told}"):
            frame_app(tmp_path, spark).run(on=runtime(tmp_path))
    entry.unlink()
    with pytest.raises(StateError, match=r"'.*/sources/0/1' is missing; it says which files were read"):
        frame_app(tmp_path, spark).run(on=runtime(tmp_path))
    assert ids(tmp_path) == before
    assert "\tat " not in capfd.readouterr().err
    entry.write_text(text)
    assert frame_app(tmp_path, spark).run(on=runtime(tmp_path)).complete
    assert ids(tmp_path) == EVEN


def test_the_manifest_knows_how_far_time_had_come_of_rows_that_only_spark_has_seen(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(way, "NATIVE_ROWS", 1)
    told: list[str] = []
    committed = StateStore.commit

    def commit(store: StateStore, manifest: Manifest) -> None:
        told.extend(text for name, text in manifest.logs.items() if name.startswith("commits"))
        committed(store, manifest)

    monkeypatch.setattr(StateStore, "commit", commit)
    stopped_after(runtime(tmp_path), frame_app(tmp_path, spark, counts=True), 3)
    log = tmp_path / "checkpoint" / "spark"
    logs = newest(tmp_path).logs
    assert logs.keys() == {"offsets/2", "offsets/3", "commits/3"}
    for name in ("offsets/2", "offsets/3"):
        assert logs[name] == (log / name).read_text()
    # Of the first batch Python has seen all, and Spark's word for it is not needed. The last may not be
    # written down any more.
    assert told[1:3] == [(log / "commits" / str(batch)).read_text() for batch in (1, 2)]
    assert len(set(told)) > 1


# -- without Spark -------------------------------------------------------------------------------------------


def with_sum(folder: Path, name: str, text: str) -> None:
    """An entry and its checksum, as Spark writes them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    (folder / f".{name}.crc").write_bytes(struct.pack(">4sII", b"crc\0", 512, zlib.crc32(text.encode())))


def entry(number: int) -> str:
    return f'v1\n{{"path":"file:///in/{number}","timestamp":1,"batchId":{number}}}'


def test_entries_behind_the_last_compact_one_are_needed(tmp_path: Path) -> None:
    log = SourceLog(Folder(tmp_path))
    for number in (*range(5, 9), *range(10, 13)):
        with_sum(tmp_path, str(number), entry(number))
    with_sum(tmp_path, "9.compact", entry(9))
    log.check(12)
    with pytest.raises(StateError, match=r"'.*/0' is missing"):
        log.check(8)
    with pytest.raises(StateError, match=r"'.*/13' is missing"):
        log.check(13)
    (tmp_path / ".12.crc").write_bytes(b"crc")
    with pytest.raises(StateError, match=r"'.*/12' is damaged"):
        log.check(12)
    log.cut(9)
    assert {path.name for path in tmp_path.iterdir()} >= {"5", "8", "9.compact", ".9.compact.crc"}
    assert not list(tmp_path.glob("*1[0-2]*"))


def test_where_another_kind_of_source_begins_is_never_forgotten(tmp_path: Path) -> None:
    files, broker = tmp_path / "spark" / "sources" / "0", tmp_path / "spark" / "sources" / "1"
    with_sum(files, "0", entry(0))
    with_sum(broker, "0", 'v1\n{"topic":{"0":17}}')
    SparkLog(str(tmp_path / "spark")).renew(Manifest(1, "run", 4))
    assert not list(files.glob("*0"))
    assert (broker / "0").exists()


def test_a_log_that_is_ahead_of_its_state_is_refused(tmp_path: Path) -> None:
    log = SparkLog(str(tmp_path))
    with_sum(tmp_path / "commits", "3", 'v1\n{"nextBatchWatermarkMs":0}')
    logs = {"offsets/3": "v1\n{}\n-", "commits/3": "v1\n{}"}
    log.check(Manifest(5, "run", 4, batches=4, logs=logs))
    for manifest in (None, Manifest(4, "run", 4, batches=3, logs=logs)):
        with pytest.raises(StateError, match=r"not whole: its state is made of [03] batches, Spark's log in"):
            log.check(manifest)
    with pytest.raises(StateError, match="does not say where Spark stood after batch 3"):
        log.check(Manifest(5, "run", 4, batches=4))
