"""One run on Spark: a streaming query for all queries of an app, from its start to a safe stop."""

from __future__ import annotations

import logging
import math
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine import collector
from penstock.engine.sinks.base import BatchWriter
from penstock.engine.sources.reader import NodeSource
from penstock.metrics.batches import BatchProgress, ProgressLog, RunProgress
from penstock.metrics.degree import DegreeMetrics
from penstock.query.errors import PenstockError, RunError
from penstock.query.graph import Graph, Input, SinkSpec, SourceSpec
from penstock.routing.route import even_route
from penstock.spark import results
from penstock.spark.adapting import TaskCount
from penstock.spark.balancing import Balancing
from penstock.spark.checkpoint import Checkpoint, check_spark_log, operators_of, resume
from penstock.spark.driver import Driver
from penstock.spark.durations import SparkDurations
from penstock.spark.failures import told_by_spark
from penstock.spark.frame_batches import FrameBatches
from penstock.spark.frame_task import FrameTask
from penstock.spark.frames import FrameSource
from penstock.spark.input_check import begin_input, input_changes
from penstock.spark.job import Job, ShippedJob, WarmUp
from penstock.spark.lock import CheckpointLock, this_process
from penstock.spark.map_task import MapTask, is_whole
from penstock.spark.pattern_logs import PatternLogs
from penstock.spark.positions import Progress
from penstock.spark.preparation import prefix_of, prepare
from penstock.spark.readers import Readers
from penstock.spark.session import local_cores, spark_session
from penstock.spark.sinks import begin_writers, close_writers, deliveries, end_writers, open_writers
from penstock.spark.slots import GroupShare, Stopping
from penstock.spark.stage_engine import StageEngine
from penstock.spark.stream_source import register
from penstock.spark.summary import SparkSummary
from penstock.state.store import StateStore

if TYPE_CHECKING:
    from penstock.spark.runtime import Spark


_log = logging.getLogger(__name__)

_POLL_S = 0.1


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
        self._query: StreamingQuery | None = None
        self._driver: Driver | None = None
        self._writers: dict[str, BatchWriter] = {}
        self._late: dict[str, int] = {}
        self._failed: dict[str, int] = {}
        self._degrees: dict[str, DegreeMetrics] = {}
        self._query_name = f"penstock-{name}-{self.run_id[:8]}"
        self._durations = SparkDurations(self._publish)
        self._patterns = PatternLogs()

    # -- life ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Builds everything and starts the streaming query."""
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
        store = StateStore(self.checkpoint.state)
        for change in input_changes(store.latest(), prepared.shipped, self.checkpoint.source):
            _log.warning("%s", change)
        manifest, self.changes, is_new = resume(store, stages, prepared.finals(), routing, self.run_id)
        progress = Progress.from_json(manifest.progress)
        is_complete = progress.complete
        self._patterns, with_patterns = PatternLogs.begin(stages, progress, self.changes.fresh)
        self.changes = replace(self.changes, patterns=tuple(self._patterns.told))
        if not is_complete:
            check_spark_log(self.checkpoint, manifest.batches)
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
        results.remove_all(self.checkpoint.results)  # of a run that was killed
        begin_writers(self._writers)
        if is_complete:  # nothing more comes for a query that is new to it
            end_writers(self._writers, progress.batch_id)
        delivered = deliveries(self._writers, manifest.deliveries)
        if delivered != manifest.deliveries:
            # From now on a sink that has got nothing yet is known, and whatever it gets is verified.
            manifest = replace(manifest, version=manifest.version + 1, deliveries=delivered)
            store.commit(manifest)
        self._driver = Driver(
            session, job, shipped_job, store, manifest, operators_of(stages), self._writers, self.run_id
        )
        self._balancing = Balancing(runtime.control, stages)
        self._driver.route = self._route
        self._driver.patterns = self._patterns
        self._driver.works_here = self._share is None
        prefix = prepared.prefix
        aggregated = prefix is not None and prefix.partial is not None
        self._tasks = 1 if aggregated and runtime.tasks is None else runtime.tasks
        if self._share is not None:
            cores = self._share.most_tasks(cores)
        self._task_count = TaskCount(min(cores, runtime.virtual_partitions))
        self._is_bounded = all(spec.source.bounded for spec in sources.values())
        self._check_drained()
        if is_complete:
            _log.warning("the run of '%s' is complete already", self.checkpoint.root)
            self._drained.set()
        if self._drained.is_set():
            return
        if prefix is not None:
            self._driver.frames = FrameBatches(prefix, f"{self.checkpoint.spark}/offsets")
        with ThreadPoolExecutor(1) as pool:  # workers get ready while Spark asks about the sources
            warm = pool.submit(self._warm_up, shipped_job, is_whole(job, self._driver.progress))
            frame = reduce(DataFrame.union, [self._stream(name, shipped_job) for name in sources])
            warm.result()
        # Of a DataFrame nobody knows when it ends, but Spark: it then reads what is there and stops.
        ends_by_itself = self._is_bounded and any(isinstance(s.source, FrameSource) for s in sources.values())
        trigger: dict[str, Any] = (
            {"availableNow": True} if ends_by_itself else {"processingTime": "0 seconds"}
        )
        if self._share is not None:  # the thread of the streaming query, which starts here, takes it along
            session.sparkContext.setLocalProperty("spark.scheduler.pool", self._query_name)
        self._query = (
            frame.writeStream.foreachBatch(self._batch)
            .trigger(**trigger)
            .queryName(self._query_name)
            .option("checkpointLocation", self.checkpoint.spark)
            .start()
        )

    @property
    def driver(self) -> Driver | None:
        """What runs the batches; None before the start."""
        return self._driver

    @property
    def failed(self) -> bool:
        """Whether something has gone wrong; ``finish`` raises it."""
        return self._error is not None and not isinstance(self._error, Stopping)

    def set_tasks(self, tasks: int | None) -> None:
        """From the batch after next on, this many tasks share the keys; None: as many as the load asks for.

        The state moves with the keys: each task loads what it now owns.
        """
        if tasks is not None and not 1 <= tasks <= self._runtime.virtual_partitions:
            raise PenstockError(
                f"tasks must be between 1 and {self._runtime.virtual_partitions}: got {tasks}; "
                "write virtual_partitions= for more"
            )
        self._tasks = tasks

    def stop(self) -> None:
        """Ends the run after the batch at hand; a later run with the same checkpoint goes on from there."""
        self._stopped_early = True
        self._halt()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end; False if it has not come in that time."""
        until_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        try:
            while not (self._drained.is_set() or self._stopping or self._query is None):
                left_s = until_s - time.monotonic()
                ended = self._query.awaitTermination(max(0.001, min(_POLL_S, left_s)))  # type: ignore[arg-type]
                self._durations.ask(self._query)
                if ended and self._is_bounded and self._error is None and not self._stopping:
                    self._drained.set()
                if ended or left_s <= _POLL_S:
                    return bool(ended)
            return True
        except Exception as error:
            if not self._stopping:
                self._error = self._error or told_by_spark(error)
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
                self._tell(driver.close())
                complete = True
        except Exception as error:
            self._error = told_by_spark(error)
        finally:
            if self._query is not None:
                self._durations.ask(self._query)
            self._durations.flush()
            close_writers(self._writers, complete)
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
            late=dict(self._late),
            failed=dict(self._failed),
            open_state=0 if complete or last is None else last.state_rows,
            changes=str(self.changes),
            degrees=dict(self._degrees),
        )

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
                batch = self._driver.run(frame, batch_id)
                self._tell(batch)
            except BaseException as error:
                self._error = told_by_spark(error)
                raise self._error from None
            if self._last_batch is not None and batch_id >= self._last_batch:
                self._stopping = self._stopped_early = True
            else:
                self._check_drained()
            return 0 if batch is None else batch.rows_in

    def _route(self, progress: Progress) -> tuple[int, ...]:
        """The routing of the next batch."""
        tasks = self._task_count.after(self.batches) if self._tasks is None else self._tasks
        assert self._driver is not None
        route = self._balancing.after(self._driver.reports, progress.routing, progress.tasks, tasks)
        self._driver.routed = self._balancing.told
        return route

    def _tell(self, batch: BatchProgress | None) -> None:
        """Notes a batch that counted; it is shown when Spark has told how long its own share took."""
        if batch is None:
            return
        assert self._driver is not None
        for operator, count in self._driver.late.items():
            self._late[operator] = self._late.get(operator, 0) + count
        for operator, count in self._driver.failed.items():
            self._failed[operator] = self._failed.get(operator, 0) + count
        self._degrees |= {step: DegreeMetrics.of(dict(one)) for step, one in batch.degrees.items()}
        self._durations.add(batch)

    def _publish(self, batch: BatchProgress) -> None:
        if self._driver is not None:
            self._driver.rows_before = batch.rows_in
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
        with self._lock:
            pass
        if self._query is not None:
            try:
                self._query.stop()
            except Exception as error:
                self._error = self._error or told_by_spark(error)

    def _warm_up(self, job: ShippedJob, whole: bool) -> None:
        """Starts the Python workers and lets them build their operators, so that no batch has to wait for
        it."""
        # A batch in one piece has one task: a second worker would only take turns with the first and find
        # its state cold each time.
        # Groups have batches at the same time, so each may meet any worker.
        alone = whole and self._share is None
        workers = 1 if alone else self._session.sparkContext.defaultParallelism
        self._session.range(0, workers, 1, workers).mapInArrow(WarmUp(job, whole), "id bigint").collect()

    def _stream(self, source_id: str, job: ShippedJob) -> DataFrame:
        """A source as a stream of messages; the one DataFrame of an app as a stream of its rows."""
        spec = self._graph[source_id].spec
        assert isinstance(spec, SourceSpec)
        source = self._prepared.shipped[source_id]
        if isinstance(spec.source, FrameSource):
            frame = spec.source.frame(self._session)
            assert self._driver is not None
            if self._driver.frames is not None:
                return self._driver.frames.stream(frame)
            pruned = prefix_of(self._graph, source_id).prune(frame)
            return FrameTask(job, source_id, Input(source_id), True).over(pruned)
        if not isinstance(source, NodeSource):
            raise RunError(f"source '{source_id}' cannot be read on Spark: it is a {type(source).__name__}")
        name = register(
            self._session,
            f"penstock_{self.run_id}_{source_id}",
            source_id,
            source,
            MapTask(job),
            journal=self.checkpoint.source(source_id),
            max_events=self._runtime.batch_events,
            readers=None if job.here().job.whole is None else Readers(self.checkpoint.state),
            max_bytes=self._runtime.source_bytes(len(self._prepared.sources)),
        )
        return self._session.readStream.format(name).load()
