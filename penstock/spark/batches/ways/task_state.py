"""The state of a task: brought to the version that a batch starts from, and written as the next one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from penstock.cep.patterns.match_set import MatchSet
from penstock.checkpoints.pattern_log import SetLog
from penstock.checkpoints.positions import Progress
from penstock.checkpoints.tables import fitted, routed
from penstock.memory.edges import START_OF_TIME
from penstock.operators.run.endless import Remembered
from penstock.query.steps import SourceSpec
from penstock.routing.route import partitions_of
from penstock.spark.batches.job import LocalJob, Warm
from penstock.spark.batches.reports import PartitionRows, StateReport
from penstock.spark.batches.stage_engine import StageEngine
from penstock.spark.batches.stages import Stages
from penstock.state.delta import Base
from penstock.state.manifest import Manifest
from penstock.state.store import StateStore
from penstock.state.tables import StateTables, virtual_partitions


def load(
    local: LocalJob, engine: StageEngine, manifest: Manifest, before: Progress, task: int
) -> Base | None:
    """Brings a stage's operators to a version. If they are there already: what the next can build on.

    The operators are taken from the warm copies: until the batch is written they belong to no version.
    """
    stages = engine.stages
    number = _file_number(engine, task, before.tasks)
    entry = next((entry for entry in manifest.files if entry.task == number), None)
    warm = local.warm.pop(engine.key, None)
    owned = partitions_of(before.routing, task)
    for name, operator in engine.operators.items():
        if isinstance(operator, MatchSet):
            log = SetLog.of(before.patterns.get(name))
            operator.begin(log.patterns(), log.changes(), log.applied)
    if warm is not None and warm.is_of(task, owned, entry):
        return warm.base
    engine.engine.reset()
    # An operator that computes something else by now starts anew: its state is never given to it.
    known = {name for name in engine.operators if manifest.operators.get(name) == local.computes[name]}
    found = StateStore(local.job.store).read(manifest, known, owned)
    for name, operator in engine.operators.items():
        seen = (before.seen_us.get(source, START_OF_TIME) for source in stages.graph.sources_above(name))
        operator.import_state(fitted(found.get(name, {}), operator), min(seen, default=START_OF_TIME))
    return None


def store(
    local: LocalJob,
    engine: StageEngine,
    manifest: Manifest,
    before: Progress,
    task: int,
    attempt: int,
    base: Base | None,
) -> StateReport:
    """Writes the version that follows, and says what is in it."""
    state: dict[str, StateTables] = {}
    for name, operator in engine.operators.items():
        tables = operator.export_state()
        if tables:
            route = engine.stages.route(operator.node)
            state[name] = tables if route is None else routed(tables, route)
    pending = {name: sum(table.num_rows for table in tables.values()) for name, tables in state.items()}
    number = _file_number(engine, task, before.tasks)
    store = StateStore(local.job.store)
    count = local.job.virtual_partitions
    written = store.write(manifest.version + 1, number, attempt, local.job.run_id, state, count, base)
    local.warm[engine.key] = Warm(task, partitions_of(before.routing, task), written.entry, written.base)
    held = _held(state, count) if before.tasks > 1 else PartitionRows()
    return StateReport(written.entry, pending, _remembered(engine), held)


def watermark(stages: Stages, progress: Progress, sources: frozenset[str]) -> int:
    """How far time has come behind these sources."""
    marks: list[int] = []
    for name in sources:
        spec = stages.graph[name].spec_as(SourceSpec)
        marks.append(progress.watermark_us(name, spec.lateness_us))
    return min(marks, default=START_OF_TIME)


def _held(state: Mapping[str, StateTables], partitions: int) -> PartitionRows:
    """Rows of state by virtual partition."""
    held = np.zeros(partitions, np.int64)
    for tables in state.values():
        for table in tables.values():
            held += np.bincount(virtual_partitions(table, partitions), minlength=partitions)
    return PartitionRows.of(held)


def _remembered(engine: StageEngine) -> dict[str, Remembered]:
    """What steps keep for ever here."""
    sizes: dict[str, Remembered] = {}
    for operator in engine.operators.values():
        if operator.remembered is not None:
            sizes[operator.step] = operator.remembered
    return sizes


def _file_number(engine: StageEngine, task: int, tasks: int) -> int:
    """The number of a task's file in a version; the stages follow one another."""
    return max(engine.stage - 1, 0) * tasks + task
