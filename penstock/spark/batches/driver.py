"""The driver's side of a batch: builds the Spark job, hands results to sinks, commits the next version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.checkpoints.folders import operators_of
from penstock.checkpoints.pattern_logs import PatternLogs
from penstock.checkpoints.positions import Progress
from penstock.checkpoints.spark_log import SparkLog
from penstock.checkpoints.writers import deliver, deliveries, end_writers, tell_counted
from penstock.connectors.writer import BatchWriter
from penstock.memory.edges import END_OF_TIME, START_OF_TIME
from penstock.metrics.batches import BatchProgress
from penstock.operators.run.endless import EndlessState
from penstock.query.errors import RunError
from penstock.query.steps import SourceSpec
from penstock.spark.batches import results
from penstock.spark.batches.balancing import Routing
from penstock.spark.batches.clock import Clock
from penstock.spark.batches.inbox import Collected, Inbox
from penstock.spark.batches.job import Job, ShippedJob
from penstock.spark.batches.messages import Message, to_batch
from penstock.spark.batches.reports import BatchReport, slowest_ms, summed
from penstock.spark.batches.stages import Kind
from penstock.spark.batches.ways import groups, here, routed, whole
from penstock.spark.batches.ways.batch import Batch, Sent
from penstock.spark.batches.ways.way import Way, choose
from penstock.spark.frames.batches import FrameBatches
from penstock.state.errors import StateError
from penstock.state.manifest import Manifest
from penstock.state.store import StateStore

#: Batches from one collection of old versions to the next.
COLLECT_EVERY = 20


class Driver:
    """Runs batches one after the other. ``manifest`` is the newest version that counts.

    ``frames`` are there if the app has one source that is a DataFrame: a batch then is its rows, not
    messages. ``log`` is Spark's log of the run, of which each manifest keeps what the next batch is planned
    by. Patterns change as ``patterns`` says; without sets, none does.
    """

    def __init__(
        self,
        session: SparkSession,
        job: Job,
        shipped: ShippedJob,
        store: StateStore,
        manifest: Manifest,
        writers: Mapping[str, BatchWriter],
        routing: Routing,
        *,
        patterns: PatternLogs,
        frames: FrameBatches | None = None,
        log: SparkLog | None = None,
        keep_versions: int = 2,
    ) -> None:
        self.manifest = manifest
        self.report = BatchReport.of(())  # of the newest batch
        self.busy_ns: dict[str, int] = {}  # of all batches, by operator, if the job measures it
        self.writing: set[str] = set()  # the queries whose sinks are being written now
        stages = job.stages
        self._session, self._job, self._shipped = session, job, shipped
        self._stages, self._store, self._writers = stages, store, writers
        self._routing, self._patterns = routing, patterns
        self._frames, self._log, self._keep_versions = frames, log, keep_versions
        self._operators = operators_of(stages)
        self._inbox = Inbox(stages)
        self._whole_inbox = self._inbox if job.whole is None else Inbox(job.whole)
        self._queries_of = {
            node.id: sorted(node.queries) for node in stages.graph.nodes if node.id in self._operators
        }
        self._endless = EndlessState()
        self._given_up = False
        self._rows_before = 0  # events of the newest batch of which that is known

    @property
    def progress(self) -> Progress:
        return Progress.from_json(self.manifest.progress)

    def give_up(self) -> None:
        """The run has ended without the batch at hand: it must not count any more."""
        self._given_up = True

    def hear(self, rows: int) -> None:
        """So many rows a batch had, as Spark told in the end: of what Spark aggregates nobody else knows."""
        self._rows_before = rows

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
        frames = None if ending else self._frames
        if frames is not None:
            before = frames.seen(batch_id, before)
            manifest = replace(manifest, progress=before.to_json())
        waiting = None if frames is None else frames.waiting(self._rows_before)
        way = choose(self._job.terms, before.tasks, waiting)
        batch = Batch(frame, frames, self._shipped, self._stages.count, manifest, before, ending, clock)
        return self.count(_run(way, batch), batch_id, before, way, ending=ending, clock=clock)

    def count(
        self,
        sent: Sent,
        batch_id: int,
        before: Progress,
        way: Way,
        *,
        ending: bool,
        clock: Clock,
    ) -> BatchProgress:
        """Takes what the tasks of a batch that started from ``before`` sent, delivers it, and makes the batch
        count."""
        collected = (self._whole_inbox if way.is_whole else self._inbox).read(sent.messages)
        self.report = BatchReport.of(collected.reports)
        after = before.advanced(collected.moves)
        after = replace(after, seen_us=self._marks(after))
        clock.lap("collect")
        rows_out = deliver(self._writers, batch_id, collected.rows, self.writing)
        if self._given_up:
            raise RunError(f"batch {batch_id} came too late: its run has ended without it")
        if ending:
            end_writers(self._writers, batch_id)
        clock.lap("sinks")
        self._commit(batch_id, after, collected, way, complete=ending)
        if sent.in_files and self._job.results is not None:
            results.remove_all(self._job.results)
        clock.lap("commit")
        return self._told(batch_id, after, collected, way, rows_out, clock)

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

    def _commit(
        self, batch_id: int, after: Progress, collected: Collected, way: Way, *, complete: bool
    ) -> None:
        read = self.report.read
        totals = summed((after.totals, {"events": read.events, "bad": read.bad}))
        marks = {**after.marks, **read.marks}
        progress = replace(after, batch_id=batch_id, complete=complete, totals=totals, marks=marks)
        progress = replace(progress, routing=self._routing.after(collected.reports, progress))
        if not complete:  # a change that nothing can follow is none
            progress = self._patterns.after(progress)
        manifest = Manifest(
            self.manifest.version + 1,
            self._job.run_id,
            len(progress.routing),
            self._operators,
            progress.to_json(),
            self.report.files,
            batches=batch_id + 1,
            fence=self.manifest.fence,
            process=self.manifest.process,
            logs=self.manifest.logs if complete else self._logs(batch_id, way),
            deliveries=deliveries(self._writers, self.manifest.deliveries),
        )
        self._store.commit(manifest)
        self.manifest = manifest
        tell_counted(self._writers, batch_id)
        if batch_id % COLLECT_EVERY == 0:
            self._store.collect(self._keep_versions)

    def _logs(self, batch_id: int, way: Way) -> Mapping[str, str]:
        """What Spark plans the next batch by, once this one counts."""
        if self._log is None:
            return {}
        reached_ms = None
        if self._frames is not None:
            reached_ms = self._log.reached_ms(batch_id)
            if way.is_native:
                reached_ms = self._frames.reached_ms(self._session)
        return self._log.counted(batch_id, self.manifest.logs, reached_ms or 0)

    def _told(
        self,
        batch_id: int,
        after: Progress,
        collected: Collected,
        way: Way,
        rows_out: int,
        clock: Clock,
    ) -> BatchProgress:
        report = self.report
        self.busy_ns = summed((self.busy_ns, report.busy_ns))
        self._rows_before = report.read.events or self._rows_before  # of what Spark aggregates it tells later
        self._endless.look(report.remembered)
        # What tasks took inside the Spark job is no part of the time that it took beside.
        in_job = [task for task in collected.reports if way.is_in_job(task.stage)]
        job_ms = max(clock.ms.get("job", 0.0) - sum(slowest_ms(in_job).values()), 0.0)
        tasks_ms = {f"task_{part}": ms for part, ms in slowest_ms(collected.reports).items()}
        parts = {**clock.ms, "job": job_ms, **tasks_ms}
        pending: Counter[str] = Counter()
        for operator, rows in report.pending.items():
            pending.update(dict.fromkeys(self._queries_of.get(operator, ()), rows))
        return BatchProgress(
            batch_id=batch_id,
            started_unix_ms=clock.started_unix_ms,
            rows_in=report.read.events,
            rows_out=rows_out,
            late=sum(report.left_out.late.values()),
            failed=sum(report.left_out.failed.values()),
            bad_records=report.read.bad,
            waiting=report.read.waiting,
            watermark_us={name: _shown(mark_us) for name, mark_us in self._marks(after).items()},
            state_rows=sum(entry.rows for entry in report.files),
            state_bytes=sum(entry.bytes for entry in report.files),
            pending=dict(pending),
            rows_out_by_query={query: rows.num_rows for query, rows in collected.rows.items()},
            tasks=after.tasks,
            routing=dict(self._routing.told),
            degrees={step: degree.plain() for step, degree in report.degrees.items()},
            way=way.value,
            parts_ms=parts,
            batch_ms=sum(parts.values()),
        )


def _run(way: Way, batch: Batch) -> Sent:
    match way:
        case Way.WHOLE:
            return whole.run(batch)
        case Way.GROUPS:
            return groups.run(batch)
        case Way.HERE:
            return here.run(batch)
        case Way.ROUTED | Way.FILTERED:
            return routed.run(batch, filtered=way is Way.FILTERED)
        case _:
            assert_never(way)


def _shown(watermark_us: int) -> int | None:
    return (
        None
        if watermark_us in (START_OF_TIME, START_OF_TIME + 1) or watermark_us >= END_OF_TIME - 1
        else watermark_us
    )
