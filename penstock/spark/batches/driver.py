"""The driver's side of a batch: builds the Spark job, hands results to sinks, commits the next version."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from penstock.checkpoints.pattern_logs import PatternLogs
from penstock.checkpoints.positions import Progress, moves_from_json
from penstock.checkpoints.spark_log import SparkLog
from penstock.checkpoints.writers import deliver, deliveries, end_writers
from penstock.connectors.writer import BatchWriter
from penstock.memory.edges import END_OF_TIME, START_OF_TIME
from penstock.metrics.batches import BatchProgress
from penstock.metrics.degree import DegreeMetrics, merged_degrees
from penstock.operators.run.endless import EndlessState, Remembered
from penstock.query.errors import RunError
from penstock.query.steps import SourceSpec
from penstock.spark.batches import results
from penstock.spark.batches.collected import Collected
from penstock.spark.batches.job import Job, ShippedJob
from penstock.spark.batches.map_task import WholeTask, is_whole
from penstock.spark.batches.messages import SPARK_SCHEMA, Message, RowFormat, as_json, from_batches, to_batch
from penstock.spark.batches.stage_task import StageTask
from penstock.spark.batches.stages import Kind, Stages
from penstock.spark.frames.batches import FrameBatches
from penstock.state.errors import StateError
from penstock.state.manifest import FileEntry, Manifest
from penstock.state.store import StateStore

#: Batches from one collection of old versions to the next.
COLLECT_EVERY = 20


class Inbox:
    """Reads what the last stage sends to the driver."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self._sinks: dict[int, tuple[str, RowFormat]] = {}  # by channel
        for number, channel in enumerate(stages.channels):
            if channel.kind is Kind.SINK:
                (layout,) = stages.layouts.inputs(stages.graph[channel.sink])
                self._sinks[number] = (channel.sink, RowFormat.of(layout, visible=True))

    def read(self, table: pa.Table) -> Collected:
        found: dict[str, list[pa.RecordBatch]] = {}
        moves: list[Any] = []
        reports: list[dict[str, Any]] = []
        for message in from_batches(table.to_batches()):
            match self._stages.channels[message.tag].kind:
                case Kind.SINK:
                    query, row_format = self._sinks[message.tag]
                    found.setdefault(query, []).append(row_format.read(message.payload))
                case Kind.CONTROL:
                    moves.append(moves_from_json(as_json(message.payload)))
                case Kind.REPORT:
                    reports.append(as_json(message.payload))
                case _:
                    raise AssertionError(f"channel {message.tag} does not lead to the driver")
        rows = {query: pa.Table.from_batches(batches) for query, batches in found.items()}
        return Collected(rows, moves, reports)


class Driver:
    """Runs batches one after the other. ``manifest`` is the newest version that counts."""

    def __init__(
        self,
        session: SparkSession,
        job: Job,
        shipped: ShippedJob,
        store: StateStore,
        manifest: Manifest,
        operators: Mapping[str, str],
        writers: Mapping[str, BatchWriter],
        run_id: str,
    ) -> None:
        self.manifest = manifest
        self.late: dict[str, int] = {}  # of the newest batch, by operator
        self.failed: dict[str, int] = {}  # likewise: events that functions failed for
        self.busy_ns: dict[str, int] = {}  # of all batches, by operator, if the job measures it
        stages = job.stages
        self._session, self._job, self._shipped = session, job, shipped
        self._stages, self._store = stages, store
        self._operators, self._writers, self._run_id = operators, writers, run_id
        self._inbox = Inbox(stages)
        self._whole_inbox = None if job.whole is None else Inbox(job.whole)
        self._queries_of = {
            node.id: sorted(node.queries) for node in stages.graph.nodes if node.id in operators
        }
        #: For an app with one source that is a DataFrame: a batch then is its rows, not messages.
        self.frames: FrameBatches | None = None
        #: Whether a lone task runs in this process. Among groups it does not: Python code of a heavy one
        #: would hold the others up.
        self.works_here = True
        self._endless = EndlessState()
        self.writing: set[str] = set()  # the queries whose sinks are being written now
        self.given_up = False  # the run has ended without the batch at hand: it must not count any more
        self._has_files = False  # some of the batch stands in files
        self._is_native = False  # Spark alone has seen the times of all rows of the batch
        #: Spark's log of the run, of which each manifest keeps what the next batch is planned by.
        self.log: SparkLog | None = None
        self.keep_versions = 2
        self.rows_before = 0  # events of the newest batch of which that is known
        #: Asked after every batch: the routing of the next.
        self.route: Callable[[Progress], tuple[int, ...]] = lambda progress: progress.routing
        self.reports: list[dict[str, Any]] = []  # of the newest batch's tasks
        self.routed: Mapping[str, Any] = {}  # what is to be told of that routing
        self.patterns = PatternLogs()  # of the graph's sets; without them, none changes

    @property
    def progress(self) -> Progress:
        return Progress.from_json(self.manifest.progress)

    def run(self, frame: DataFrame, batch_id: int, *, ending: bool = False) -> BatchProgress | None:
        """Runs one batch; None if it has counted already."""
        if batch_id < self.manifest.batches:
            return None
        if batch_id > self.manifest.batches:
            raise StateError(
                "the checkpoint is not whole",
                f"Spark has come to batch {batch_id}, the state is made of {self.manifest.batches} batches",
                "another run has changed the folder: start this one again, and let nobody change it",
            )
        clock = Clock()
        # Every task gets the manifest, and has no use for what only the driver reads.
        before, manifest = self.progress, replace(self.manifest, deliveries={}, logs={})
        whole = is_whole(self._job, before)
        if self.frames is not None and not ending:
            before = self.frames.seen(batch_id, before)
            manifest = replace(manifest, progress=before.to_json())
            self._is_native = self.frames.is_native(self.rows_before, whole=whole)
            if not self._is_native:
                frame = self.frames.rows(frame, self._shipped, manifest, whole=whole)
            elif whole:
                groups = self.frames.lowered(frame, before)
                clock.lap("planning")
                found = groups.toArrow()
                clock.lap("job")
                made = self.frames.groups(self._shipped, manifest, before).run(found)
                clock.skip()
                return self.count(pa.Table.from_batches([made]), batch_id, before, ending=False, clock=clock)
            else:
                frame = self.frames.filtered(self.frames.lowered(frame, before), self._shipped, manifest)
        tasks = [
            StageTask(self._shipped, stage, manifest, ending)
            for stage in range(1, self._stages.count + 1)
            if not whole
        ]
        works_here = self.works_here and before.tasks == 1
        if not works_here and tasks:
            for task in tasks:
                frame = frame.repartitionById(before.tasks, fn.col("target")).mapInArrow(task, SPARK_SCHEMA)
        elif ending and whole:
            frame = frame.mapInArrow(WholeTask(self._shipped, manifest), SPARK_SCHEMA)
        clock.lap("planning")
        table = frame.toArrow()
        clock.lap("job")
        if works_here:
            self._has_files = results.stand_elsewhere(table.column("tag"))
            # One task has all keys: it runs right here, where everything comes together anyway.
            for task in tasks:
                table = pa.Table.from_batches([task.run(table.to_batches(), 0, 0)])
            clock.skip()  # the task has told itself what it took
        return self.count(table, batch_id, before, ending=ending, clock=clock)

    def count(
        self,
        table: pa.Table,
        batch_id: int,
        before: Progress,
        *,
        ending: bool,
        clock: Clock | None = None,
    ) -> BatchProgress:
        """Takes what the tasks of a batch that started from ``before`` sent, delivers it, and makes the batch
        count."""
        clock = clock or Clock()
        inbox = self._whole_inbox if is_whole(self._job, before) else self._inbox
        assert inbox is not None
        self._has_files = self._has_files or results.stand_elsewhere(table.column("tag"))
        collected = inbox.read(table)
        after = before.advanced(collected.moves)
        after = replace(after, seen_us=self._marks(after))
        clock.lap("collect")
        rows_out = deliver(self._writers, batch_id, collected.rows, self.writing)
        if self.given_up:
            raise RunError(f"batch {batch_id} came too late: its run has ended without it")
        if ending:
            end_writers(self._writers, batch_id)
        clock.lap("sinks")
        self._commit(batch_id, after, collected, complete=ending)
        if self._has_files and self._job.results is not None:
            results.remove_all(self._job.results)
            self._has_files = False
        clock.lap("commit")
        return self._told(batch_id, after, collected, rows_out, clock)

    def close(self) -> BatchProgress | None:
        """The input is complete: a last batch without any closes everything that is open."""
        stages, progress = self._stages, self.progress
        if progress.complete:
            return None
        channel = stages.channel(Kind.CONTROL, 1)
        told = [Message(task, channel, 0, b"{}") for task in range(progress.tasks if stages.count else 1)]
        frame = self._session.createDataFrame(pa.Table.from_batches([to_batch(told)]))
        return self.run(frame, self.manifest.batches, ending=True)

    def _marks(self, progress: Progress) -> dict[str, int]:
        """The watermark of every source."""
        return {
            node.id: progress.watermark_us(node.id, node.spec.lateness_us)
            for node in self._stages.graph.nodes
            if isinstance(node.spec, SourceSpec)
        }

    def _commit(self, batch_id: int, after: Progress, collected: Collected, *, complete: bool) -> None:
        files = tuple(
            FileEntry.of(report["entry"]) for report in collected.reports if report.get("entry") is not None
        )
        totals, marks = dict(after.totals), dict(after.marks)
        for report in collected.reports:
            totals["events"] = totals.get("events", 0) + report.get("events", 0)
            totals["bad"] = totals.get("bad", 0) + report.get("bad", 0)
            marks |= report.get("marks", {})
        progress = replace(after, batch_id=batch_id, complete=complete, totals=totals, marks=marks)
        self.reports = collected.reports
        progress = replace(progress, routing=self.route(progress))
        if not complete:  # a change that nothing can follow is none
            progress = self.patterns.after(progress)
        manifest = Manifest(
            self.manifest.version + 1,
            self._run_id,
            len(progress.routing),
            self._operators,
            progress.to_json(),
            files,
            batches=batch_id + 1,
            fence=self.manifest.fence,
            process=self.manifest.process,
            logs=self.manifest.logs if complete else self._logs(batch_id),
            deliveries=deliveries(self._writers, self.manifest.deliveries),
        )
        self._store.commit(manifest)
        self.manifest = manifest
        if batch_id % COLLECT_EVERY == 0:
            self._store.collect(self.keep_versions)

    def _logs(self, batch_id: int) -> Mapping[str, str]:
        """What Spark plans the next batch by, once this one counts."""
        if self.log is None:
            return {}
        reached_ms = None if self.frames is None else self.log.reached_ms(batch_id)
        if self.frames is not None and self._is_native:
            reached_ms = self.frames.reached_ms(self._session)
        return self.log.counted(batch_id, self.manifest.logs, reached_ms or 0)

    def _told(
        self,
        batch_id: int,
        after: Progress,
        collected: Collected,
        rows_out: int,
        clock: Clock,
    ) -> BatchProgress:
        pending: dict[str, int] = {}
        tasks_ms: dict[str, float] = {}
        remembered: dict[str, Remembered] = {}
        in_job: dict[str, float] = {}  # those that ran inside the Spark job
        self.late, self.failed = {}, {}
        entries = []
        for report in collected.reports:
            for operator, count in report["late"].items():
                self.late[operator] = self.late.get(operator, 0) + count
            for operator, count in report["failed"].items():
                self.failed[operator] = self.failed.get(operator, 0) + count
            for operator, rows in report.get("pending", {}).items():
                for query in self._queries_of.get(operator, ()):
                    pending[query] = pending.get(query, 0) + rows
            for step, size in report.get("remembered", {}).items():
                remembered[step] = remembered.get(step, Remembered(0, 0)) + Remembered(*size)
            for operator, busy_ns in report.get("busy_ns", {}).items():
                self.busy_ns[operator] = self.busy_ns.get(operator, 0) + busy_ns
            for name, ms in report["ms"].items():  # of the slowest task: the others wait for it
                named = f"task_{name}"
                tasks_ms[named] = max(tasks_ms.get(named, 0.0), ms)
                if after.tasks > 1 or not self.works_here or report.get("stage", 0) == 0:
                    in_job[named] = max(in_job.get(named, 0.0), ms)
            if report.get("entry") is not None:
                entries.append(report["entry"])
        self._endless.look(remembered)
        rows_in = sum(report.get("events", 0) for report in collected.reports)
        self.rows_before = rows_in or self.rows_before  # of what Spark aggregates it tells later
        known = sum(in_job.values())
        parts = {**clock.ms, "job": max(clock.ms.get("job", 0.0) - known, 0.0), **tasks_ms}
        return BatchProgress(
            batch_id=batch_id,
            started_unix_ms=clock.started_unix_ms,
            rows_in=rows_in,
            rows_out=rows_out,
            late=sum(self.late.values()),
            failed=sum(self.failed.values()),
            bad_records=sum(report.get("bad", 0) for report in collected.reports),
            waiting=sum(report.get("waiting", 0) for report in collected.reports),
            watermark_us={name: _shown(mark_us) for name, mark_us in self._marks(after).items()},
            state_rows=sum(entry["rows"] for entry in entries),
            state_bytes=sum(entry["bytes"] for entry in entries),
            pending=pending,
            rows_out_by_query={query: rows.num_rows for query, rows in collected.rows.items()},
            tasks=after.tasks,
            routing=dict(self.routed),
            degrees=_degrees(collected.reports),
            parts_ms=parts,
            batch_ms=sum(parts.values()),
        )


def _degrees(reports: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """By step, what the tasks have told of its degree."""
    told = (
        (step, DegreeMetrics.of(one)) for report in reports for step, one in report.get("degrees", {}).items()
    )
    return {step: degree.plain() for step, degree in merged_degrees(told).items()}


def _shown(watermark_us: int) -> int | None:
    return (
        None
        if watermark_us in (START_OF_TIME, START_OF_TIME + 1) or watermark_us >= END_OF_TIME - 1
        else watermark_us
    )


class Clock:
    """Where the time of a batch goes."""

    def __init__(self) -> None:
        self.started_unix_ms = time.time_ns() // 1_000_000
        self.ms: dict[str, float] = {}
        self._last_ns = time.perf_counter_ns()

    def lap(self, name: str) -> None:
        now_ns = time.perf_counter_ns()
        self.ms[name] = (now_ns - self._last_ns) / 1e6
        self._last_ns = now_ns

    def skip(self) -> None:
        """What passed since the last lap is told elsewhere."""
        self._last_ns = time.perf_counter_ns()
