"""One run on Spark: a streaming query for all queries of an app, from its start to a safe stop."""

from __future__ import annotations

import logging
import math
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from penstock.checkpoints.fencing import creation
from penstock.checkpoints.folders import Checkpoint, resume
from penstock.checkpoints.input_check import begin_input, input_changes
from penstock.checkpoints.leftovers import Leftovers, remove_abandoned
from penstock.checkpoints.lock import CheckpointLock, this_process
from penstock.checkpoints.pattern_logs import PatternLogs
from penstock.checkpoints.positions import Progress
from penstock.checkpoints.spark_log import SparkLog
from penstock.checkpoints.writers import begin_writers, close_writers, deliveries, end_writers, open_writers
from penstock.connectors.reader import NodeSource
from penstock.connectors.writer import BatchWriter
from penstock.engine.seat import collector
from penstock.metrics.batches import BatchProgress, ProgressLog, RunProgress
from penstock.metrics.degree import DegreeMetrics
from penstock.query.errors import PenstockError, RunError
from penstock.query.graph import Graph, Input
from penstock.query.steps import SinkSpec, SourceSpec
from penstock.routing.route import even_route
from penstock.spark.batches import results
from penstock.spark.batches.balancing import Balancing, Routing
from penstock.spark.batches.driver import COLLECT_EVERY, Driver
from penstock.spark.batches.durations import SparkDurations
from penstock.spark.batches.job import Job, ShippedJob, warm_up
from penstock.spark.batches.preparation import prefix_of, prepare
from penstock.spark.batches.reports import LeftOut, summed
from penstock.spark.batches.restarts import Restarts
from penstock.spark.batches.stage_engine import StageEngine
from penstock.spark.batches.stalls import StallWatch, work_of
from penstock.spark.batches.stream_source import register
from penstock.spark.batches.stuck import Grace, TurnNotes
from penstock.spark.batches.summary import SparkSummary
from penstock.spark.batches.ways.readers import Readers
from penstock.spark.batches.ways.reading import MapTask
from penstock.spark.batches.ways.way import Way, choose
from penstock.spark.frames.batches import FrameBatches
from penstock.spark.frames.feed import FrameTask
from penstock.spark.frames.streams import FrameSource
from penstock.spark.groups.slots import GroupShare, Stopping
from penstock.spark.session.failures import given_up, is_passing, told_by_spark
from penstock.spark.session.hadoop_rename import HadoopRename
from penstock.spark.session.start import local_cores, spark_session
from penstock.state.store import StateStore

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
        self._share, self._measures = share, measures
        self._graph, self._runtime, self._name, self._on_built = graph, runtime, name, on_built
        self.run_id = uuid.uuid4().hex
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
        self._driver: Driver | None = None
        self._writers: dict[str, BatchWriter] = {}
        self._left_out = LeftOut()
        self._degrees: dict[str, DegreeMetrics] = {}
        self._query_name = f"penstock-{name}-{self.run_id[:8]}"
        self._durations = SparkDurations(self._publish)
        self._patterns = PatternLogs()
        self._stalls = StallWatch(lambda: work_of(self._session.sparkContext))

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
            close_writers(self._writers, complete=False)
            if self._log is not None:
                self._log.close()
            self.checkpoint.remove()
            raise told_by_spark(error) from None

    def _start(self) -> None:
        runtime, graph = self._runtime, self._graph
        leftovers = Leftovers.of(self.checkpoint)
        prepared = self._prepared = prepare(graph, self.checkpoint.shipped, runtime.tasks)
        stages, uncut, sources = prepared.stages, prepared.whole, prepared.sources
        # Kernels are compiled here, once, and not by every worker process for itself.
        for built in [uncut] if uncut is not None else [stages]:
            for stage in range(built.count + 1):
                StageEngine(built, stage, runtime.node, self._on_built if stage == 0 else None)
        session = spark_session(runtime.master, f"penstock-{self._name}", runtime.settings)
        self._session = session
        cores = local_cores(runtime.master) or session.sparkContext.defaultParallelism
        tasks = min(runtime.tasks or 1, runtime.virtual_partitions)
        routing = even_route(runtime.virtual_partitions, tasks)
        create = creation(self.checkpoint.root, runtime.unfenced, partial(HadoopRename, session))
        store = StateStore(self.checkpoint.state, create=create)
        for change in input_changes(store.latest(), prepared.shipped, self.checkpoint.source):
            _log.warning("%s", change)
        manifest, self.changes, is_new = resume(store, stages, prepared.finals(), routing, self.run_id)
        progress = Progress.from_json(manifest.progress)
        is_complete = progress.complete
        self._patterns, with_patterns = PatternLogs.begin(stages, progress, self.changes.fresh)
        self.changes = replace(self.changes, patterns=tuple(self._patterns.told))
        self._spark_log = SparkLog(self.checkpoint.spark)
        if not is_complete:
            self._spark_log.check(None if is_new else manifest)
        if self.changes:
            _log.warning("the app has changed since its checkpoint\n%s", self.changes)
        job = Job(
            stages,
            uncut,
            self.checkpoint.state,
            self.run_id,
            runtime.virtual_partitions,
            runtime.node,
            self._measures,
            self.checkpoint.results,
            driver_works=self._share is None,
        )
        shipped_job = ShippedJob.of(job)
        sinks = {n.id: (n.spec.sink, n.schema) for n in graph.nodes if isinstance(n.spec, SinkSpec)}
        self._writers = open_writers(sinks, None if is_new else manifest)
        # Not before all sinks are open: they refuse output that is not what was delivered.
        # Tasks read the patterns of a new set, and which partitions have ended, from the manifest.
        manifest = replace(manifest, progress=with_patterns.to_json())
        manifest = manifest.taken_over(self.run_id, this_process())
        store.commit(manifest)  # whoever else runs here, or starts at the same time, loses from now on
        if not is_complete:
            begin_input(progress, prepared.shipped, self.checkpoint.source)
        leftovers.remove(sources)
        store.collect(runtime.keep_versions, grace_versions=0)
        begin_writers(self._writers)
        if is_complete:  # nothing more comes for a query that is new to it
            end_writers(self._writers, progress.batch_id)
        delivered = deliveries(self._writers, manifest.deliveries)
        if delivered != manifest.deliveries:
            # From now on a sink that has got nothing yet is known, and whatever it gets is verified.
            manifest = replace(manifest, version=manifest.version + 1, deliveries=delivered)
            store.commit(manifest)
        prefix = prepared.prefix
        aggregated = prefix is not None and prefix.partial is not None
        if self._share is not None:
            cores = self._share.most_tasks(cores)
        self._routing = Routing(
            Balancing(runtime.control, stages),
            min(cores, runtime.virtual_partitions),
            1 if aggregated and runtime.tasks is None else runtime.tasks,
        )
        self._frames = None if prefix is None else FrameBatches(prefix, self._spark_log)
        self._driver = Driver(
            session,
            job,
            shipped_job,
            store,
            manifest,
            self._writers,
            self._routing,
            patterns=self._patterns,
            frames=self._frames,
            log=self._spark_log,
            keep_versions=runtime.keep_versions,
        )
        self._is_bounded = all(spec.source.bounded for spec in sources.values())
        self._check_drained()
        if is_complete:
            _log.warning("the run of '%s' is complete already", self.checkpoint.root)
            self._drained.set()
        if self._drained.is_set():
            return
        self._job = shipped_job
        while True:
            try:
                self._begin_stream()
                return
            except Exception as error:
                self._halted.wait(self._pause_s(error))

    def _begin_stream(self) -> None:
        """Starts the streaming query from the driver's manifest; also again, where one broke off."""
        driver, sources = self._driver, self._prepared.sources
        assert driver is not None
        session, job = self._session, self._job
        self._spark_log.renew(driver.manifest)
        with ThreadPoolExecutor(1) as pool:  # workers get ready while Spark asks about the sources
            whole = choose(job.here().job.terms, driver.progress.tasks) is Way.WHOLE
            warm = pool.submit(warm_up, session, job, whole, whole and self._share is None)
            frame = reduce(DataFrame.union, [self._stream(name, job) for name in sources])
            warm.result()
        # Of a DataFrame nobody knows when it ends, but Spark: it then reads what is there and stops.
        ends_by_itself = self._is_bounded and any(isinstance(s.source, FrameSource) for s in sources.values())
        once: dict[str, Any] = {"availableNow": True}
        if self._share is not None:  # the thread of the streaming query, which starts here, takes it along
            session.sparkContext.setLocalProperty("spark.scheduler.pool", self._query_name)
        self._query = (
            frame.writeStream.foreachBatch(self._batch)
            .trigger(**(once if ends_by_itself else {"processingTime": "0 seconds"}))
            .queryName(self._query_name)
            .option("checkpointLocation", self.checkpoint.spark)
            .start()
        )

    @property
    def driver(self) -> Driver | None:
        """What runs the batches; None before the start."""
        return self._driver

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
        if self._driver is None:
            return False
        sources = self._driver.progress.sources
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
        self._routing.set_tasks(tasks)

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
                    if ended and self._is_bounded and self._batch_error is None and not self._stopping:
                        self._drained.set()
            except Exception as error:
                if not self._stopping:
                    self._broken(self._batch_error or error)
            if ended or left_s <= _POLL_S:
                return ended or self._error is not None
        return True

    def finish(self) -> SparkSummary:
        """Closes everything after the end and sums up; raises what made the run fail."""
        driver = self._driver
        assert driver is not None
        self._halt()
        collector.end_run()
        complete = False
        try:
            if self._error is None and self._drained.is_set() and not self._stopped_early:
                self._close(driver)
                complete = True
        except Exception as error:
            self._error = told_by_spark(error)
        finally:
            if self._query is not None:
                self._durations.ask(self._query)
            self._durations.flush()
            closing = {query: w for query, w in self._writers.items() if query not in self._left_behind}
            close_writers(closing, complete)
            self._patterns.end()
            if self._log is not None:
                self._log.close()
            if self._checkpoint_lock is not None:
                self._checkpoint_lock.free()
            self.checkpoint.remove()
        if self._error is not None and not isinstance(self._error, Stopping):
            raise self._error
        last = self.progress.last
        return SparkSummary(
            progress=self.progress,
            complete=complete,
            queries=len(self._writers),
            operators=len(self._graph),
            late=self._left_out.late,
            failed=self._left_out.failed,
            open_state=0 if complete or last is None else last.state_rows,
            changes=str(self.changes),
            degrees=dict(self._degrees),
            restarts=self._restarts.total,
        )

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
            assert self._driver is not None
            try:
                if self._query is not None:  # else it is just being started
                    self._durations.ask(self._query)
                self._stalls.began(batch_id)
                batch = self._driver.run(frame, batch_id)
                self._tell(batch)
            except BaseException as error:
                self._batch_error = error
                raise told_by_spark(error) from None
            finally:
                self._stalls.ended()
            if self._last_batch is not None and batch_id >= self._last_batch:
                self._stopping = self._stopped_early = True
            else:
                self._check_drained()
            return 0 if batch is None else batch.rows_in

    def _tell(self, batch: BatchProgress | None) -> None:
        """Notes a batch that counted; it is shown when Spark has told how long its own share took."""
        if batch is None:
            return
        assert self._driver is not None
        self._restarts = self._restarts.after_a_batch()
        batch = replace(batch, restarts=self._restarts.total)
        left_out = self._driver.report.left_out
        self._left_out = LeftOut(
            summed((self._left_out.late, left_out.late)), summed((self._left_out.failed, left_out.failed))
        )
        self._degrees |= {step: DegreeMetrics.of(dict(one)) for step, one in batch.degrees.items()}
        self._durations.add(batch)

    def _publish(self, batch: BatchProgress) -> None:
        if self._driver is not None:
            self._driver.hear(batch.rows_in)
        self.progress.add(batch)
        self.batches.append(batch)
        if self._log is not None:
            self._log.write(batch)
        if self.on_progress is not None:
            self.on_progress(batch)

    def _check_drained(self) -> None:
        assert self._driver is not None
        partitions = (p for source in self._driver.progress.sources.values() for p in source.values())
        if self._is_bounded and all(partition.finished for partition in partitions):
            self._drained.set()

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
            notes, driver = TurnNotes(self.checkpoint.results), self._driver
            notes.forget()
            if not self._grace.acquire(self._lock):
                assert driver is not None
                driver.give_up()
                self._left_behind = frozenset(driver.writing)
                self._error = self._error or self._grace.error(self._left_behind, notes)
                if self._query is not None:
                    self._session.sparkContext.cancelJobGroup(str(self._query.runId))
                if not self._lock.acquire(timeout=0 if self._left_behind else _CANCEL_S):
                    return False
        self._lock.release()
        return True

    def _stream(self, source_id: str, job: ShippedJob) -> DataFrame:
        """A source as a stream of messages; the one DataFrame of an app as a stream of its rows."""
        spec = self._graph[source_id].spec_as(SourceSpec)
        source = self._prepared.shipped[source_id]
        if isinstance(spec.source, FrameSource):
            frame = spec.source.frame(self._session)
            if self._frames is not None:
                return self._frames.stream(frame)
            pruned = prefix_of(self._graph, source_id).prune(frame)
            return FrameTask(job, source_id, Input(source_id), True).over(pruned)
        if not isinstance(source, NodeSource):
            raise RunError(f"source '{source_id}' cannot be read on Spark: it is a {type(source).__name__}")
        terms = job.here().job.terms
        name = register(
            self._session,
            f"penstock_{self.run_id}_{self._restarts.total}_{source_id}",
            source_id,
            source,
            MapTask(job),
            journal=self.checkpoint.source(source_id),
            max_events=self._runtime.batch_events,
            readers=None if not terms.one_reads else Readers(self.checkpoint.state, terms),
            max_bytes=self._runtime.source_bytes(len(self._prepared.sources)),
            keep_batches=self._runtime.keep_versions + COLLECT_EVERY,
        )
        return self._session.readStream.format(name).load()
