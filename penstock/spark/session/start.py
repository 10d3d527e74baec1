"""The Spark session that Penstock runs in: settings that pay, and clear words when Java is missing."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.engine.seat.interrupts import handler_kept
from penstock.spark.session.driver_memory import memory_settings
from penstock.spark.session.errors import SparkError
from penstock.spark.session.secrets import authentication, secret_of, start_java

OLDEST_JAVA = 17
_ATTEMPTS = 4
_STANDALONE = "spark://"
_ANSWER_S = 5
_EXECUTOR_S = 120  # on a busy machine a JVM takes long to start
_POLL_S = 0.05
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_LOCAL_PYTHON = Path(__file__).with_name("python_process.sh")
_PYSPARK_PYTHON = "PYSPARK_PYTHON"
_INTERPRETER = "PENSTOCK_PYTHON"  # which one python_process.sh runs
#: An executor that does not answer is given up after 30 to 35 s; with Spark's own settings after 120 to 180.
_NOTICED_SOON = {
    "spark.executor.heartbeatInterval": "5s",
    "spark.storage.blockManagerHeartbeatTimeoutMs": "30s",
    "spark.network.timeoutInterval": "5s",
}
_SOCKETS = "spark.python.unix.domain.socket.dir"
_LONGEST_FOLDER = 64  # a socket's path has 107 bytes, its name 43
_STACK = "-Xss4m"  # foreachBatch overflows the default stack: regular expressions in the stream thread


def spark_session(
    master: str = "local[*]", app_name: str = "penstock", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """The running session, or a new one on ``master``; ``settings`` go before Penstock's own.

    A session that runs already keeps its master, its JVM and what is fixed at the start; its SQL settings
    become ours. Starting a JVM takes some seconds.
    """
    running = SparkSession.getActiveSession()
    if running is None:
        check_java()
        check_master(master)
    elif local_cores(master) is None and running.sparkContext.master != master:
        raise SparkError(
            "a session on another master runs already",
            detail=f"asked for {master}, it is on {running.sparkContext.master}",
            hint="stop it first: SparkSession.active().stop()",
        )
    if running is not None and local_cores(running.sparkContext.master or "") is not None:
        check_interpreter(running.sparkContext.pythonExec)
    builder = SparkSession.builder.master(retrying(master)).appName(app_name)
    chosen = session_settings(master, settings)
    os.environ[_INTERPRETER] = sys.executable
    if _chosen_python() is None:
        os.environ[_PYSPARK_PYTHON] = chosen["spark.pyspark.python"]  # PySpark itself reads only this
    sockets = None
    if running is None:
        chosen |= authentication(master, chosen)
        if _is_ours(master):
            sockets = _socket_folder()
        if sockets is not None:
            chosen.setdefault(_SOCKETS, sockets)
    with handler_kept():
        if running is None:
            start_java(chosen)
        for name, value in chosen.items():
            builder = builder.config(name, value)
        session = _created(builder, master)
    if running is None:
        atexit.register(_stop, session, sockets)  # else Python's workers end with a trace on the terminal
    if running is None and master.startswith(_STANDALONE):
        _await_executor(session, master)
    return session


def check_interpreter(program: str) -> None:
    """Raises ``SparkError`` if a local session that runs already starts a Python without our packages."""
    if program in (sys.executable, str(_LOCAL_PYTHON)):
        return
    ask = "import sys; print(sys.prefix)"
    try:
        answer = subprocess.run([program, "-c", ask], capture_output=True, text=True, check=False).stdout
    except OSError as error:
        answer = f"nothing: {error.strerror}"
    if answer.strip() != sys.prefix:
        raise SparkError(
            "the Spark session that runs already starts another Python than this app's",
            detail=f"'{program}' is of {answer.strip() or 'nothing'}, this app is of {sys.prefix}",
            hint="set os.environ['PYSPARK_PYTHON'] = sys.executable before the session is made, "
            "or let ps.Spark() make it",
        )


def _created(builder: SparkSession.Builder, master: str) -> SparkSession:
    try:
        return builder.getOrCreate()
    except Exception as error:
        # Spark gives up after a minute, and then trips over the session that it has stopped.
        if master.startswith(_STANDALONE) and "stopped SparkContext" in str(error):
            raise _not_let_in(master) from None
        raise


def _stop(session: SparkSession, sockets: str | None) -> None:
    with contextlib.suppress(Exception):  # its JVM may be gone by now
        session.stop()
    if sockets is not None:
        shutil.rmtree(sockets, ignore_errors=True)


def _is_ours(master: str) -> bool:
    """Whether all processes of a session are this user's, on this machine."""
    return local_cores(master) is not None or secret_of(master) is not None


def _socket_folder() -> str | None:
    """A folder of this user's alone for the sockets between Java and Python, which ask nobody who they are.

    None where its path would be too long: then they are in the folder for temporary files, and who may use
    them is up to the umask.
    """
    folder = tempfile.mkdtemp(prefix="penstock-")
    if len(folder) <= _LONGEST_FOLDER:
        return folder
    os.rmdir(folder)
    return None


def session_settings(master: str, settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """All settings of a session on ``master``. Java options given are added to ours."""
    cores = local_cores(master)
    chosen = {
        # otherwise workers take another python3 and miss our packages
        "spark.pyspark.python": _chosen_python() or _our_python(is_local=cores is not None),
        f"spark.executorEnv.{_INTERPRETER}": sys.executable,
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.buffer.size": str(1 << 20),  # bytes: Spark takes no unit here
        "spark.driver.extraJavaOptions": f'{_STACK} "-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"',
        "spark.executor.extraJavaOptions": _STACK,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # groups of queries get a pool each; within a pool, and without groups, jobs come in their order
        "spark.scheduler.mode": "FAIR",
        # plans in the middle of short jobs cost time, and with an empty branch goes what was observed there
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 16),
        # several calls into the JVM for every operation on a column, to name its line in an error
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # what lowered expressions rely on
        "spark.sql.ansi.enabled": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.session.timeZone": "UTC",
        # A map task that runs again says the same, but for how long it took. Spark would take that for other
        # data, and give up a batch of which some task is done.
        "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
        "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
        "spark.sql.shuffle.orderIndependentChecksum.enableQueryLevelRollbackOnMismatch": "false",
    }
    if cores is not None:
        chosen |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(cores),
            # a third of the time for offset and commit logs; on local paths renaming is atomic
            "spark.sql.streaming.checkpointFileManagerClass": (
                "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
            ),
        }
    else:
        chosen |= _NOTICED_SOON
        if any(_is_loopback(host) for host, _ in _addresses(master)):
            chosen |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    chosen |= memory_settings(settings or {})
    for name, value in (settings or {}).items():
        chosen[name] = f"{chosen[name]} {value}" if name in chosen and name.endswith("JavaOptions") else value
    return chosen


def _chosen_python() -> str | None:
    """The Python that the user told Spark to start."""
    chosen = os.environ.get(_PYSPARK_PYTHON)
    return None if chosen == str(_LOCAL_PYTHON) else chosen


def _our_python(*, is_local: bool) -> str:
    """This interpreter; where its workers write to the user's terminal, by what keeps them quiet."""
    return str(_LOCAL_PYTHON) if is_local and os.access(_LOCAL_PYTHON, os.X_OK) else sys.executable


def retrying(master: str) -> str:
    """A local master that tries a failed task again, as clusters do; any other as it is.

    >>> retrying("local[*]"), retrying("local"), retrying("local[2,1]"), retrying("spark://host:7077")
    ('local[*,4]', 'local[1,4]', 'local[2,1]', 'spark://host:7077')
    """
    if master == "local":
        return f"local[1,{_ATTEMPTS}]"
    return re.sub(r"^local\[(\*|\d+)\]$", rf"local[\1,{_ATTEMPTS}]", master)


def local_cores(master: str) -> int | None:
    """How many tasks a local master runs at once; None for a cluster.

    >>> local_cores("local[3]"), local_cores("local"), local_cores("spark://host:7077")
    (3, 1, None)
    """
    if master == "local":
        return 1
    found = re.match(r"local\[(\*|\d+)(?:,\s*\d+)?\]$", master)
    if found is None:
        return None
    return len(os.sched_getaffinity(0)) if found[1] == "*" else int(found[1])


def check_master(master: str) -> None:
    """Raises ``SparkError`` unless a standalone master answers: Spark itself would try for a minute."""
    failures: list[str] = []
    for host, port in _addresses(master):
        try:
            socket.create_connection((host, port), _ANSWER_S).close()
            return
        except OSError as error:
            failures.append(f"{host}:{port}: {error.strerror or error}")
    if failures or master.startswith(_STANDALONE):
        raise SparkError(
            "the Spark master does not answer",
            detail=", ".join(failures) or f"'{master}' is no address",
            hint="check that it runs and the address; 'penstock cluster up' starts one on this machine",
        )


def _addresses(master: str) -> list[tuple[str, int]]:
    """Where a standalone master, or one of several that stand by, listens.

    >>> _addresses("spark://one:7077,two:7078"), _addresses("yarn")
    ([('one', 7077), ('two', 7078)], [])
    """
    if not master.startswith(_STANDALONE):
        return []
    split = (address.rpartition(":") for address in master.removeprefix(_STANDALONE).split(","))
    return [(host, int(port)) for host, _, port in split if host and port.isdecimal()]


def _is_loopback(host: str) -> bool:
    return host == "localhost" or re.fullmatch(r"127(\.\d+){3}", host) is not None


def _await_executor(session: SparkSession, master: str) -> None:
    """Waits until the cluster gave an executor. Jobs would wait for one in silence, for ever."""
    deadline = time.monotonic() + _EXECUTOR_S
    memory_status = session.sparkContext._jsc.sc().getExecutorMemoryStatus
    while memory_status().size() < 2:  # one is the driver
        if session.sparkContext._jsc.sc().isStopped():
            raise _not_let_in(master)
        if time.monotonic() > deadline:
            session.stop()
            raise SparkError(
                "the Spark cluster gives no executor",
                detail=f"none in {_EXECUTOR_S} s from {master}",
                hint="check that it has workers with a free core and the memory that spark.executor.memory "
                "asks for (1g unless set), and their logs",
            )
        time.sleep(_POLL_S)


def _not_let_in(master: str) -> SparkError:
    return SparkError(
        "the Spark master does not let this app in",
        detail=f"{master} answers, and refuses to talk",
        hint="check that spark.authenticate and spark.authenticate.secret are what the master has",
    )


def check_java() -> None:
    """Raises ``SparkError`` unless Spark would start a Java that is new enough."""
    home = os.environ.get("JAVA_HOME")
    hint = f"install Java {OLDEST_JAVA} or newer, and set JAVA_HOME to its folder"
    if home:  # Spark then looks nowhere else
        java = Path(home, "bin", "java")
        if not os.access(java, os.X_OK):
            raise SparkError(
                "no Java found", detail=f"JAVA_HOME is '{home}', which has no bin/java", hint=hint
            )
    else:
        on_path = shutil.which("java")
        if on_path is None:
            raise SparkError(
                "no Java found", detail="JAVA_HOME is not set and no 'java' is on the PATH", hint=hint
            )
        java = Path(on_path)
    version = java_version(java)
    if version is not None and version < OLDEST_JAVA:
        raise SparkError("Java is too old for Spark", detail=f"'{java}' is version {version}", hint=hint)


def java_version(java: Path) -> int | None:
    """The main version of a Java program, None if it does not say."""
    release = java.resolve().parent.parent / "release"  # faster than to start it
    try:
        text = release.read_text()
    except OSError:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
        text = done.stderr
    found = re.search(r'(?:JAVA_VERSION=| version )"(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None
