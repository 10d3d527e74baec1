"""A standalone Spark cluster on this machine: a master and some workers, reached over loopback only."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil
import pyspark

from penstock.spark.session.errors import SparkError
from penstock.spark.session.secrets import CLUSTER_STATE, DEFAULT_FOLDER, ClusterSecret
from penstock.spark.session.start import check_java

_START_S = 90.0  # a JVM takes some seconds, on a busy machine many
_STOP_S = 10.0
_POLL_S = 0.1
_MEMORY = re.compile(r"[1-9]\d*[mgt]", re.IGNORECASE)
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"


@dataclass(frozen=True)
class Member:
    """A process of the cluster, and what proves that a process with its number is still this one."""

    name: str
    host: str
    pid: int
    started: int  # in the kernel's ticks since it booted: no two processes share number and start

    @property
    def runs(self) -> bool:
        return self.process() is not None

    def process(self) -> psutil.Process | None:
        """The process, or None if it has ended, even if its number is in use again."""
        if _started(self.pid) != self.started:
            return None
        try:
            found = psutil.Process(self.pid)
            return None if found.status() == psutil.STATUS_ZOMBIE else found
        except psutil.NoSuchProcess:
            return None


@dataclass(frozen=True)
class ClusterState:
    """What the cluster's folder says of it. The first member is the master."""

    master: str
    ui: str
    cores: int
    memory: str
    members: tuple[Member, ...]

    @classmethod
    def of(cls, found: dict[str, Any]) -> ClusterState:
        return cls(**{**found, "members": tuple(Member(**member) for member in found["members"])})

    def python(self) -> str:
        """The line of Python that runs an app on it."""
        # Spark asks for 1 GiB per executor, and would wait for ever for a worker that has it.
        memory = "" if self.memory == "1g" else f', settings={{"spark.executor.memory": "{self.memory}"}}'
        return f'app.run(on=ps.Spark("{self.master}"{memory}))'

    def __str__(self) -> str:
        lines = [f"{self.master}, workers of {self.cores} core(s) and {self.memory} each"]
        for member in self.members:
            running = f"runs as process {member.pid}" if member.runs else f"process {member.pid} has ended"
            lines.append(f"  {member.name:<9} {member.host:<12} {running}")
        return "\n".join(lines)


class LocalCluster:
    """A master and workers, kept in a folder: what one process brought up another can take down.

    ``with LocalCluster(folder) as cluster: ... ps.Spark(cluster.master)`` takes it down at the end. Every
    worker has a folder of its own. Workers take turns on ``hosts``, all of them addresses of this machine's
    loopback. What can be imported in the current directory can be imported by tasks too. Only apps of the
    user who brought it up get in: they find its secret in the folder, which is that user's alone.
    """

    def __init__(
        self,
        folder: str | Path = DEFAULT_FOLDER,
        *,
        workers: int = 2,
        cores: int = 1,
        memory: str = "1g",
        hosts: Sequence[str] = ("127.0.0.1",),
    ) -> None:
        for name, value in (("workers", workers), ("cores", cores)):
            if value < 1:
                raise SparkError(f"{name} must be at least 1", detail=f"got {value}", hint="write e.g. 2")
        if not _MEMORY.fullmatch(memory):
            raise SparkError(
                "not an amount of memory", detail=f"got '{memory}'", hint="write e.g. 512m or 2g"
            )
        for host in hosts:
            if not _is_loopback(host):
                raise SparkError(
                    "the cluster is for this machine alone",
                    detail=f"'{host}' is no address of its loopback",
                    hint="write e.g. 127.0.0.1,127.0.0.2",
                )
        self.folder = Path(folder).absolute()
        self._workers, self._cores, self._memory, self._hosts = workers, cores, memory.lower(), tuple(hosts)

    # -- life ------------------------------------------------------------------------------------------------

    def up(self) -> ClusterState:
        """Starts it, and returns when all workers have registered."""
        known = self.state()
        if known is not None and any(member.runs for member in known.members):
            raise SparkError(
                "a cluster is up already",
                detail=f"{known.master} in '{self.folder}'",
                hint="use it, or take it down first: penstock cluster down",
            )
        check_java()
        secret = ClusterSecret.create(self.folder)
        host = self._hosts[0]
        port, ui_port = free_port(host), free_port(host)
        master, ui = f"spark://{host}:{port}", f"http://{host}:{ui_port}"
        members: list[Member] = []
        try:
            where = ["--host", host, "--port", str(port), "--webui-port", str(ui_port)]
            self._start(members, master, ui, "master", host, _MASTER, where)
            self._wait(members, lambda: _told(ui, secret).get("url") == master, "the master does not answer")
            for number in range(self._workers):
                host = self._hosts[number % len(self._hosts)]
                where = ["--host", host, "--port", "0", "--webui-port", "0"]
                where += ["--cores", str(self._cores), "--memory", self._memory]
                where += ["--work-dir", str(self.folder / f"worker-{number + 1}"), master]
                self._start(members, master, ui, f"worker-{number + 1}", host, _WORKER, where)
            self._wait(
                members,
                lambda: _told(ui, secret).get("aliveworkers") == self._workers,
                "workers do not register",
            )
        except BaseException:
            self.down()
            raise
        state = self.state()
        assert state is not None
        return state

    def down(self) -> ClusterState | None:
        """Ends its processes, and those that they started; returns what it was, None if there was none."""
        state = self.state()
        if state is None:
            return None
        found = [process for member in state.members if (process := member.process()) is not None]
        started = [child for process in found for child in _children(process)]  # executors and their Python
        end(reversed(found))  # the master last: workers would look for it
        end(started)
        for member in state.members:
            shutil.rmtree(self.folder / member.name / "local", ignore_errors=True)
        (self.folder / CLUSTER_STATE).unlink(missing_ok=True)
        if (secret := ClusterSecret.of(self.folder)) is not None:
            secret.remove()
        return state

    def state(self) -> ClusterState | None:
        """What the folder says; None if no cluster was brought up in it since the last was taken down."""
        path = self.folder / CLUSTER_STATE
        try:
            return ClusterState.of(json.loads(path.read_text()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError) as error:
            raise SparkError(
                "unreadable state of a cluster",
                detail=f"'{path}': {error}",
                hint="end its processes by hand, and remove the file",
            ) from error

    @property
    def master(self) -> str:
        """The URL of the master."""
        state = self.state()
        if state is None:
            raise SparkError(
                "no cluster is up", detail=f"in '{self.folder}'", hint="start one: penstock cluster up"
            )
        return state.master

    def __enter__(self) -> LocalCluster:
        self.up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.down()

    # -- starting --------------------------------------------------------------------------------------------

    def _start(
        self, members: list[Member], master: str, ui: str, name: str, host: str, kind: str, words: list[str]
    ) -> None:
        folder, properties = self.folder / name, ClusterSecret.file_in(self.folder)
        shutil.rmtree(folder, ignore_errors=True)  # what an earlier cluster left
        folder.mkdir()
        home = str(Path(pyspark.__file__).parent)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
        environment |= {
            "SPARK_HOME": home,
            "SPARK_LOCAL_IP": host,
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            # Else there is a port on which anybody may submit jobs; and a machine that slept for a minute
            # would wake up without workers.
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false -Dspark.worker.timeout=3600",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join([os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }
        with (self.folder / f"{name}.log").open("wb") as log:
            started = subprocess.Popen(
                [Path(home, "bin", "spark-class"), kind, "--properties-file", properties, *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # it outlives the terminal, and Ctrl-C there
            )
        started_at = _started(started.pid)
        assert started_at is not None  # it is our child, and even if it has ended nobody has asked for it yet
        members.append(Member(name, host, started.pid, started_at))
        state = ClusterState(master, ui, self._cores, self._memory, tuple(members))
        temporary = self.folder / f"{CLUSTER_STATE}.new"
        temporary.write_text(json.dumps(asdict(state), indent=1))
        temporary.replace(self.folder / CLUSTER_STATE)

    def _wait(self, members: list[Member], condition: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + _START_S
        while not condition():
            ended = next((member for member in members if not member.runs), None)
            if ended is not None or time.monotonic() > deadline:
                name = members[-1].name if ended is None else ended.name
                what = f"no answer in {_START_S:.0f} s" if ended is None else f"{name} has ended"
                log = self.folder / f"{name}.log"
                raise SparkError(
                    f"the cluster cannot be started: {otherwise}",
                    detail=f"{what}; {_complaint(log)}",
                    hint=f"the rest is in '{log}'",
                )
            time.sleep(_POLL_S)


def end(processes: Iterator[psutil.Process] | Sequence[psutil.Process]) -> None:
    """Asks processes to end, one after the other; one that does not is ended."""
    for process in processes:
        try:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except psutil.TimeoutExpired:
                process.kill()
                process.wait(_STOP_S)
        except psutil.NoSuchProcess:
            continue


def free_port(host: str) -> int:
    """A port of an address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _told(ui: str, secret: ClusterSecret) -> dict[str, Any]:
    """What the master says of itself; nothing while it does not answer."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy has no way to loopback
    request = urllib.request.Request(f"{ui}/json/", headers={"Authorization": f"Bearer {secret.ui_token}"})
    try:
        with opener.open(request, timeout=5) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except (OSError, ValueError):
        return {}


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        found: list[psutil.Process] = process.children(recursive=True)
        return found
    except psutil.NoSuchProcess:
        return []


def _started(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[19])  # the name before it may hold anything


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _complaint(log: Path) -> str:
    """The line of a log that most likely says what went wrong."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"error|exception", line, re.IGNORECASE)]
    return next(iter(errors or reversed(lines)), "it wrote nothing")
