"""One start of the laboratory's app: watched by what it says, disturbed, and ended with all its processes."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from enum import Enum, StrEnum
from pathlib import Path

import psutil

from lab.bench.faults.app import COMPLETE, FINISHING, REFUSAL, AppStart

#: A run that says nothing new for so long hangs. On a machine that does many things a start takes a minute.
PATIENCE_S = 240.0
_POLL_S = 0.02
_GONE_S = 15.0


class Role(StrEnum):
    """Which processes of a run."""

    ALL = "process group"
    DRIVER = "driver"
    JVM = "JVM"
    WORKER = "a Python worker"
    WORKERS = "all Python workers"
    PLANNER = "planners"
    PYTHON = "all Python processes but the driver"


class Ending(Enum):
    """How a start ended."""

    COMPLETE = "complete"
    REFUSED = "an error in our words"
    BROKEN = "an error in others' words"
    KILLED = "killed"


class HungError(Exception):
    """A run neither goes on nor ends."""


class AppRun:
    """A run of the app in a session of its own, which Spark's daemons stay in."""

    def __init__(self, plan: AppStart, log: Path, environment: Mapping[str, str]) -> None:
        self.plan, self._out, self._err = plan, log.with_suffix(".out"), log.with_suffix(".err")
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                plan.command(), stdout=out, stderr=err, env=dict(environment), start_new_session=True
            )

    # -- what it says ----------------------------------------------------------------------------------------

    @property
    def said(self) -> list[str]:
        return self._out.read_text().splitlines()

    @property
    def errors(self) -> str:
        return self._err.read_text(errors="replace")

    @property
    def last_error(self) -> str:
        """The last line that it wrote of an error."""
        lines = [line.strip() for line in self.errors.splitlines() if line.strip()]
        return lines[-1] if lines else "it said nothing"

    @property
    def batches(self) -> list[int]:
        """The batches that it has told of."""
        return [int(line.split()[1]) for line in self.said if line.startswith("batch ")]

    @property
    def lives(self) -> bool:
        return self.process.poll() is None

    def until_batches(self, count: int, patience_s: float = math.inf) -> bool:
        """Waits until it has told of so many batches, or so long; whether it still runs then."""
        until_s = time.monotonic() + patience_s
        return self._until(lambda: len(self.batches) >= count or time.monotonic() > until_s)

    def until_finishing(self) -> bool:
        return self._until(lambda: FINISHING in self.said)

    def until_ended(self) -> Ending:
        """Waits for its end, and for that of all its processes."""
        self._until(lambda: False)
        self.end()
        return self.ending

    @property
    def ending(self) -> Ending:
        code = self.process.returncode
        if code == 0 and self.said[-1:] == [COMPLETE]:
            return Ending.COMPLETE
        if code == REFUSAL:
            return Ending.REFUSED
        return Ending.KILLED if code is not None and code < 0 else Ending.BROKEN

    def _until(self, condition: Callable[[], bool]) -> bool:
        said, since = -1, time.monotonic()
        while self.lives:
            if condition():
                return True
            size = self._out.stat().st_size
            if size != said:
                said, since = size, time.monotonic()
            elif time.monotonic() - since > PATIENCE_S:
                self._show_stacks()
                raise HungError(f"nothing new for {PATIENCE_S:.0f} s after {self.said[-1:]}")
            time.sleep(_POLL_S)
        return False

    # -- what is done to it ----------------------------------------------------------------------------------

    def processes(self, role: Role) -> list[psutil.Process]:
        """The processes that play a role now."""
        session = _session(self.process.pid)
        return [process for process in session if role is Role.ALL or _plays(role, process, self.process.pid)]

    def kill(self, role: Role, number: int = 0) -> int:
        """Kills at once; of one worker, the one with this number. Returns how many there were."""
        found = self.processes(role)
        if role is Role.WORKER and found:
            found = [found[number % len(found)]]
        return sum(_signalled(process, signal.SIGKILL) for process in found)

    def pause(self, role: Role, seconds: float) -> int:
        """Stops processes for a while; returns how many."""
        found = self.stop(role)
        time.sleep(seconds)
        self.resume(found)
        return len(found)

    def stop(self, role: Role) -> list[psutil.Process]:
        """Stops processes until they are resumed."""
        return [process for process in self.processes(role) if _signalled(process, signal.SIGSTOP)]

    def resume(self, stopped: list[psutil.Process]) -> None:
        for process in stopped:
            _signalled(process, signal.SIGCONT)

    def end(self) -> int:
        """Waits until nothing of it is left; returns how many processes did not go by themselves."""
        if self.lives:
            self.kill(Role.ALL)
        self.process.wait()
        _, alive = psutil.wait_procs(_session(self.process.pid), timeout=_GONE_S)
        for process in alive:
            _signalled(process, signal.SIGKILL)
        psutil.wait_procs(alive, timeout=_GONE_S)
        return len(alive)

    def _show_stacks(self) -> None:
        """Lets Python and the JVM write where they stand into the log."""
        for role, number in ((Role.DRIVER, signal.SIGUSR1), (Role.JVM, signal.SIGQUIT)):
            for process in self.processes(role):
                _signalled(process, number)
        time.sleep(1.0)


def _session(leader: int) -> list[psutil.Process]:
    """What lives in a session."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


def _plays(role: Role, process: psutil.Process, driver: int) -> bool:
    try:
        name, words = process.name(), " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False
    if process.pid == driver or name == "java":
        return role is (Role.DRIVER if process.pid == driver else Role.JVM)
    plans = "python_streaming_source_runner" in words
    works = "pyspark.daemon" in words
    match role:
        case Role.PLANNER:
            return plans
        case Role.WORKER | Role.WORKERS:
            return works
        case Role.PYTHON:
            return plans or works
        case _:
            return False


def _signalled(process: psutil.Process, number: int) -> bool:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return False
    return True
