"""Python processes of a local Spark end without a word when Spark hangs up, and say what else goes wrong."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pyspark.serializers import read_int

from penstock.spark.session.start import session_settings

_PATIENCE_S = 120.0


@pytest.fixture
def folder() -> Iterator[Path]:
    """For sockets, whose paths may have 107 characters: pytest's own folders are too long for that."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


@pytest.fixture
def environment(folder: Path) -> dict[str, str]:
    """What Spark sets for a process that it talks to over a socket in a folder."""
    return {
        **os.environ,
        "PENSTOCK_PYTHON": sys.executable,
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        "PYTHON_WORKER_FACTORY_SOCK_DIR": str(folder),
        "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "1",
        "SPARK_REUSE_WORKER": "1",
    }


def start(environment: dict[str, str], *arguments: str) -> subprocess.Popen[bytes]:
    python = session_settings("local[2]")["spark.pyspark.python"]
    pipe = subprocess.PIPE
    return subprocess.Popen([python, *arguments], env=environment, stdin=pipe, stdout=pipe, stderr=pipe)


def test_a_worker_that_spark_needs_no_more_ends_without_a_word(environment: dict[str, str]) -> None:
    daemon = start(environment, "-m", "pyspark.daemon", "pyspark.worker")
    assert daemon.stdout is not None
    path = daemon.stdout.read(read_int(daemon.stdout))
    with socket.socket(socket.AF_UNIX) as spark:
        spark.connect(path)
        with spark.makefile("rb") as answer:
            worker = psutil.Process(read_int(answer))
    worker.wait(_PATIENCE_S)
    assert daemon.communicate(timeout=_PATIENCE_S) == (b"", b"")  # closes its input: it is to end


def test_a_planner_that_spark_needs_no_more_ends_without_a_word(
    environment: dict[str, str], folder: Path
) -> None:
    path = str(folder / "spark.sock")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        environment["PYTHON_WORKER_FACTORY_SOCK_PATH"] = path
        environment.pop("PYTHON_WORKER_FACTORY_SECRET", None)
        planner = start(environment, "-m", "pyspark.sql.streaming.python_streaming_source_runner")
        spark, _ = listening.accept()
        with spark, spark.makefile("rb") as answer:
            assert read_int(answer) == planner.pid
    assert planner.communicate(timeout=_PATIENCE_S) == (b"", b"")


def test_a_planner_whose_spark_has_ended_already_ends_without_a_word(
    environment: dict[str, str], folder: Path
) -> None:
    environment["PYTHON_WORKER_FACTORY_SOCK_PATH"] = str(folder / "gone.sock")
    environment.pop("PYTHON_WORKER_FACTORY_SECRET", None)
    planner = start(environment, "-m", "pyspark.sql.streaming.python_streaming_source_runner")
    assert planner.communicate(timeout=_PATIENCE_S) == (b"", b"")


def test_what_else_goes_wrong_is_said(environment: dict[str, str]) -> None:
    said = start(environment, "-m", "no_such_module").communicate(timeout=_PATIENCE_S)[1]
    assert b"no_such_module" in said


def test_without_a_module_it_is_the_interpreter_itself(environment: dict[str, str]) -> None:
    said, _ = start(environment, "-c", "import sys; print(sys.executable)").communicate(timeout=_PATIENCE_S)
    assert said.decode().strip() == sys.executable
