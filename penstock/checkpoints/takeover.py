"""How a run takes a checkpoint over: everything is looked at before anything is touched."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from penstock.checkpoints.folders import Changes, Checkpoint, resume
from penstock.checkpoints.input_check import begin_input, final_positions, input_changes
from penstock.checkpoints.leftovers import Leftovers
from penstock.checkpoints.lock import this_process
from penstock.checkpoints.planned import Planned
from penstock.checkpoints.positions import Progress
from penstock.checkpoints.writers import begin_writers, deliveries, end_writers, open_writers
from penstock.connectors.writer import BatchWriter
from penstock.query.connectors import Sink, Source
from penstock.query.steps import SinkSpec, SourceSpec
from penstock.query.types import Schema
from penstock.state.manifest import Manifest
from penstock.state.store import StateStore

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FoundCheckpoint:
    """A checkpoint as a run of this graph finds it. Nothing was changed."""

    checkpoint: Checkpoint
    store: StateStore
    manifest: Manifest  # to go on from
    is_new: bool
    changes: Changes
    leftovers: Leftovers

    @property
    def progress(self) -> Progress:
        return Progress.from_json(self.manifest.progress)


def find(
    checkpoint: Checkpoint, store: StateStore, plan: Planned, virtual_partitions: int, run_id: str
) -> FoundCheckpoint:
    """Looks for the newest version and whether the app and its input still fit it; raises if they do not."""
    leftovers = Leftovers.of(checkpoint)
    sources = _sources(plan)
    for change in input_changes(store.latest(), sources, checkpoint.source):
        _log.warning("%s", change)
    finals = {name: final_positions(source) for name, source in sources.items()}
    manifest, changes, is_new = resume(store, plan, finals, (0,) * virtual_partitions, run_id)
    if changes:
        _log.warning("the app has changed since its checkpoint\n%s", changes)
    return FoundCheckpoint(checkpoint, store, manifest, is_new, changes, leftovers)


def take_over(
    found: FoundCheckpoint, plan: Planned, run_id: str, keep_versions: int
) -> tuple[Manifest, dict[str, BatchWriter]]:
    """Opens all sinks, makes the checkpoint this run's, and gets sources and sinks ready; the version to go
    on from. Whoever else runs here loses from now on."""
    sinks = _sinks(plan)
    manifest, progress, store = found.manifest, found.progress, found.store
    # Not before all sinks are open: they refuse output that is not what was delivered.
    writers = open_writers(sinks, None if found.is_new else manifest, found.checkpoint.sink)
    manifest = manifest.taken_over(run_id, this_process())
    store.commit(manifest)
    sources = _sources(plan)
    if not progress.complete:
        begin_input(progress, sources, found.checkpoint.source)
    found.leftovers.remove(sources)
    store.collect(keep_versions, grace_versions=0)
    begin_writers(writers)
    if progress.complete:  # nothing more comes for a query that is new to it
        end_writers(writers, progress.batch_id)
    delivered = deliveries(writers, manifest.deliveries)
    if delivered != manifest.deliveries:
        # From now on a sink that has got nothing yet is known, and whatever it gets is verified.
        manifest = replace(manifest, version=manifest.version + 1, deliveries=delivered)
        store.commit(manifest)
    return manifest, writers


def known_operators(manifest: Manifest, operators: Mapping[str, str]) -> Collection[str]:
    """The operators that can take their state from a version: of the others it is never given to them."""
    return {name for name, computes in operators.items() if manifest.operators.get(name) == computes}


def _sources(plan: Planned) -> dict[str, Source]:
    return {n.id: n.spec.source for n in plan.graph.nodes if isinstance(n.spec, SourceSpec)}


def _sinks(plan: Planned) -> dict[str, tuple[Sink, Schema]]:
    return {n.id: (n.spec.sink, n.schema) for n in plan.graph.nodes if isinstance(n.spec, SinkSpec)}
