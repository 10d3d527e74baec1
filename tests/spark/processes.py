"""Drivers as processes of their own: started, killed, and waited for until nothing of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

ROOT = Path(__file__).parent.parent.parent
_PATIENCE_S = 600.0
#: ``name:count``: where the processes of ``crash_app`` and its like die, and when one of them comes there for
#: how many times.
KILL_AT = "CRASH_KILL_AT"


@contextmanager
def driver(
    module: str, *arguments: str, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Runs ``main`` of a module with these arguments; at the end no process of it is left."""
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, "-c", f"import sys, {module} as m; m.main(*sys.argv[1:])", *arguments],
        env={**os.environ, "PYTHONPATH": paths, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Spark's daemon has a process group of its own, but stays in the session
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
        end_session(process.pid)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def until_killed(module: str, *arguments: str, at: str, env: Mapping[str, str] | None = None) -> str:
    """Runs a driver until one of its processes ends itself and the driver at a named point; what it said."""
    with driver(module, *arguments, env={**(env or {}), KILL_AT: at}) as process:
        out, err = process.communicate(timeout=_PATIENCE_S)
    assert process.returncode == -signal.SIGKILL, f"not killed at '{at}'\n{out}\n{err}"
    return out


def to_the_end(module: str, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Runs a driver that nobody disturbs; what it said."""
    with driver(module, *arguments, env=env) as process:
        out, err = process.communicate(timeout=_PATIENCE_S)
    assert process.returncode == 0, err
    assert "complete: True" in out.splitlines()[-1], out
    return out


def end_session(session: int) -> None:
    """Waits until no process has this session id. A JVM and its workers live on for a moment."""
    _, alive = psutil.wait_procs(_of(session), timeout=10)
    for process in alive:
        process.kill()
    psutil.wait_procs(alive, timeout=10)
    left = _of(session)
    assert not left, f"processes of a killed driver are left: {left}"


def _of(session: int) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found
