"""One run on Spark: a streaming query for all queries of an app, from its start to a safe stop."""

from __future__ import annotations

import logging
import math
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from penstock.checkpoints.folders import Changes, Checkpoint
from penstock.checkpoints.leftovers import remove_abandoned
from penstock.checkpoints.lock import CheckpointLock
from penstock.checkpoints.writers import close_writers
from penstock.engine.seat import collector
from penstock.metrics.batches import BatchProgress, ProgressLog, RunProgress
from penstock.metrics.degree import DegreeMetrics
from penstock.metrics.watch import Totals
from penstock.query.errors import PenstockError
from penstock.query.graph import Graph
from penstock.spark.batches import results
from penstock.spark.batches.driver import Driver
from penstock.spark.batches.durations import SparkDurations
from penstock.spark.batches.opening import Opened, Opening, open_run
from penstock.spark.batches.reports import LeftOut, summed
from penstock.spark.batches.restarts import Restarts
from penstock.spark.batches.stalls import StallWatch, work_of
from penstock.spark.batches.streaming import begin_stream
from penstock.spark.batches.stuck import Grace, TurnNotes
from penstock.spark.batches.summary import SparkSummary
from penstock.spark.groups.slots import GroupShare, Stopping
from penstock.spark.session.failures import given_up, is_passing, told_by_spark

if TYPE_CHECKING:
    from penstock.spark.runtime import Spark


_log = logging.getLogger(__name__)

_POLL_S = 0.1
_CANCEL_S = 20.0  # for Spark to end the tasks of a batch that is given up


class SparkRun:
    """A run of a graph. ``start`` it, then ``wait``; ``stop`` ends it between two batches."""

    def __init__(
        self,
        graph: Graph,
        runtime: Spark,
        name: str,
        *,
        on_built: Callable[[int, int], None] | None = None,
        last_batch: int | None = None,
        share: GroupShare | None = None,
        measures: bool = False,
        locks: bool = True,
    ) -> None:
        self._locks = locks  # whoever divides queries into groups has locked the checkpoint already
        self._last_batch = last_batch
        self.run_id = uuid.uuid4().hex
        self._runtime, self._share = runtime, share
        self._opening = Opening(graph, runtime, name, self.run_id, share, measures, on_built)
        self.progress = RunProgress()
        self.batches: list[BatchProgress] = []
        self.on_progress: Callable[[BatchProgress], None] | None = None
        self._log = None if runtime.progress is None else ProgressLog(runtime.progress)
        self._lock = threading.Lock()  # held while a batch runs
        self._stopping = False
        self._stopped_early = False
        self._drained = threading.Event()  # bounded sources have been read to their ends
        self._error: BaseException | None = None
        self._batch_error: BaseException | None = None  # as it was raised; the stream then ends of it
        self._restarts = Restarts(runtime.restarts)
        self._again_at_s: float | None = None  # when the stream that broke off is started anew
        self._halted = threading.Event()
        self._grace = Grace(runtime.stop_grace_s)
        self._left_behind: frozenset[str] = frozenset()  # queries whose sinks hang
        self._query: StreamingQuery | None = None
        self._opened: Opened | None = None
        self._left_out = LeftOut()
        self._degrees: dict[str, DegreeMetrics] = {}
        self._durations = SparkDurations(self._publish)
        self._stalls = StallWatch(lambda: work_of(self._there.session.sparkContext))

    # -- life ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Builds everything and starts the streaming query."""
        remove_abandoned()
        self.checkpoint = Checkpoint.at(self._runtime.checkpoint)
        self._checkpoint_lock = CheckpointLock(self.checkpoint.root) if self._locks else None
        try:
            self._start()
            collector.begin_run()
        except BaseException as error:
            if self._checkpoint_lock is not None:
                self._checkpoint_lock.free()
            if self._opened is not None:
                close_writers(self._opened.writers, complete=False)
            if self._log is not None:
                self._log.close()
            self.checkpoint.remove()
            raise told_by_spark(error) from None

    def _start(self) -> None:
        opened = self._opened = open_run(self._opening, self.checkpoint)
        if opened.is_complete:
            _log.warning("the run of '%s' is complete already", self.checkpoint.root)
        if opened.is_complete or opened.is_drained:
            self._drained.set()
            return
        while True:
            try:
                self._begin_stream()
                return
            except Exception as error:
                self._halted.wait(self._pause_s(error))

    def _begin_stream(self) -> None:
        self._query = begin_stream(self._opening, self._there, self._batch, restarts=self._restarts.total)

    @property
    def _there(self) -> Opened:
        assert self._opened is not None
        return self._opened

    @property
    def changes(self) -> Changes:
        """How the app differs from the one that wrote the checkpoint."""
        return self._there.changes

    @property
    def driver(self) -> Driver | None:
        """What runs the batches; None before the start."""
        return None if self._opened is None else self._opened.driver

    @property
    def restarts(self) -> int:
        """How often the run has gone on by itself."""
        return self._restarts.total

    @property
    def failed(self) -> bool:
        """Whether something has gone wrong; ``finish`` raises it."""
        return self._error is not None and not isinstance(self._error, Stopping)

    def has_come_to(self, positions: Mapping[str, int]) -> bool:
        """Whether a batch has counted that read each of these sources, of one partition, so far."""
        if self._opened is None:
            return False
        sources = self._opened.driver.progress.sources
        return all(sources[name][0].position >= position for name, position in positions.items())

    def set_tasks(self, tasks: int | None) -> None:
        """From the batch after next on, this many tasks share the keys; None: as many as the load asks for.

        The state moves with the keys: each task loads what it now owns.
        """
        if tasks is not None and not 1 <= tasks <= self._runtime.virtual_partitions:
            raise PenstockError(
                f"tasks must be between 1 and {self._runtime.virtual_partitions}: got {tasks}; "
                "write virtual_partitions= for more"
            )
        self._there.routing.set_tasks(tasks)

    def stop(self) -> None:
        """Ends the run after the batch at hand, or without it if it takes longer than the grace time:
        ``finish`` then raises what hangs. A later run with the same checkpoint goes on from there."""
        self.ask_to_stop()
        self._halt()

    def ask_to_stop(self) -> None:
        """Lets no further batch begin, and the grace time of the one at hand."""
        self._stopped_early = self._stopping = True
        self._grace.begin()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end; False if it has not come in that time."""
        until_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while not (self._drained.is_set() or self._stopping or self._query is None or self._error):
            left_s = until_s - time.monotonic()
            ended = False
            try:
                if self._again_at_s is not None:
                    if not self._halted.wait(max(0.0, min(self._again_at_s - time.monotonic(), left_s))):
                        self._begin_again()
                else:
                    step_s = max(0.001, min(_POLL_S, left_s))
                    ended = bool(self._query.awaitTermination(step_s))  # type: ignore[arg-type]
                    self._durations.ask(self._query)
                    if news := self._stalls.news():
                        _log.warning("%s", news)
                    if ended and self._there.is_bounded and self._batch_error is None and not self._stopping:
                        self._drained.set()
            except Exception as error:
                if not self._stopping:
                    self._broken(self._batch_error or error)
            if ended or left_s <= _POLL_S:
                return ended or self._error is not None
        return True

    def finish(self) -> SparkSummary:
        """Closes everything after the end and sums up; raises what made the run fail."""
        opened = self._there
        self._halt()
        collector.end_run()
        complete = False
        try:
            if self._error is None and self._drained.is_set() and not self._stopped_early:
                self._close(opened.driver)
                complete = True
        except Exception as error:
            self._error = told_by_spark(error)
        finally:
            if self._query is not None:
                self._durations.ask(self._query)
            self._durations.flush()
            closing = {query: w for query, w in opened.writers.items() if query not in self._left_behind}
            close_writers(closing, complete)
            opened.patterns.end()
            if self._log is not None:
                self._log.close()
            if self._checkpoint_lock is not None:
                self._checkpoint_lock.free()
            self.checkpoint.remove()
        if self._error is not None and not isinstance(self._error, Stopping):
            raise self._error
        progress, last = self.progress, self.progress.last
        return SparkSummary(
            complete=complete,
            elapsed_s=progress.elapsed_s,
            read=progress.rows_in,
            written=progress.rows_out,
            queries=len(opened.writers),
            operators=len(self._opening.graph),
            late=self._left_out.late,
            failed=self._left_out.failed,
            bad_records=progress.bad_records,
            open_windows=0 if complete or last is None else last.state_rows,
            degrees=dict(self._degrees),
            progress=progress,
            changes=str(self.changes),
            restarts=self._restarts.total,
        )

    def metrics(self) -> RunProgress:
        """The run as it stands."""
        return copy(self.progress)

    def totals(self) -> Totals:
        """The same in a few figures."""
        return self.progress.totals()

    # -- restarts --------------------------------------------------------------------------------------------

    def _pause_s(self, error: BaseException) -> float:
        """How long to wait before what failed is tried again; raises what went wrong if it is not."""
        if not is_passing(error):
            raise told_by_spark(error) from None
        if self._restarts.are_used_up:
            raise given_up(error, self._restarts.most) from None
        self._restarts = self._restarts.one_more()
        _log.warning("%s; %s", told_by_spark(error), self._restarts)
        return self._restarts.pause_s

    def _broken(self, error: BaseException) -> None:
        """The stream has ended by an error: it is to begin again, or the run has failed."""
        try:
            self._again_at_s = time.monotonic() + self._pause_s(error)
        except Exception as final:
            self._error = self._error or final

    def _begin_again(self) -> None:
        """Of the batch at hand no sink has got anything: its job comes first, and failed or never began."""
        if time.monotonic() < (self._again_at_s or 0.0):
            return
        self._again_at_s = self._batch_error = None
        self._durations.flush()
        results.remove_all(self.checkpoint.results)
        self._begin_stream()

    def _close(self, driver: Driver) -> None:
        while True:
            try:
                self._tell(driver.close())
                return
            except Exception as error:
                time.sleep(self._pause_s(error))

    # -- batches ---------------------------------------------------------------------------------------------

    def _batch(self, frame: DataFrame, batch_id: int) -> None:
        """What Spark calls for every batch, in a thread of its own."""
        if self._share is None:
            self._work(frame, batch_id)
            return
        with self._share.slots.turn(self._share.number) as turn:
            turn.rows = self._work(frame, batch_id)

    def _work(self, frame: DataFrame, batch_id: int) -> int:
        """Runs a batch; returns how many events it read."""
        with self._lock:
            if self._stopping or self._drained.is_set():
                raise Stopping("the run is being stopped")
            opened = self._there
            try:
                if self._query is not None:  # else it is just being started
                    self._durations.ask(self._query)
                self._stalls.began(batch_id)
                batch = opened.driver.run(frame, batch_id)
                self._tell(batch)
            except BaseException as error:
                self._batch_error = error
                raise told_by_spark(error) from None
            finally:
                self._stalls.ended()
            if self._last_batch is not None and batch_id >= self._last_batch:
                self._stopping = self._stopped_early = True
            elif opened.is_drained:
                self._drained.set()
            return 0 if batch is None else batch.rows_in

    def _tell(self, batch: BatchProgress | None) -> None:
        """Notes a batch that counted; it is shown when Spark has told how long its own share took."""
        if batch is None:
            return
        self._restarts = self._restarts.after_a_batch()
        batch = replace(batch, restarts=self._restarts.total)
        left_out = self._there.driver.report.left_out
        self._left_out = LeftOut(
            summed((self._left_out.late, left_out.late)), summed((self._left_out.failed, left_out.failed))
        )
        self._degrees |= {step: DegreeMetrics.of(dict(one)) for step, one in batch.degrees.items()}
        self._durations.add(batch)

    def _publish(self, batch: BatchProgress) -> None:
        self._there.driver.hear(batch.rows_in)
        self.progress.add(batch)
        self.batches.append(batch)
        if self._log is not None:
            self._log.write(batch)
        if self.on_progress is not None:
            self.on_progress(batch)

    def _halt(self) -> None:
        """Stops the streaming query between two batches: stopped inside one, Spark may overflow its stack
        over the error's text."""
        self._stopping = True
        self._halted.set()
        if not self._await_batch():
            return
        error = self._batch_error
        if error is not None and not (self._stopped_early and is_passing(error)):
            self._error = self._error or told_by_spark(error)
        if self._query is not None:
            try:
                self._query.stop()
            except Exception as error:
                self._error = self._error or told_by_spark(error)

    def _await_batch(self) -> bool:
        """Waits for the batch at hand; False if it has to be left behind. A task can be cancelled, a sink in
        this process cannot."""
        self._grace.begin()
        if not self._lock.acquire(blocking=False):
            notes, opened = TurnNotes(self.checkpoint.results), self._there
            notes.forget()
            if not self._grace.acquire(self._lock):
                opened.driver.give_up()
                self._left_behind = frozenset(opened.driver.writing)
                self._error = self._error or self._grace.error(self._left_behind, notes)
                if self._query is not None:
                    opened.session.sparkContext.cancelJobGroup(str(self._query.runId))
                if not self._lock.acquire(timeout=0 if self._left_behind else _CANCEL_S):
                    return False
        self._lock.release()
        return True
