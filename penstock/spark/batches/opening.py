"""What a run on Spark opens before its first batch: the session, the state, the sinks. From then on the
checkpoint is its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from penstock.checkpoints.fencing import creation
from penstock.checkpoints.folders import Changes, Checkpoint, resume
from penstock.checkpoints.input_check import begin_input, input_changes
from penstock.checkpoints.leftovers import Leftovers
from penstock.checkpoints.lock import this_process
from penstock.checkpoints.pattern_logs import PatternLogs
from penstock.checkpoints.positions import Progress
from penstock.checkpoints.spark_log import SparkLog, planned_as_batches
from penstock.checkpoints.writers import begin_writers, close_writers, deliveries, end_writers, open_writers
from penstock.connectors.writer import BatchWriter
from penstock.query.graph import Graph
from penstock.query.steps import SinkSpec
from penstock.routing.route import even_route
from penstock.spark.batches.balancing import Balancing, Routing
from penstock.spark.batches.driver import Driver
from penstock.spark.batches.job import Job, ShippedJob
from penstock.spark.batches.preparation import Prepared, prepare
from penstock.spark.batches.stage_engine import StageEngine
from penstock.spark.frames.batches import FrameBatches
from penstock.spark.session.hadoop_rename import HadoopRename
from penstock.spark.session.start import local_cores, spark_session
from penstock.state.manifest import Manifest
from penstock.state.store import StateStore

if TYPE_CHECKING:
    from penstock.spark.groups.slots import GroupShare
    from penstock.spark.runtime import Spark

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Opening:
    """What a run is to be: ``share`` if it is one of several groups, ``measures`` if its operators' time is
    to be told."""

    graph: Graph
    runtime: Spark
    name: str
    run_id: str
    share: GroupShare | None
    measures: bool
    on_built: Callable[[int, int], None] | None


@dataclass(frozen=True)
class Opened:
    """What is there when a run can begin."""

    session: SparkSession
    checkpoint: Checkpoint
    prepared: Prepared
    job: ShippedJob
    driver: Driver
    routing: Routing
    frames: FrameBatches | None  # for an app with one source that is a DataFrame
    log: SparkLog
    patterns: PatternLogs
    changes: Changes  # how the app differs from the one that wrote the checkpoint
    writers: Mapping[str, BatchWriter]
    is_bounded: bool
    is_complete: bool  # an earlier run has come to the end

    @property
    def is_drained(self) -> bool:
        """Whether everything has been read."""
        sources = self.driver.progress.sources.values()
        return self.is_bounded and all(part.finished for parts in sources for part in parts.values())


def open_run(opening: Opening, checkpoint: Checkpoint) -> Opened:
    """Opens everything, or nothing: where it fails, sinks are closed."""
    runtime, graph = opening.runtime, opening.graph
    leftovers = Leftovers.of(checkpoint)
    prepared = prepare(graph, checkpoint.shipped, runtime.tasks)
    _compile(prepared, opening)
    session = spark_session(runtime.master, f"penstock-{opening.name}", runtime.settings)
    stages = prepared.stages
    even = even_route(runtime.virtual_partitions, min(runtime.tasks or 1, runtime.virtual_partitions))
    create = creation(checkpoint.root, runtime.unfenced, partial(HadoopRename, session))
    store = StateStore(checkpoint.state, create=create)
    for change in input_changes(store.latest(), prepared.shipped, checkpoint.source):
        _log.warning("%s", change)
    manifest, changes, is_new = resume(store, stages, prepared.finals(), even, opening.run_id)
    manifest = planned_as_batches(manifest, tuple(prepared.sources))
    progress = Progress.from_json(manifest.progress)
    patterns, with_patterns = PatternLogs.begin(stages, progress, changes.fresh)
    changes = replace(changes, patterns=tuple(patterns.told))
    log = SparkLog(checkpoint.spark)
    if not progress.complete:
        log.check(None if is_new else manifest)
    if changes:
        _log.warning("the app has changed since its checkpoint\n%s", changes)
    job = Job(
        stages,
        prepared.whole,
        checkpoint.state,
        opening.run_id,
        runtime.virtual_partitions,
        runtime.node,
        opening.measures,
        checkpoint.results,
        driver_works=opening.share is None,
    )
    shipped = ShippedJob.of(job)
    sinks = {n.id: (n.spec.sink, n.schema) for n in graph.nodes if isinstance(n.spec, SinkSpec)}
    writers = open_writers(sinks, None if is_new else manifest, checkpoint.sink)
    try:
        # Not before all sinks are open: they refuse output that is not what was delivered.
        # Tasks read the patterns of a new set, and which partitions have ended, from the manifest.
        manifest = replace(manifest, progress=with_patterns.to_json())
        manifest = manifest.taken_over(opening.run_id, this_process())
        store.commit(manifest)  # whoever else runs here, or starts at the same time, loses from now on
        if not progress.complete:
            begin_input(progress, prepared.shipped, checkpoint.source)
        leftovers.remove(prepared.sources)
        store.collect(runtime.keep_versions, grace_versions=0)
        manifest = _begin(writers, store, manifest, progress)
    except BaseException:
        close_writers(writers, complete=False)
        raise
    routing = _routing(prepared, session, opening)
    frames = None if prepared.prefix is None else FrameBatches(prepared.prefix, log)
    driver = Driver(
        session,
        job,
        shipped,
        store,
        manifest,
        writers,
        routing,
        patterns=patterns,
        frames=frames,
        log=log,
        keep_versions=runtime.keep_versions,
    )
    return Opened(
        session,
        checkpoint,
        prepared,
        shipped,
        driver,
        routing,
        frames,
        log,
        patterns,
        changes,
        writers,
        all(spec.source.bounded for spec in prepared.sources.values()),
        progress.complete,
    )


def _compile(prepared: Prepared, opening: Opening) -> None:
    """Kernels are compiled here, once, and not by every worker process for itself."""
    stages = prepared.stages if prepared.whole is None else prepared.whole
    for stage in range(stages.count + 1):
        StageEngine(stages, stage, opening.runtime.node, opening.on_built if stage == 0 else None)


def _begin(
    writers: Mapping[str, BatchWriter], store: StateStore, manifest: Manifest, progress: Progress
) -> Manifest:
    """Lets sinks make ready; from now on one that has got nothing yet is known, and whatever it gets is
    verified."""
    begin_writers(writers)
    if progress.complete:  # nothing more comes for a query that is new to it
        end_writers(writers, progress.batch_id)
    delivered = deliveries(writers, manifest.deliveries)
    if delivered != manifest.deliveries:
        manifest = replace(manifest, version=manifest.version + 1, deliveries=delivered)
        store.commit(manifest)
    return manifest


def _routing(prepared: Prepared, session: SparkSession, opening: Opening) -> Routing:
    runtime, prefix = opening.runtime, prepared.prefix
    cores = local_cores(runtime.master) or session.sparkContext.defaultParallelism
    if opening.share is not None:
        cores = opening.share.most_tasks(cores)
    aggregated = prefix is not None and prefix.partial is not None
    return Routing(
        Balancing(runtime.control, prepared.stages),
        min(cores, runtime.virtual_partitions),
        1 if aggregated and runtime.tasks is None else runtime.tasks,
    )
