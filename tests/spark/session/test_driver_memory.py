"""The driver's memory comes from the machine, unless somebody has said how much; and too little is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.query.errors import PenstockError, RunError
from penstock.spark.runtime import Spark
from penstock.spark.session import failures
from penstock.spark.session.driver_memory import driver_bytes, machine_bytes, memory_settings
from penstock.spark.session.start import session_settings

_MEMORY, _RESULTS = "spark.driver.memory", "spark.driver.maxResultSize"


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("SPARK_DRIVER_MEMORY", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))


def test_the_driver_gets_a_share_of_the_machine() -> None:
    megabytes = driver_bytes(machine_bytes()) >> 20
    assert 1024 <= megabytes <= 8192
    chosen = session_settings("local[*]")
    assert (chosen[_MEMORY], chosen[_RESULTS]) == (f"{megabytes}m", f"{megabytes // 4}m")


def test_what_the_user_sets_stays() -> None:
    assert memory_settings({_MEMORY: "512m"}) == {_RESULTS: "128m"}
    assert memory_settings({_MEMORY: "2g", _RESULTS: "1g"}) == {}
    assert session_settings("local[*]", {_MEMORY: "512m"})[_MEMORY] == "512m"


def test_what_the_environment_says_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "3g")
    assert memory_settings({}) == {_RESULTS: "768m"}
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--driver-memory 4g pyspark-shell")
    assert memory_settings({}) == {_RESULTS: "1024m"}
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.driver.memory=2g pyspark-shell")
    assert memory_settings({}) == {_RESULTS: "512m"}


def test_what_sparks_file_of_defaults_says_stays(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# ours\nspark.ui.enabled false\nspark.driver.memory   6g\nspark.driver.maxResultSize=0\n"
    )
    assert memory_settings({}) == {}


@pytest.mark.parametrize(
    "text",
    [
        "Job aborted: Total size of serialized results of 3 tasks (1.2 GiB) is bigger than "
        "spark.driver.maxResultSize (1024.0 MiB)\n\tat org.apache.spark",
        "An error occurred while calling o7.toArrow.\n: java.lang.OutOfMemoryError: Java heap space",
    ],
)
def test_too_little_memory_is_told_with_what_to_set(text: str) -> None:
    error = failures.told_by_spark(RuntimeError(text))
    assert isinstance(error, RunError)
    assert str(error).startswith("a batch was too large: ")
    assert "batch_bytes=" in str(error)
    assert "spark.driver.memory" in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "Job 3 cancelled because SparkContext was shut down",
        "Answer from Java side is empty",
        "An error occurred while calling o118.getCause",
        "An error occurred while calling z:py4j.reflection.TypeUtil.isInstanceOf",
        "[Errno 111] Connection refused",
    ],
)
def test_a_java_that_ended_for_want_of_memory_is_told_by_its_status(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "_java_status", lambda: 52)
    assert "Spark's driver ran out of memory" in str(failures.told_by_spark(RuntimeError(text)))
    monkeypatch.setattr(failures, "_java_status", lambda: None)
    assert "too large" not in str(failures.told_by_spark(RuntimeError(text)))


@pytest.mark.parametrize("wrong", [0, -1, "64", "lots", 100, 1.5, True])
def test_an_impossible_limit_is_refused(wrong: Any) -> None:
    with pytest.raises(
        PenstockError, match=r"batch_bytes must be a size of at least 1,024 bytes: got .*'64m'"
    ):
        Spark(batch_bytes=wrong)


def test_a_batchs_limit_is_shared_by_its_sources() -> None:
    assert Spark(batch_bytes="1m").source_bytes(4) == 256 << 10
    assert Spark(batch_bytes=None).source_bytes(4) is None
    assert Spark().source_bytes(1) == 64 << 20
