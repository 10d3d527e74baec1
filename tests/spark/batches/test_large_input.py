"""Input that is larger than a batch: read in parts, and looked at again when a run goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.query.errors import RunError
from penstock.sources import Files, JsonLines, Parquet
from tests.spark.checkpoint.test_resume import stopped_after

_ROWS = 1_000
_EVENT_BYTES = 16
_LIMIT_ROWS = 150


def write(path: Path, first: int = 0) -> None:
    numbers = range(first, first + _ROWS)
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".parquet":
        table = pa.table(
            {"ts": pa.array([1_000 * n for n in numbers], pa.timestamp("us")), "x": list(numbers)}
        )
        pq.write_table(table, path, row_group_size=400)
    else:
        path.write_text("".join(json.dumps({"ts": 1_000 * n, "x": n}) + "\n" for n in numbers))


def app_over(source: Files, out: Path) -> ps.App:
    app = ps.App("large")
    rows = app.source("rows", source, event_time="ts")
    app.sink("all", rows, ps.sinks.Parquet(out / "all"))
    app.sink("sums", rows.window(ps.tumbling("100ms")).agg(n=ps.count()), ps.sinks.Parquet(out / "sums"))
    return app


def numbers(out: Path) -> list[int]:
    return [row["x"] for row in pq.read_table(out / "all").to_pylist()]


def runtime(tmp_path: Path) -> ps.Spark:
    return ps.Spark(checkpoint=tmp_path / "checkpoint", batch_bytes=_LIMIT_ROWS * _EVENT_BYTES)


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_a_file_larger_than_a_batch_is_read_in_parts(
    format: str, spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "in" / f"a.{format}")
    source = Files(tmp_path / "in", format, {"ts": "timestamp", "x": "int64"})  # type: ignore[arg-type]
    app, on = app_over(source, tmp_path / "out"), runtime(tmp_path)
    stopped_after(on, app, 1)
    summary = app_over(source, tmp_path / "out").run(on=on)
    assert summary.complete
    assert numbers(tmp_path / "out") == list(range(_ROWS))
    assert sum(pq.read_table(tmp_path / "out" / "sums").column("n").to_pylist()) == _ROWS
    assert summary.progress.last is not None
    assert summary.progress.last.batch_id >= _ROWS // _LIMIT_ROWS


def test_a_changed_file_stops_a_run_that_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in" / "a.parquet")
    app = app_over(Parquet(tmp_path / "in"), tmp_path / "out")
    stopped_after(runtime(tmp_path), app, 1)
    write(tmp_path / "in" / "a.parquet", first=7)
    with pytest.raises(
        RunError, match=r"^source 'rows' cannot go on: the files of a source changed .*a\.parquet'"
    ):
        app.run(on=runtime(tmp_path))
    write(tmp_path / "in" / "a.parquet")
    assert app.run(on=runtime(tmp_path)).complete
    assert numbers(tmp_path / "out") == list(range(_ROWS))


def test_a_missing_journal_stops_a_run_that_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in" / "a.parquet")
    app = app_over(Parquet(tmp_path / "in"), tmp_path / "out")
    stopped_after(runtime(tmp_path), app, 1)
    for entry in (tmp_path / "checkpoint" / "sources" / "rows").iterdir():
        entry.unlink()
    with pytest.raises(
        RunError, match=r"^source 'rows' cannot go on: the journal of a source is not that of"
    ):
        app.run(on=runtime(tmp_path))


def test_of_a_watched_folder_what_was_read_and_is_gone_is_told(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "in" / "a.jsonl")
    write(tmp_path / "in" / "b.jsonl", first=_ROWS)
    source = JsonLines(tmp_path / "in", {"ts": "timestamp", "x": "int64"}, watch=True)
    app = app_over(source, tmp_path / "out")
    on = ps.Spark(checkpoint=tmp_path / "checkpoint", batch_events=_ROWS * 3 // 2)
    stopped_after(on, app, 0)
    (tmp_path / "in" / "a.jsonl").unlink()
    stopped_after(on, app, 1)
    assert "source 'rows': '" in "\n".join(caplog.messages)
    assert "a.jsonl', read before, is gone" in "\n".join(caplog.messages)
    assert numbers(tmp_path / "out") == list(range(2 * _ROWS))
