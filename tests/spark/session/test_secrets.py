"""Who may connect to Spark: nobody without the secret, which nobody but its owner can read."""

from __future__ import annotations

import os
import re
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from penstock.spark.session.cluster import LocalCluster
from penstock.spark.session.errors import SparkError
from penstock.spark.session.secrets import ClusterSecret, authentication, is_secret, secret_of

_NOBODY = 65534
_as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("secrets") / "cluster", workers=1) as cluster:
        yield cluster


def told_without_secret(host: str, port: int) -> bytes:
    """What a Spark port answers to a call of somebody who has not shown a secret."""
    body = b"hello"
    call = struct.pack(">BQI", 3, 1, len(body)) + body
    with socket.create_connection((host, port), 20) as link:
        link.settimeout(20)
        link.sendall(struct.pack(">Q", 8 + len(call)) + call)
        told = b""
        while b"SaslMessage" not in told and (data := link.recv(4096)):
            told += data
    return told


def listening(process: psutil.Process) -> list[tuple[str, int]]:
    links = process.net_connections("inet")
    return [(link.laddr.ip, link.laddr.port) for link in links if link.status == psutil.CONN_LISTEN]


def test_the_driver_of_a_local_master_talks_to_nobody_without_the_secret(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.authenticate") == "true"
    blocks = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().keys().mkString()
    host, _, blocks_port = blocks.partition(":")
    assert host == "127.0.0.1"
    for port in (int(conf.get("spark.driver.port") or 0), int(blocks_port)):
        assert b"Expected SaslMessage" in told_without_secret("127.0.0.1", port)


def test_sockets_of_python_are_in_a_folder_of_their_user_alone(spark: SparkSession) -> None:
    folder = spark.sparkContext.getConf().get("spark.python.unix.domain.socket.dir")
    assert folder is not None
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert spark.sparkContext.parallelize([1], 1).map(lambda n: n + 1).collect() == [2]
    assert [name for name in os.listdir(folder) if name.endswith(".sock")]


def test_the_secret_of_a_cluster_is_in_one_file_that_only_its_owner_can_read(cluster: LocalCluster) -> None:
    secret = secret_of(cluster.master)  # though this folder is named nowhere
    assert secret is not None
    assert secret.folder == cluster.folder
    assert stat.S_IMODE(cluster.folder.stat().st_mode) == 0o700
    files = [path for path in cluster.folder.rglob("*") if path.is_file()]
    with_secret = [path for path in files if secret.secret.encode() in path.read_bytes()]
    assert with_secret == [ClusterSecret.file_in(cluster.folder)]
    assert stat.S_IMODE(with_secret[0].stat().st_mode) == 0o600
    commands = [Path(f"/proc/{pid}/cmdline") for pid in psutil.pids()]
    assert not any(secret.secret.encode() in path.read_bytes() for path in commands if path.exists())


def test_a_cluster_talks_to_nobody_without_the_secret(cluster: LocalCluster) -> None:
    state = cluster.state()
    assert state is not None
    for member in state.members:
        process = member.process()
        assert process is not None
        ports = [port for _, port in listening(process)]
        assert len(ports) == 2
        pages = [port for port in ports if _is_page(member.host, port)]
        (calls,) = set(ports) - set(pages)
        assert b"Expected SaslMessage" in told_without_secret(member.host, calls)


def _is_page(host: str, port: int) -> bool:
    """Whether a port has pages, which must be closed."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(f"http://{host}:{port}/json/", timeout=20).close()
    except urllib.error.HTTPError as error:
        return error.code == HTTPStatus.FORBIDDEN
    except OSError:
        return False
    raise AssertionError("the page is open")


_APP = """
import sys
import penstock as ps
app = ps.App("visitor")
numbers = app.source("numbers", ps.sources.Columns({"ts": [0]}, ps.Schema(ts="timestamp")), event_time="ts")
sink = ps.sinks.Memory()
app.sink("out", numbers, sink)
master, *settings = sys.argv[1:]
try:
    app.run(on=ps.Spark(master, settings=dict(text.split("=") for text in settings)))
    print(sink.rows())
except ps.PenstockError as error:
    print(error)
"""


def run_app(*words: str, **options: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _APP, *words],
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=True,
        **options,  # type: ignore[call-overload]
    )
    return str(done.stdout)


@pytest.mark.slow
def test_an_app_of_the_owner_gets_in_from_any_folder(cluster: LocalCluster, tmp_path: Path) -> None:
    assert run_app(cluster.master, cwd=tmp_path) == "[{'ts': 0}]\n"
    secret = ClusterSecret.of(cluster.folder)
    assert secret is not None
    written = [path for path in cluster.folder.rglob("*") if path.is_file()]
    assert any(path.name == "stderr" for path in written)  # of executors
    assert [path for path in written if secret.secret.encode() in path.read_bytes()] == [
        ClusterSecret.file_in(cluster.folder)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["spark.authenticate=false", "spark.authenticate.secret=guessed"])
def test_an_app_without_the_secret_does_not_get_in(cluster: LocalCluster, setting: str) -> None:
    assert run_app(cluster.master, setting, stderr=subprocess.DEVNULL).startswith(
        f"the Spark master does not let this app in: {cluster.master} answers, and refuses to talk; check"
    )


@_as_root
def test_another_user_finds_no_secret() -> None:
    with tempfile.TemporaryDirectory() as open_to_all:
        os.chmod(open_to_all, 0o755)
        told = Path(open_to_all, "told")
        told.write_text("hello")
        assert read_by_nobody(told) == "hello"
        made = ClusterSecret.create(Path(open_to_all, "cluster"))
        assert read_by_nobody(ClusterSecret.file_in(made.folder)) == ""
        made.folder.chmod(0o755)
        assert read_by_nobody(ClusterSecret.file_in(made.folder)) == ""


def read_by_nobody(path: Path) -> str:
    command = ["cat", str(path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, user=_NOBODY, group=_NOBODY, extra_groups=[]
    )
    return done.stdout


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_secret_that_others_may_read_is_none(tmp_path: Path, mode: int) -> None:
    made = ClusterSecret.create(tmp_path / "cluster")
    assert ClusterSecret.of(made.folder) == made
    ClusterSecret.file_in(made.folder).chmod(mode)
    assert ClusterSecret.of(made.folder) is None


@_as_root
def test_a_secret_of_another_user_is_none_and_their_folder_is_not_used(tmp_path: Path) -> None:
    made = ClusterSecret.create(tmp_path / "cluster")
    os.chown(ClusterSecret.file_in(made.folder), _NOBODY, -1)
    assert ClusterSecret.of(made.folder) is None
    os.chown(made.folder, _NOBODY, -1)
    with pytest.raises(SparkError, match=r"^the cluster's folder belongs to another user: '.*' has the logs"):
        ClusterSecret.create(made.folder)


def test_a_standalone_master_without_a_secret_is_refused_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    with pytest.raises(SparkError, match=re.escape("no secret for the Spark master is known: without one")):
        authentication("spark://h:7077", {})
    assert authentication("spark://h:7077", {"spark.authenticate": "false"}) == {}
    given = {"spark.authenticate": "true", "spark.authenticate.secret": "hush"}
    assert authentication("spark://h:7077", {"spark.authenticate.secret": "hush"}) == given
    (tmp_path / "spark-defaults.conf").write_text("spark.authenticate.secret hush\n")
    assert authentication("spark://h:7077", {}) == given
    assert authentication("local[2,4]", {}) == {"spark.authenticate": "true"}
    assert authentication("yarn", {}) == {}


def test_secrets_do_not_stand_on_the_command_line_of_java() -> None:
    script = """
import psutil
from penstock.spark.session.start import spark_session
session = spark_session("local[1]", settings={"spark.hadoop.fs.x.secret.key": "hush-hush"})
assert session._jsparkSession.sessionState().newHadoopConf().get("fs.x.secret.key") == "hush-hush"
(java,) = psutil.Process().children()
words = java.cmdline()
assert "spark.authenticate=true" in words
assert not any("hush-hush" in word for word in words)
"""
    subprocess.run([sys.executable, "-c", script], timeout=300, check=True, stderr=subprocess.DEVNULL)
    assert is_secret("spark.hadoop.fs.x.secret.key")
