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
_PATIENCE_S = 300.0


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
