"""Where the file system is not local: a manifest is created once, or the run does not begin."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.checkpoints.fencing import creation
from penstock.spark.session.hadoop_rename import HadoopRename
from penstock.state.errors import StateError
from penstock.state.files import Folder, unfenced


def test_hadoops_client_creates_a_file_once(spark: SparkSession, tmp_path: Path) -> None:
    # On local files, where renaming is no single step: what is tested are the calls.
    create, folder = HadoopRename(spark, f"file://{tmp_path}"), Folder(tmp_path / "a" / "b")
    assert create(folder, "1.json", b"first")
    assert not create(folder, "1.json", b"second")
    assert create(folder, "2.json", b"third")
    assert {name: bytes(folder.read(name)) for name in folder.names() if not name.endswith(".crc")} == {
        "1.json": b"first",
        "2.json": b"third",
    }


def test_a_store_that_cannot_fence_is_refused_unless_told_otherwise(spark: SparkSession) -> None:
    with pytest.raises(StateError, match=r"^this checkpoint cannot keep two runs apart: where 'abfs://a/c'"):
        creation("abfs://a/c", False)
    assert creation("abfs://a/c", True) is unfenced
    assert creation("s3://bucket/c", True) is unfenced
    assert creation("/local/c", False) is None
    assert isinstance(creation("hdfs://host/c", False, partial(HadoopRename, spark)), HadoopRename)


def test_a_run_in_such_a_store_does_not_begin(spark: SparkSession, tmp_path: Path) -> None:
    app = ps.App("refused")
    source = ps.sources.Columns({"ts": [0]}, ps.Schema(ts="timestamp"))
    app.sink("out", app.source("numbers", source, event_time="ts"), ps.sinks.Parquet(tmp_path / "out"))
    with pytest.raises(StateError, match=r"write ps.Spark\(unfenced=True\)$"):
        app.run(on=ps.Spark(checkpoint="mock:///c"))
    assert not (tmp_path / "out").exists()
