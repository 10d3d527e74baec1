"""What can be wrong with a checkpoint, a source or a sink on Spark: one clear line each, and nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.connectors.memory.columns import Rows
from penstock.connectors.reader import NodeSource, Reader
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import PenstockError, QueryError, RunError
from penstock.query.types import Schema
from penstock.state.errors import StateError
from penstock.state.manifest import FORMAT, Manifest
from penstock.state.store import StateStore
from tests.reference import Row
from tests.spark.checkpoint.test_resume import check, expected_of, lanes, stopped_after, written
from tests.spark.processes import ROOT


def told_by(run: Callable[[], object], kind: type[PenstockError] = PenstockError) -> str:
    """The one line that a run fails with."""
    with pytest.raises(kind) as raised:
        run()
    told = str(raised.value)
    assert "\n" not in told
    assert "java." not in told
    return told


# -- checkpoints ---------------------------------------------------------------------------------------------


def _newest_manifest(state: Path) -> Path:
    return max((state / "manifests").glob("*.json"), key=lambda path: int(path.stem))


def _garbage(checkpoint: Path) -> None:
    _newest_manifest(checkpoint / "state").write_text("{ not a manifest")


def _newer_format(checkpoint: Path) -> None:
    path = _newest_manifest(checkpoint / "state")
    manifest = Manifest.from_bytes(path.read_bytes(), str(path))
    path.write_bytes(Manifest(**{**vars(manifest), "format": FORMAT + 1}).to_bytes())


def _state_file(checkpoint: Path) -> Path:
    latest = StateStore(checkpoint / "state").latest()
    assert latest is not None
    return checkpoint / "state" / "data" / latest.files[0].file


def _missing_file(checkpoint: Path) -> None:
    _state_file(checkpoint).unlink()


def _truncated_file(checkpoint: Path) -> None:
    path = _state_file(checkpoint)
    path.write_bytes(path.read_bytes()[:-100])


def _without_state(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint / "state")


def _older_state(checkpoint: Path) -> None:
    for _ in range(2):
        _newest_manifest(checkpoint / "state").unlink()


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (_garbage, "unreadable checkpoint: manifest 4.json in '"),
        pytest.param(
            _newer_format,
            f"has format {FORMAT + 1}, this version of Penstock reads {FORMAT}; run the version",
            marks=pytest.mark.slow,
        ),
        pytest.param(_missing_file, "checkpoint file is missing: v", marks=pytest.mark.slow),
        (_truncated_file, "damaged checkpoint file: v"),
        pytest.param(_without_state, "not whole: its state is made of 0 batches", marks=pytest.mark.slow),
        pytest.param(_older_state, "is made of 1 batches, Spark's log in '", marks=pytest.mark.slow),
    ],
)
def test_a_damaged_checkpoint_is_said_and_nothing_is_changed(
    damage: Callable[[Path], None],
    told: str,
    spark: SparkSession,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    checkpoint = tmp_path / "checkpoint"
    runtime = ps.Spark(checkpoint=checkpoint, batch_events=60)
    stopped_after(runtime, lanes(tmp_path / "out"), 2)
    shutil.copytree(checkpoint, tmp_path / "copy")
    before = written(tmp_path / "out")
    damage(checkpoint)
    for _ in range(2):  # also the second time
        assert told in told_by(lambda: lanes(tmp_path / "out").run(on=runtime))
    check(written(tmp_path / "out"), before)
    assert "\tat " not in capfd.readouterr().err, "a trace of Java's"

    shutil.rmtree(checkpoint)
    (tmp_path / "copy").rename(checkpoint)
    assert lanes(tmp_path / "out").run(on=runtime).complete
    check(written(tmp_path / "out"), expected_of(lanes(None)))


def test_output_of_another_run_is_never_touched(spark: SparkSession, tmp_path: Path) -> None:
    lanes(tmp_path / "out").run(on=ps.Spark(checkpoint=tmp_path / "one"))  # batch 0 and the closing one
    before = written(tmp_path / "out")
    for _ in range(2):
        told = told_by(lambda: lanes(tmp_path / "out").run(on=ps.Spark(checkpoint=tmp_path / "two")))
        assert "is not empty: give another path, or overwrite=True" in told
    check(written(tmp_path / "out"), before)


# -- sinks ---------------------------------------------------------------------------------------------------


def test_a_sink_that_fails_is_named_and_its_batch_comes_again(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given: list[Row] = []
    broken = True

    def store(rows: pa.RecordBatch) -> None:
        if broken and given:
            raise OSError("disk\nis full")
        given.extend(rows.to_pylist())

    def build() -> ps.App:
        app = ps.App("sinks")
        events = Rows([{"ts": n, "id": n} for n in range(100)], {"ts": "timestamp", "id": "int64"})
        stream = app.source("events", events, event_time="ts")
        app.sink("all", stream.select("id"), ps.sinks.Callback(store, arrow=True))
        return app

    runtime = ps.Spark(checkpoint=tmp_path / "checkpoint", batch_events=30)
    told = told_by(lambda: build().run(on=runtime), RunError)
    assert "sink of query 'all' failed in batch 1: " in told
    assert "disk" in told
    printed = capfd.readouterr().err
    assert "Exception" not in printed, "Spark has printed the trace of an error that is raised already"
    broken = False
    assert build().run(on=runtime).complete
    assert sorted(row["id"] for row in given) == list(range(100))


# -- sources -------------------------------------------------------------------------------------------------


def _counts(source: Any, checkpoint: Path, column: str = "lane") -> ps.Summary | Any:
    app = ps.App("files")
    stream = app.source("cars", source, event_time="ts")
    counted = stream.key_by(column).window(ps.tumbling("1s")).agg(n=ps.count(), total=ps.sum("speed"))
    app.sink("counts", counted, ps.sinks.Memory())
    return app.run(on=ps.Spark(checkpoint=checkpoint))


def _parquet(path: Path, **columns: list[Any]) -> None:
    times = pa.array(range(len(next(iter(columns.values())))), pa.timestamp("us"))
    pq.write_table(pa.table({"ts": times, **columns}), path)


def test_a_column_of_another_type_than_in_the_checkpoint_is_said(spark: SparkSession, tmp_path: Path) -> None:
    data, checkpoint = tmp_path / "cars.parquet", tmp_path / "checkpoint"
    _parquet(data, lane=[1, 2, 3], speed=[1, 2, 3])
    _counts(ps.sources.Parquet(data), checkpoint)
    _parquet(data, lane=[1, 2, 3], speed=[0.5, 2.0, 3.0])
    told = told_by(lambda: _counts(ps.sources.Parquet(data), checkpoint), StateError)
    assert told.startswith("the columns of source 'cars' have changed: 'speed' was int64 when the checkpoint")


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"lane": [4]}, "column 'speed' is missing: file '"),
        ({"lane": [4], "speed": ["fast"]}, "column 'speed' has another type: file '"),
    ],
)
def test_a_later_file_with_other_columns_is_named(
    columns: dict[str, list[Any]], told: str, spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "cars"
    folder.mkdir()
    _parquet(folder / "a.parquet", lane=[1, 2, 3], speed=[1.0, 2.0, 3.0])
    _parquet(folder / "b.parquet", **columns)
    assert told in told_by(lambda: _counts(ps.sources.Parquet(folder), tmp_path / "checkpoint"), RunError)
    _parquet(folder / "b.parquet", lane=[4], speed=[4.0])
    assert _counts(ps.sources.Parquet(folder), tmp_path / "checkpoint").complete


def test_records_that_do_not_parse_go_to_the_side_output(spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "cars.csv"
    data.write_text("ts,lane\n1,1\n2,fast\nlate,3\n4,4\n5\n")

    def build() -> tuple[ps.App, dict[str, Any]]:
        app = ps.App("csv")
        source = ps.sources.Csv(data, {"ts": "timestamp", "lane": "int64"})
        stream = app.source("cars", source, event_time="ts")
        sinks = {"good": ps.sinks.Memory(), "bad": ps.sinks.Memory()}
        app.sink("good", stream, sinks["good"])
        app.sink("bad", stream.bad_records(), sinks["bad"])
        return app, sinks

    (on_spark, ours), (on_node, theirs) = build(), build()
    on_node.run(on=ps.Node())
    for tasks in (None, 2):
        on_spark, ours = build()
        assert on_spark.run(on=ps.Spark(tasks=tasks)).bad_records == 3
        check({name: sink.rows() for name, sink in ours.items()}, {n: s.rows() for n, s in theirs.items()})
    assert {row["offset"] for row in ours["bad"].rows()} == {1, 2, 4}
    assert all(row["reason"] for row in ours["bad"].rows())


class Once(NodeSource):
    """A source that cannot be read twice."""

    @property
    def schema(self) -> Schema:
        return Schema(ts="timestamp", lane="int64")

    @property
    def bounded(self) -> bool:
        return False

    def open(self, layout: Layout, strings: StringPool) -> list[Reader]:
        raise NotImplementedError


def test_a_source_that_cannot_be_read_again_is_refused(spark: SparkSession) -> None:
    app = ps.App("once")
    app.sink("all", app.source("cars", Once(), event_time="ts"), ps.sinks.Memory())
    told = told_by(lambda: app.run(on=ps.Spark()), RunError)
    assert told.startswith("source 'cars' cannot be read again, as Spark must after a failure: Once keeps no")


def test_settings_that_make_no_sense_are_refused() -> None:
    told = told_by(lambda: ps.Spark(tasks=100, virtual_partitions=64))
    assert told == "more tasks than virtual partitions: 100 and 64; write virtual_partitions=128 or more"
    with pytest.raises(QueryError, match="not a runtime"):
        lanes(None).run(on=ps.Spark)  # type: ignore[type-var]


# -- the machine ---------------------------------------------------------------------------------------------

_NO_JAVA = """
import penstock as ps
app = ps.App("a")
rows = ps.sources.Rows([{"ts": 1}], {"ts": "timestamp"})
app.sink("all", app.source("rows", rows, event_time="ts"), ps.sinks.Memory())
try:
    app.run(on=ps.Spark())
except ps.PenstockError as error:
    print(error)
"""


def test_a_missing_java_is_said_by_a_run(tmp_path: Path) -> None:
    environment = {**os.environ, "JAVA_HOME": str(tmp_path / "nowhere"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", _NO_JAVA], capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.stdout == (
        f"no Java found: JAVA_HOME is '{tmp_path / 'nowhere'}', which has no bin/java; "
        "install Java 17 or newer, and set JAVA_HOME to its folder\n"
    )
    assert done.stderr == ""
