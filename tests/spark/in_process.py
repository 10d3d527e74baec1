"""The Spark runtime without Spark: the same tasks, routed and committed in this process, cut and moved at
random."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.checkpoints.folders import resume
from penstock.checkpoints.pattern_logs import PatternLogs
from penstock.checkpoints.positions import Progress
from penstock.connectors.reader import NodeSource
from penstock.connectors.writer import NodeSink, Resumed
from penstock.engine.seat.settings import Settings
from penstock.query.graph import Graph
from penstock.query.steps import SinkSpec, SourceSpec
from penstock.routing.route import resized
from penstock.spark.batches.balancing import Balancing, Routing
from penstock.spark.batches.clock import Clock
from penstock.spark.batches.driver import Driver
from penstock.spark.batches.job import Job, ShippedJob, for_tasks
from penstock.spark.batches.messages import from_batches, to_batch
from penstock.spark.batches.stages import Kind, Stages, cut, whole
from penstock.spark.batches.stream_source import Range
from penstock.spark.batches.ways.batch import Sent
from penstock.spark.batches.ways.reading import MapTask
from penstock.spark.batches.ways.stage_task import StageTask
from penstock.spark.batches.ways.way import Way
from penstock.spark.batches.ways.way import choose as choose_way
from penstock.spark.batches.ways.whole import WholeTask, nothing
from penstock.state.manifest import Manifest
from penstock.state.store import StateStore


class RandomRouting(Routing):
    """Asks a function for each."""

    def __init__(self, stages: Stages, following: Callable[[Progress], tuple[int, ...]]) -> None:
        super().__init__(Balancing(None, stages), 1, None)
        self._following = following

    def after(self, reports: Any, progress: Progress) -> tuple[int, ...]:
        return self._following(progress)


class InProcess:
    """Runs a graph batch by batch. ``choose`` decides cuts, tasks, routes, processes and failures."""

    def __init__(self, graph: Graph, folder: Path, choose: random.Random, settings: Settings) -> None:
        self._graph, self._choose = graph, choose
        self.late: dict[str, int] = {}
        sources = {n.id: n.spec.source for n in graph.nodes if isinstance(n.spec, SourceSpec)}
        self._stages = cut(for_tasks(graph, sources))
        self._positions = {}
        for name, source in sources.items():
            assert isinstance(source, NodeSource)
            self._positions[name] = source.positions()
        self._store = StateStore(folder)
        self._routing = self._random_routing()
        finals = {name: positions.final for name, positions in self._positions.items()}
        manifest, changes, is_new = resume(self._store, self._stages, finals, self._routing, "run")
        progress = Progress.from_json(manifest.progress)
        patterns, progress = PatternLogs.begin(self._stages, progress, changes.fresh)
        manifest = replace(manifest, progress=progress.to_json())
        uncut = whole(self._stages) if len(sources) == 1 else None
        results = f"{folder}-results"
        job = Job(self._stages, uncut, str(folder), "run", len(self._routing), settings, results=results)
        self._job = job
        # A job of another id is another process: it shares nothing with the first.
        self._processes = [ShippedJob.of(job) for _ in range(2)]
        self._writers = {}
        for node in graph.nodes:
            if isinstance(node.spec, SinkSpec):
                assert isinstance(node.spec.sink, NodeSink)
                delivered = manifest.deliveries.get(node.id)
                resumed = None if is_new else Resumed(manifest.batches, delivered)
                writer = self._writers[node.id] = node.spec.sink.open_batches(node.schema, resumed)
                writer.begin()
        session: Any = None
        self._driver = Driver(
            session,
            job,
            self._processes[0],
            self._store,
            manifest,
            self._writers,
            RandomRouting(self._stages, self._next_routing),
            patterns=patterns,
        )
        #: Called before every batch.
        self.before_batch: Callable[[], None] = lambda: None

    @property
    def manifest(self) -> Manifest:
        """The newest version."""
        return self._driver.manifest

    def run(self, batches: int | None = None) -> None:
        """Runs until the sources are read, and closes; or so many batches, as if it were killed then."""
        done = 0
        while not self._is_drained():
            if done == batches:
                return
            self.before_batch()
            self._batch(self._ranges(), ending=False)
            done += 1
        self.before_batch()
        self._batch({}, ending=True)
        for writer in self._writers.values():
            writer.close(True)

    def close(self) -> None:
        """Nobody uses the sinks any more, as after the end of the process."""
        for writer in self._writers.values():
            writer.close(False)

    def _random_routing(self) -> tuple[int, ...]:
        choose = self._choose
        tasks = choose.randint(1, 4)
        routing = [choose.randrange(tasks) for _ in range(16)]
        routing[choose.randrange(16)] = tasks - 1
        return tuple(routing)

    def _next_routing(self, progress: Progress) -> tuple[int, ...]:
        """The same again, one partition moved, tasks added or removed, or anything: a migration in most
        batches, and tasks that none of it concerns."""
        choose, route = self._choose, list(progress.routing)
        match choose.randrange(5):
            case 0:
                return progress.routing
            case 1 | 2:
                route[choose.randrange(16)] = choose.randrange(progress.tasks)
                return tuple(route) if len(set(route)) == progress.tasks else progress.routing
            case 3:
                return resized(progress.routing, choose.randint(1, 4))
            case _:
                return self._random_routing()

    def _is_drained(self) -> bool:
        return all(p.finished for s in self._driver.progress.sources.values() for p in s.values())

    def _ranges(self) -> dict[str, list[list[Range]]]:
        """Some events of some sources' partitions, by source and task."""
        choose, found = self._choose, {}
        for name, partitions in self._driver.progress.sources.items():
            tasks: list[list[Range]] = []
            positions = self._positions[name]
            final = positions.final
            assert final is not None
            for number, partition in partitions.items():
                if partition.finished or choose.random() < 0.3:
                    continue
                end = min(final[number], partition.position + choose.randint(0, 40))
                hint = positions.describe(number, partition.position, end)
                part = Range(number, partition.position, end, end == final[number], hint)
                if tasks and choose.random() < 0.5:
                    tasks[-1].append(part)
                else:
                    tasks.append([part])
            if tasks:
                found[name] = tasks
        return found

    def _batch(self, ranges: dict[str, list[list[Range]]], *, ending: bool) -> None:
        choose, stages = self._choose, self._stages
        before = self._driver.progress
        made: list[pa.RecordBatch] = []
        if choose_way(self._job.terms, before.tasks) is Way.WHOLE:
            self._count(self._whole_batch(ranges, ending), ending)
            return
        manifest = self._driver.manifest
        for name, tasks in ranges.items():
            made += [MapTask(choose.choice(self._processes)).run(name, task, manifest, 0) for task in tasks]
        if not made:
            if not ending:
                return
            control = stages.channel(Kind.CONTROL, 1)
            made = [to_batch([_message(task, control) for task in range(before.tasks)])]
        choose.shuffle(made)
        for stage in range(1, stages.count + 1):
            messages = from_batches(made)
            made = []
            for task in range(before.tasks):
                mine = [message for message in messages if message.target == task]
                choose.shuffle(mine)
                attempts = 1 + (choose.random() < 0.2)  # a loser ran the same
                for attempt in range(attempts):
                    run = StageTask(choose.choice(self._processes), stage, self._driver.manifest, ending)
                    result = run.run([to_batch(mine)], task, attempt)
                made.append(result)
        self._count(made, ending)

    def _whole_batch(self, ranges: dict[str, list[list[Range]]], ending: bool) -> list[pa.RecordBatch]:
        for attempt in range(1 + (self._choose.random() < 0.2)):
            process, manifest = self._choose.choice(self._processes), self._driver.manifest
            if ending:
                made = WholeTask(process, manifest).work(nothing, attempt, ending=True)
            else:
                name = next(iter(self._driver.progress.sources))
                merged = [part for group in ranges.get(name, []) for part in group]
                made = MapTask(process).run(name, merged, manifest, attempt)
        return [made]

    def _count(self, made: list[pa.RecordBatch], ending: bool) -> None:
        before = self._driver.progress
        self._driver.count(
            Sent.of(pa.Table.from_batches(made)),
            self._driver.manifest.batches,
            before,
            choose_way(self._job.terms, before.tasks),
            ending=ending,
            clock=Clock(),
        )
        for operator, count in self._driver.report.left_out.late.items():
            self.late[operator] = self.late.get(operator, 0) + count


def _message(task: int, channel: int) -> Any:
    from penstock.spark.batches.messages import Message

    return Message(task, channel, 0, b"{}")


def run_in_process(graph: Graph, folder: Path, seed: int, settings: Settings) -> dict[str, int]:
    """Runs a graph to its end in a folder of its own; returns the late counts."""
    shutil.rmtree(folder, ignore_errors=True)
    run = InProcess(graph, folder, random.Random(seed), settings)
    run.run()
    return run.late
