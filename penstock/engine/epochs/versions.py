"""Makes a version of what belongs to an epoch: rows to their sinks, state into files, then one manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.checkpoints.planned import Planned
from penstock.checkpoints.positions import Progress
from penstock.checkpoints.writers import deliver, deliveries, end_writers, tell_counted
from penstock.connectors.ranges import SourceRanges
from penstock.connectors.writer import BatchWriter
from penstock.engine.epochs.seat import Gathered, VertexCount, tables_of
from penstock.query.steps import SourceSpec
from penstock.state.delta import Base
from penstock.state.manifest import FileEntry, Manifest
from penstock.state.store import StateStore

_COLLECT_EVERY = 10  # epochs


class Versions:
    """Used by one thread. ``manifest`` is the newest version that counts."""

    def __init__(
        self,
        store: StateStore,
        manifest: Manifest,
        operators: Mapping[str, str],
        plan: Planned,
        writers: Mapping[str, BatchWriter],
        ranges: Mapping[str, SourceRanges],
        run_id: str,
        keep_versions: int,
    ) -> None:
        self.manifest = manifest
        self._store, self._operators, self._plan = store, operators, plan
        self._writers, self._ranges = writers, ranges
        self._run_id, self._keep = run_id, keep_versions
        self._bases: dict[int, Base | None] = {}  # by task
        self._counted: dict[int, VertexCount] = {}  # by vertex
        self._stood: list[dict[str, list[int]]] = []  # where sources stood in the newest versions

    def commit(self, epoch: int, gathered: Gathered, *, complete: bool) -> None:
        """Makes the epoch count, unless another run has taken the checkpoint over."""
        deliver(self._writers, epoch, tables_of(gathered.rows))
        if complete:
            end_writers(self._writers, epoch)
        before = self.manifest
        version = before.version + 1
        self._counted |= gathered.counted
        progress = self._advanced(Progress.from_json(before.progress), gathered)
        manifest = Manifest(
            version,
            self._run_id,
            before.virtual_partitions,
            self._operators,
            replace(progress, batch_id=epoch, complete=complete).to_json(),
            () if complete else self._written(version, gathered),
            batches=epoch + 1,
            fence=before.fence,
            process=before.process,
            deliveries=deliveries(self._writers, before.deliveries),
        )
        self._store.commit(manifest)
        self.manifest = manifest
        tell_counted(self._writers, epoch)
        self._let_go(progress, epoch)

    def _advanced(self, before: Progress, gathered: Gathered) -> Progress:
        after = before.advanced([gathered.partitions])
        partitions = [p for source in after.sources.values() for p in source.values()]
        counts: dict[str, dict[str, int]] = {"late": {}, "failed": {}, "rows": {}}
        for counted in self._counted.values():
            for kind, count in (("late", counted.late), ("failed", counted.failed), ("rows", counted.rows)):
                if count:
                    counts[kind][counted.operator] = counts[kind].get(counted.operator, 0) + count
        marks = dict(after.marks)
        seen_us: dict[str, int] = {}
        for name, ranges in self._ranges.items():
            mark = ranges.mark(_positions(after, name))
            if mark is not None:
                marks[name] = mark
            spec = self._plan.graph[name].spec_as(SourceSpec)
            seen_us[name] = after.watermark_us(name, spec.lateness_us)
        events = sum(partition.offset for partition in partitions)
        bad = sum(partition.records - partition.offset for partition in partitions)
        totals = {**after.totals, "events": events, "bad": bad}
        return replace(after, seen_us=seen_us, totals=totals, counts=counts, marks=marks)

    def _written(self, version: int, gathered: Gathered) -> tuple[FileEntry, ...]:
        """The files of all tasks."""
        entries: list[FileEntry] = []
        for task in sorted({*gathered.state, *self._bases}):
            base = self._bases.get(task)
            written = self._store.write(
                version,
                task,
                0,
                self._run_id,
                gathered.state.get(task, {}),
                self.manifest.virtual_partitions,
                base if base is not None and base.is_in(self.manifest) else None,
            )
            self._bases[task] = written.base
            if written.entry is not None:
                entries.append(written.entry)
        return tuple(entries)

    def _let_go(self, progress: Progress, epoch: int) -> None:
        """Of what only older versions need."""
        self._stood.append({name: _positions(progress, name) for name in self._ranges})
        if len(self._stood) > self._keep + _COLLECT_EVERY:
            for name, positions in self._stood.pop(0).items():
                self._ranges[name].release(positions)
        if epoch % _COLLECT_EVERY == 0:
            self._store.collect(self._keep)


def _positions(progress: Progress, source: str) -> list[int]:
    partitions = progress.sources[source]
    return [partitions[number].position for number in range(len(partitions))]
