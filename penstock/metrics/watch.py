"""How a run stands, alike for all runtimes: its state and a few totals, told to a log and to whoever asks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from penstock.metrics.silence import Silence

_log = logging.getLogger(__name__)

PROGRESS_EVERY_S = 10.0


class Phase(StrEnum):
    """What a run is at."""

    STARTING = "starting"  # operators are built, kernels compiled
    READY = "ready"  # events are taken
    STOPPING = "stopping"  # asked to end: what is on its way is still processed
    ENDED = "ended"
    FAILED = "failed"


@dataclass(frozen=True)
class Totals:
    """What a run has done so far."""

    read: int = 0  # events, of all sources
    written: int = 0  # rows, of all sinks
    late: int = 0
    failed: int = 0  # events that functions failed for, set aside
    bad_records: int = 0
    waiting: int = 0  # events that are there and not processed, as far as it is known
    written_by_query: Mapping[str, int] = field(default_factory=dict)
    #: Of each source that has not ended, what changes when something comes from it.
    heard: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Standing:
    """A run at one moment."""

    name: str
    runtime: str
    state: Phase
    elapsed_s: float
    totals: Totals
    error: str = ""


class Watch:
    """Hears from a runtime how its run goes; may be asked from any thread.

    Each change of state, and the totals every so often, are told by a logger at level INFO, a failure as an
    error. ``fields`` of a record are what it says, for those who write JSON.
    """

    def __init__(
        self,
        name: str,
        runtime: str,
        *,
        silence: Silence | None = None,
        progress_every_s: float = PROGRESS_EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock, self._began_s = clock, clock()
        self._every_s, self._told_s = progress_every_s, clock()
        self._silence = silence or Silence({})
        self._lock = threading.Lock()
        self._standing = Standing(name, runtime, Phase.STARTING, 0.0, Totals())
        self._ask: Callable[[], Totals] = Totals

    @property
    def standing(self) -> Standing:
        """The run as it stands."""
        with self._lock:
            if self._standing.state in (Phase.ENDED, Phase.FAILED):
                return self._standing
            return replace(self._standing, elapsed_s=self._elapsed_s, totals=self._ask())

    def starting(self, queries: int, operators: int) -> None:
        """The queries are a graph, which a runtime will run."""
        where = self._standing.runtime
        self._tell(
            f"starts on {where}: {queries} queries, {operators} operators",
            queries=queries,
            operators=operators,
        )

    def ready(self) -> None:
        """From now on events are taken."""
        self._change(Phase.READY)
        self._tell(f"is ready after {self._elapsed_s:.1f} s")

    def progress(self, ask: Callable[[], Totals]) -> None:
        """What was done so far is asked for now, or by whoever looks; told once in a while."""
        with self._lock:
            self._ask = ask
            due = self._clock() - self._told_s >= self._every_s
        if due:
            self._told_s = self._clock()
            totals = self.standing.totals
            for warning in self._silence.look(self._clock(), totals.heard):
                self._tell(warning, level=logging.WARNING)
            self._tell(
                f"{totals.read:,} events read, {totals.written:,} rows written, {totals.waiting:,} waiting"
            )

    def stopping(self) -> None:
        """Somebody has asked the run to end."""
        self._change(Phase.STOPPING)
        self._tell("was asked to stop: what is on its way is still processed")

    def ended(self, summary: object) -> None:
        """The run has ended as it should."""
        self._change(Phase.ENDED)
        self._tell(f"has ended: {summary}")

    def failed(self, error: BaseException) -> None:
        """The run has ended by an error, which whoever started it is told too."""
        said = str(error) or type(error).__name__
        self._change(Phase.FAILED, said)
        if _log.hasHandlers():  # else Python would print it, and then print it again
            self._tell(f"has failed: {said}", level=logging.ERROR, error=said)

    @property
    def _elapsed_s(self) -> float:
        return self._clock() - self._began_s

    def _change(self, state: Phase, error: str = "") -> None:
        with self._lock:
            self._standing = replace(
                self._standing, state=state, error=error, elapsed_s=self._elapsed_s, totals=self._ask()
            )

    def _tell(self, text: str, *, level: int = logging.INFO, **more: Any) -> None:
        standing = self.standing
        totals = standing.totals
        fields = {
            "run": standing.name,
            "state": standing.state.value,
            "read": totals.read,
            "written": totals.written,
            "waiting": totals.waiting,
            **more,
        }
        _log.log(level, "run '%s' %s", standing.name, text, extra={"fields": fields})
