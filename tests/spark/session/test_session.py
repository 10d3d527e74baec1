"""The session has the settings that pay, they take effect, and a missing Java is said plainly."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.spark.session.errors import SparkError
from penstock.spark.session.start import (
    check_interpreter,
    check_java,
    java_version,
    local_cores,
    retrying,
    session_settings,
    spark_session,
)


def test_the_running_session_is_used_again(spark: SparkSession) -> None:
    assert spark_session("local[2]").sparkContext is spark.sparkContext
    assert spark.sparkContext.master == "local[2,4]"


def test_the_driver_listens_on_loopback_only(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert (conf.get("spark.driver.host"), conf.get("spark.driver.bindAddress")) == ("127.0.0.1", "127.0.0.1")
    assert spark.sparkContext.uiWebUrl is None


def test_the_driver_has_a_large_stack_and_is_silent(spark: SparkSession) -> None:
    jvm = spark._jvm
    assert jvm is not None
    options = list(jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())
    assert "-Xss4m" in options
    log = jvm.org.apache.logging.log4j.LogManager.getRootLogger()
    assert log.getLevel().toString() == "ERROR"


def test_sql_means_what_expressions_rely_on(spark: SparkSession) -> None:
    names = ("ansi.enabled", "caseSensitive", "session.timeZone", "shuffle.partitions")
    assert [spark.conf.get(f"spark.sql.{name}") for name in names] == ["false", "true", "UTC", "2"]
    assert spark.range(1).selectExpr("2147483647 + 1 AS n").first() == (-(2**31),)


def test_checkpoints_on_local_paths_take_the_fast_file_manager(spark: SparkSession, tmp_path: Path) -> None:
    jvm = spark._jvm
    assert jvm is not None
    hadoop = spark._jsparkSession.sessionState().newHadoopConf()
    path = jvm.org.apache.hadoop.fs.Path(str(tmp_path))
    streaming = jvm.org.apache.spark.sql.execution.streaming.checkpointing
    manager = streaming.CheckpointFileManager.create(path, hadoop)
    assert manager.getClass().getSimpleName() == "FileSystemBasedCheckpointFileManager"


def test_buffers_are_of_the_size_asked_for(spark: SparkSession) -> None:
    assert spark._jsparkSession.sessionState().newHadoopConf().get("io.file.buffer.size") == str(1 << 20)


def test_python_tasks_run_in_our_interpreter_over_unix_sockets(spark: SparkSession) -> None:
    def where(_: object) -> tuple[str, list[str]]:
        return sys.executable, [name for name in os.environ if name.startswith("PYTHON_")]

    interpreter, names = spark.sparkContext.parallelize([0], 1).map(where).first()
    assert interpreter == sys.executable
    assert "PYTHON_UNIX_DOMAIN_ENABLED" in names

    def in_arrow(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"interpreter": [where(None)[0]]})

    row = spark.range(1).coalesce(1).mapInArrow(in_arrow, "interpreter string").first()
    assert row == (sys.executable,)


def test_a_failed_task_is_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    mark = tmp_path / "tried"

    def fail_once(_: int) -> int:
        if not mark.exists():
            mark.touch()
            raise ValueError("the first attempt")
        return 1

    assert spark.sparkContext.parallelize([0], 1).map(fail_once).collect() == [1]


def test_masters() -> None:
    assert retrying("local[*]") == "local[*,4]"
    assert retrying("local") == "local[1,4]"
    assert [retrying(m) for m in ("local[3,1]", "spark://h:7077")] == ["local[3,1]", "spark://h:7077"]
    assert [local_cores(m) for m in ("local", "local[3]", "local[3,4]", "spark://h:7077")] == [1, 3, 3, None]
    assert local_cores("local[*]") == len(os.sched_getaffinity(0))


def test_a_cluster_gets_no_local_settings_and_settings_given_win() -> None:
    chosen = session_settings(
        "spark://h:7077", {"spark.ui.enabled": "true", "spark.driver.extraJavaOptions": "-Da=b"}
    )
    assert "spark.driver.host" not in chosen
    assert "spark.sql.shuffle.partitions" not in chosen
    assert chosen["spark.ui.enabled"] == "true"
    assert chosen["spark.driver.extraJavaOptions"].split()[0] == "-Xss4m"
    assert chosen["spark.driver.extraJavaOptions"].endswith(" -Da=b")


def test_no_java_is_said_plainly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(
        SparkError, match=r"^no Java found: JAVA_HOME is not set .*; install Java 17 or newer"
    ):
        check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(
        SparkError, match=r"^no Java found: JAVA_HOME is '.*', which has no bin/java; install"
    ):
        check_java()


@pytest.mark.parametrize("text", ['openjdk version "11.0.2" 2019-01-15', 'java version "1.8.0_291"'])
def test_an_old_java_is_said_plainly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    java = fake_java(tmp_path, text)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(
        SparkError, match=r"^Java is too old for Spark: '.*' is version (11|8); install Java 17"
    ):
        check_java()
    (tmp_path / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="21.0.1"\n')
    assert java_version(java) == 21
    check_java()


def fake_java(home: Path, says: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)
    return java


def test_a_session_of_another_python_is_told_in_one_sentence(tmp_path: Path) -> None:
    check_interpreter(sys.executable)
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\necho /opt/other\n")
    other.chmod(0o755)
    with pytest.raises(
        SparkError, match=r"starts another Python .* is of /opt/other, this app is of "
    ) as told:
        check_interpreter(str(other))
    assert "PYSPARK_PYTHON" in str(told.value)
    with pytest.raises(SparkError, match="starts another Python"):
        check_interpreter(str(tmp_path / "nowhere"))
