"""What every task of a run must know, sent to each worker process once and kept there."""

from __future__ import annotations

import threading
import uuid
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from penstock.checkpoints.folders import operators_of
from penstock.connectors.reader import NodeSource
from penstock.engine.seat import collector
from penstock.engine.seat.settings import Settings
from penstock.query.connectors import Sink, Source
from penstock.query.graph import Graph
from penstock.query.steps import SinkSpec, SourceSpec
from penstock.query.types import Schema
from penstock.spark.batches.stage_engine import StageEngine
from penstock.spark.batches.stages import Stages
from penstock.spark.batches.stuck import watch
from penstock.spark.batches.ways.way import Terms
from penstock.state import table
from penstock.state.delta import Base
from penstock.state.manifest import FileEntry

_KEPT_JOBS = 8  # a worker process lives longer than a run; it keeps what the newest runs and groups built


@dataclass(frozen=True)
class Job:
    """A run's graph, cut into stages, and where its state is."""

    stages: Stages
    whole: Stages | None  # if one task can read everything: the graph uncut
    store: str
    run_id: str
    virtual_partitions: int
    settings: Settings
    measures: bool = False  # tasks tell how long each operator was busy
    results: str | None = None  # the folder for what is too large to pass through Java
    driver_works: bool = True  # operators may run in the driver's process

    @property
    def terms(self) -> Terms:
        """What of the job decides how its batches run."""
        return Terms(self.whole is not None, self.driver_works)


@dataclass(frozen=True)
class ShippedJob:
    """A job as it travels with every task: some kilobytes that are opened only once per process."""

    id: str
    data: bytes = field(repr=False)

    @classmethod
    def of(cls, job: Job) -> ShippedJob:
        data: bytes = cloudpickle.dumps(job)  # type: ignore[no-untyped-call]
        return cls(uuid.uuid4().hex, zlib.compress(data, 1))

    def here(self) -> LocalJob:
        """The job in this process."""
        with _LOCK:  # in the driver's process groups have threads of their own
            found = _JOBS.get(self.id)
            if found is None:
                found = _JOBS[self.id] = LocalJob(cloudpickle.loads(zlib.decompress(self.data)))
                while len(_JOBS) > _KEPT_JOBS:
                    _JOBS.popitem(last=False)
            else:
                _JOBS.move_to_end(self.id)
            return found


@dataclass
class Warm:
    """The state that a stage's operators hold between batches, and the file that it was written to."""

    task: int
    partitions: tuple[int, ...]  # the virtual partitions that it owned
    entry: FileEntry | None  # as it was returned to the driver; None: there was no state
    base: Base | None  # on which the next version can build

    def is_of(self, task: int, partitions: tuple[int, ...], entry: FileEntry | None) -> bool:
        """Whether it is what a version has for a task. Without a file nothing proves it.

        Tasks whose partitions stay as they are keep it, however others exchange theirs.
        """
        return entry is not None and (self.task, self.partitions, self.entry) == (task, partitions, entry)


class LocalJob:
    """A job in one worker process, with the stages it has built so far.

    A process runs one task at a time, so every stage has one engine.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.computes = operators_of(job.stages)
        self._engines: dict[tuple[bool, int], StageEngine] = {}
        self.warm: dict[tuple[bool, int], Warm] = {}

    def engine(self, stage: int) -> StageEngine:
        """The engine of one stage."""
        return self._engine(self.job.stages, stage)

    def whole(self) -> StageEngine:
        """The engine of the graph in one piece."""
        assert self.job.whole is not None
        return self._engine(self.job.whole, 0)

    def measured(self, engine: StageEngine) -> dict[str, int]:
        """What a task tells of its operators' time, if the run asks for it."""
        return engine.busy_ns() if self.job.measures else {}

    @contextmanager
    def at_work(self, engine: StageEngine, *, ending: bool = False) -> Iterator[None]:
        """Forgets an engine that a failure may have left half-changed, or that is ``ending``: its operators
        have closed for good."""
        is_good = False
        try:
            yield
            is_good = not ending
        finally:
            if not is_good:
                self._engines.pop(engine.key, None)
                self.warm.pop(engine.key, None)

    def _engine(self, stages: Stages, stage: int) -> StageEngine:
        key = (stages.is_whole, stage)
        if key not in self._engines:
            built = StageEngine(stages, stage, self.job.settings, results=self.job.results)
            watch(built.engine, self.job.results)
            self._engines[key] = built
        return self._engines[key]


_JOBS: OrderedDict[str, LocalJob] = OrderedDict()
_LOCK = threading.Lock()


class DescribedSource(Source):
    """What remains of a source that lives on the driver alone, such as a DataFrame."""

    def __init__(self, source: Source) -> None:
        self._schema, self._ordered, self._partitions = source.schema, source.ordered, source.partitions

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def ordered(self) -> bool:
        return self._ordered

    @property
    def partitions(self) -> int:
        return self._partitions


class DescribedSink(Sink):
    """What remains of a sink: results are delivered by the driver."""

    @property
    def guarantee(self) -> str:
        return "the driver's"


def for_tasks(graph: Graph, sources: Mapping[str, Source]) -> Graph:
    """The graph without what must stay on the driver; ``sources`` has what takes the place of each source."""
    nodes = []
    for node in graph.nodes:
        if isinstance(node.spec, SinkSpec):
            node = replace(node, spec=SinkSpec(DescribedSink()))
        elif isinstance(node.spec, SourceSpec):
            node = replace(node, spec=replace(node.spec, source=sources[node.id]))
        nodes.append(node)
    return Graph(tuple(nodes))


@dataclass(frozen=True)
class WarmUp:
    """A task that does nothing but get its process ready."""

    job: ShippedJob
    whole: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        local = self.job.here()
        if self.whole:
            local.whole()
        else:
            for stage in range(local.job.stages.count + 1):
                local.engine(stage)
        table.warm_up()
        for node in local.job.stages.graph.nodes:
            if isinstance(node.spec, SourceSpec) and isinstance(node.spec.source, NodeSource):
                node.spec.source.warm_up()
        collector.begin_run()  # the process is here for nothing else
        yield from batches


def warm_up(session: SparkSession, job: ShippedJob, whole: bool, alone: bool) -> None:
    """Starts the Python workers and lets them build their operators, so that no batch has to wait for it.

    A batch in one piece has one task, whose worker is ``alone``: a second would only take turns with it and
    find its state cold each time. Groups have batches at the same time, so each may meet any worker.
    """
    workers = 1 if alone else session.sparkContext.defaultParallelism
    session.range(0, workers, 1, workers).mapInArrow(WarmUp(job, whole), "id bigint").collect()
