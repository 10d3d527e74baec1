"""Tests of a user's own queries: say events and times, settle, look at results, kill and start again.

>>> import penstock as ps
>>> from penstock.testing import Tape, Trial
>>> cars = Tape({"ts": "timestamp", "lane": "int32"})
>>> app = ps.App("traffic")
>>> per_lane = app.source("cars", cars, event_time="ts").key_by("lane").window(ps.tumbling("1m"))
>>> counts = ps.sinks.Memory()
>>> app.sink("counts", per_lane.agg(cars=ps.count()), counts)
>>> with Trial(app, on=ps.Node(workers=1)) as trial:
...     cars.add([{"ts": 5_000_000, "lane": 1}, {"ts": 9_000_000, "lane": 1}])
...     trial.settle()
...     before = len(counts)
...     cars.watermark(60_000_000)
...     trial.settle()
...     [row["cars"] for row in counts.rows()], before
([2], 0)
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from penstock.app import App
from penstock.connectors.memory.tape import Tape
from penstock.engine.node import Node
from penstock.engine.seat.execution import Execution
from penstock.query.durations import Duration, positive_us
from penstock.query.errors import QueryError, RunError
from penstock.query.steps import SourceSpec

if TYPE_CHECKING:
    from penstock.spark.batches.run import SparkRun
    from penstock.spark.runtime import Spark

__all__ = ["Tape", "Trial"]

_LOOK_S = 0.002


class Trial:
    """A run of an app that a test leads; its sources are tapes, or end by themselves.

    ``on`` is a ``ps.Node`` or a ``ps.Spark`` without groups. What does not settle within ``patience`` is an
    error. Inside ``with`` the run goes on; at the end it is killed, unless it has been finished.
    """

    def __init__(self, app: App, on: Node | Spark | None = None, *, patience: Duration = "1m") -> None:
        self._app, self._on = app, on or Node()
        if isinstance(self._on, Node) and self._on.checkpoint is not None:
            raise QueryError(
                "a trial leads a node without a checkpoint",
                detail="with one, results stand in their sinks when an epoch ends, not when all is worked in",
                hint="leave checkpoint out: what is killed is read again from the tapes; or test on ps.Spark",
            )
        patience_us = positive_us(patience, "patience")
        assert patience_us is not None
        self._patience_s = patience_us / 1e6
        self._graph = app.graph()
        specs = [(node.id, node.spec) for node in self._graph if isinstance(node.spec, SourceSpec)]
        self._tapes = {name: spec.source for name, spec in specs if isinstance(spec.source, Tape)}
        for name, spec in specs:
            if name not in self._tapes and not spec.source.bounded:
                raise QueryError(
                    f"source '{name}' never settles",
                    detail=f"a {type(spec.source).__name__} without an end",
                    hint="put a Tape in its place, or one that ends",
                )
        self._run: Execution | SparkRun | None = None

    def start(self) -> None:
        """Starts the app: the first time, or again after ``kill``. A checkpoint goes on, and without one
        everything is read from the beginning."""
        if self._run is not None:
            raise RunError("the run goes on: kill or finish it before it is started again")
        if isinstance(self._on, Node):
            self._run = self._on.start(self._graph)
        else:
            self._run = self._on.start(self._graph, self._app.name)

    def settle(self) -> None:
        """Returns when all that was said has been worked in, and results stand in their sinks.

        Raises what made the run fail.
        """
        run = self._running()
        deadline_s = time.monotonic() + self._patience_s
        while not self._is_settled(run):
            if run.wait(_LOOK_S):
                if run.failed:
                    self._run = None
                    run.finish()  # raises what made it fail
                return
            if time.monotonic() > deadline_s:
                raise RunError(
                    f"the run has not settled within {self._patience_s:g} s; "
                    "see whether a function hangs, or write Trial(..., patience='5m')"
                )

    def finish(self) -> Any:
        """Ends all tapes and waits for the end; the summary of the run."""
        for tape in self._tapes.values():
            tape.end()
        run, self._run = self._running(), None
        if not run.wait(self._patience_s):
            self._end(run)
            raise RunError(f"the run has not ended within {self._patience_s:g} s")
        return run.finish()

    def kill(self) -> None:
        """Ends the run with whatever is on its way.

        On a node nothing is drained. On Spark the batch at hand ends first: a batch counts or it does not.
        """
        run, self._run = self._running(), None
        self._end(run)

    def restart(self) -> None:
        """Kills the run and starts it again."""
        self.kill()
        self.start()

    def __enter__(self) -> Trial:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run, self._run = self._run, None
        if run is not None:
            self._end(run)

    def _running(self) -> Execution | SparkRun:
        if self._run is None:
            raise RunError("nothing runs: start the trial first")
        return self._run

    def _is_settled(self, run: Execution | SparkRun) -> bool:
        if isinstance(run, Execution):
            return run.is_settled()
        return run.has_come_to({name: tape.lines for name, tape in self._tapes.items()})

    def _end(self, run: Execution | SparkRun) -> None:
        if isinstance(run, Execution):
            run.abort()
        else:
            run.stop()
        run.wait(self._patience_s)
        run.finish()
