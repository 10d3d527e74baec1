"""A cluster on this machine: it comes up once, is told of, and goes down whole; mistakes are said plainly."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.spark.session.cluster import ClusterState, LocalCluster, Member, free_port
from penstock.spark.session.errors import SparkError
from penstock.spark.session.start import check_master, session_settings, spark_session


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing until its input ends."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def member_of(pid: int) -> Member:
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return Member("master", "127.0.0.1", pid, ticks)


def remember(folder: Path, *members: Member) -> None:
    """Leaves the state of a cluster of these processes in a folder."""
    folder.mkdir()
    found = {"master": "spark://127.0.0.1:7077", "ui": "http://127.0.0.1:8080", "cores": 1, "memory": "1g"}
    (folder / "cluster.json").write_text(json.dumps({**found, "members": [vars(one) for one in members]}))


def test_a_cluster_comes_up_is_told_of_and_goes_down_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ["--folder", str(tmp_path / "cluster")]
    cluster = LocalCluster(tmp_path / "cluster")
    try:
        assert main(["cluster", "up", "--hosts", "127.0.0.1,127.0.0.2", *folder]) == 0
        state = cluster.state()
        assert state is not None
        told = capsys.readouterr().out
        assert f'app.run(on=ps.Spark("{cluster.master}"))' in told
        assert [(one.name, one.host) for one in state.members] == [
            ("master", "127.0.0.1"),
            ("worker-1", "127.0.0.1"),
            ("worker-2", "127.0.0.2"),
        ]
        processes = [one.process() for one in state.members]
        for process in processes:
            assert process is not None
            listening = [link.laddr.ip for link in process.net_connections("inet") if link.status == "LISTEN"]
            assert listening
            assert all(ip.removeprefix("::ffff:").startswith("127.0.0.") for ip in listening)

        assert main(["cluster", "status", *folder]) == 0
        assert capsys.readouterr().out.count("runs as process") == 3
        assert main(["cluster", "up", *folder]) == 2
        assert "a cluster is up already: spark://127.0.0.1" in capsys.readouterr().err
    finally:
        assert main(["cluster", "down", *folder]) == 0
    assert not any(process.is_running() for process in processes if process is not None)
    assert main(["cluster", "status", *folder]) == 1
    assert "no cluster is up" in capsys.readouterr().out
    assert main(["cluster", "down", *folder]) == 0


def test_down_ends_its_own_processes_only(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    own = member_of(sleeper.pid)
    taken = Member(own.name, own.host, own.pid, own.started - 1)  # its number is in use again
    remember(tmp_path / "other", taken)
    assert not taken.runs
    LocalCluster(tmp_path / "other").down()
    assert own.runs

    remember(tmp_path / "own", own)
    cluster = LocalCluster(tmp_path / "own")
    assert cluster.down() is not None
    assert not own.runs
    assert cluster.down() is None


def test_up_refuses_while_a_part_of_an_earlier_cluster_runs(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    remember(tmp_path / "cluster", member_of(sleeper.pid), Member("worker-1", "127.0.0.1", 2**30, 1))
    cluster = LocalCluster(tmp_path / "cluster")
    with pytest.raises(SparkError, match=r"^a cluster is up already: spark://127.0.0.1:7077 in .*; use it"):
        cluster.up()
    state = cluster.state()
    assert "process 1073741824 has ended" in str(state)


def test_a_master_that_cannot_start_is_said_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="17.0.1"\n')
    (home / "bin" / "java").write_text("#!/bin/sh\necho 'Error: no more memory' >&2\nexit 1\n")
    (home / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    cluster = LocalCluster(tmp_path / "cluster")
    with pytest.raises(
        SparkError, match=r"^the cluster cannot be started: .*: master has ended; Error: no more memory"
    ):
        cluster.up()
    assert cluster.state() is None


def test_unreadable_state_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text('{"master": ')
    with pytest.raises(SparkError, match=r"^unreadable state of a cluster: '.*cluster.json'.*; end its"):
        LocalCluster(tmp_path).down()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"workers": 0}, "workers must be at least 1"),
        ({"cores": 0}, "cores must be at least 1"),
        ({"memory": "much"}, "not an amount of memory: got 'much'"),
        ({"hosts": ("127.0.0.1", "0.0.0.0")}, "for this machine alone: '0.0.0.0' is no address of its"),
        ({"hosts": ("elsewhere",)}, "for this machine alone: 'elsewhere'"),
    ],
)
def test_wrong_options_are_said_plainly(options: dict[str, object], error: str, tmp_path: Path) -> None:
    with pytest.raises(SparkError, match=error):
        LocalCluster(tmp_path, **options)  # type: ignore[arg-type]


def test_no_cluster_has_no_master(tmp_path: Path) -> None:
    with pytest.raises(SparkError, match="no cluster is up"):
        _ = LocalCluster(tmp_path).master


def test_small_workers_need_small_executors() -> None:
    state = ClusterState("spark://127.0.0.1:7077", "", 1, "512m", ())
    assert state.python() == (
        'app.run(on=ps.Spark("spark://127.0.0.1:7077", settings={"spark.executor.memory": "512m"}))'
    )


def test_a_master_that_does_not_answer_is_said_at_once() -> None:
    with pytest.raises(
        SparkError, match=r"^the Spark master does not answer: 127.0.0.1:1: Connection refused; "
    ):
        check_master("spark://127.0.0.1:1")
    with pytest.raises(SparkError, match="'spark://nowhere' is no address"):
        check_master("spark://nowhere")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")  # one of them is enough
    check_master("local[2]")
    check_master("yarn")


def test_an_app_on_a_master_that_does_not_answer_ends_with_one_error(tmp_path: Path) -> None:
    script = f"""
import penstock as ps
app = ps.App("nobody")
numbers = app.source("numbers", ps.sources.Columns({{"ts": [0]}}, ps.Schema(ts="timestamp")), event_time="ts")
app.sink("out", numbers, ps.sinks.Memory())
try:
    app.run(on=ps.Spark("spark://127.0.0.1:{free_port("127.0.0.1")}", checkpoint={str(tmp_path / "c")!r}))
except ps.PenstockError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env={**os.environ},
    )
    assert done.stdout.startswith("the Spark master does not answer: 127.0.0.1:")
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_a_driver_of_a_cluster_on_loopback_listens_there_only() -> None:
    chosen = session_settings("spark://127.0.0.1:7077")
    assert (chosen["spark.driver.host"], chosen["spark.driver.bindAddress"]) == ("127.0.0.1", "127.0.0.1")


def test_a_session_on_another_master_is_not_taken_for_a_cluster(spark: object) -> None:
    with pytest.raises(
        SparkError, match=r"^a session on another master runs already: asked for spark://h:1, it"
    ):
        spark_session("spark://h:1")
