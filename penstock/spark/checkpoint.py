"""A run's checkpoint: its folders, the version it goes on from, and what has changed since."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.operators.routed import is_routed
from penstock.query.explain import describe
from penstock.query.graph import Node, SourceSpec
from penstock.spark.positions import PartitionProgress, Progress
from penstock.spark.stages import Stages
from penstock.state.errors import StateError
from penstock.state.manifest import Manifest
from penstock.state.store import StateStore


@dataclass(frozen=True)
class Checkpoint:
    """The folders of a run: its state, Spark's own log, and what sources keep."""

    root: str
    temporary: bool = False  # made for this run, and removed with it

    @classmethod
    def at(cls, root: str | Path | None) -> Checkpoint:
        if root is None:
            return cls(tempfile.mkdtemp(prefix="penstock-"), temporary=True)
        text = str(root)
        return cls(text if "://" in text else str(Path(text).absolute()))

    @property
    def state(self) -> str:
        return f"{self.root}/state"

    @property
    def spark(self) -> str:
        return f"{self.root}/spark"

    def source(self, source_id: str) -> str:
        """What a source keeps between runs."""
        return f"{self.root}/sources/{source_id}"

    @property
    def shipped(self) -> str:
        """Data that sources hand to other processes."""
        return f"{self.root}/shipped"

    def remove(self) -> None:
        if self.temporary:
            shutil.rmtree(self.root, ignore_errors=True)


@dataclass(frozen=True)
class Changes:
    """How the graph differs from the one that wrote the checkpoint."""

    fresh: Mapping[str, str]  # operators that start without state, and why
    left_behind: tuple[str, ...]  # state that nobody takes

    def __bool__(self) -> bool:
        return bool(self.fresh or self.left_behind)

    def __str__(self) -> str:
        lines = [f"'{name}' starts without state: {why}" for name, why in self.fresh.items()]
        lines += [f"'{name}' is no longer there: its state is dropped" for name in self.left_behind]
        return "\n".join(lines)


def operators_of(stages: Stages) -> dict[str, str]:
    """The operators with state, by id, with a text that changes when what they compute does."""
    return {node.id: _computes(stages, node) for node in stages.graph.nodes if is_routed(node.spec)}


def _computes(stages: Stages, node: Node) -> str:
    inputs = "; ".join(", ".join(map(str, layout.fields)) for layout in stages.layouts.inputs(node))
    outputs = stages.layouts.outputs(node)
    made = "; ".join(", ".join(map(str, layout.fields)) for layout in outputs.values())
    return f"{describe(node.spec)} of ({inputs}) to ({made})"


def resume(
    store: StateStore,
    stages: Stages,
    finals: Mapping[str, list[int] | None],
    routing: tuple[int, ...],
    run_id: str,
) -> tuple[Manifest, Changes, bool]:
    """The version to go on from, made if there is none; what has changed; whether the checkpoint is new.

    ``finals`` has, per source, where each of its partitions ends, if it does.
    """
    operators = operators_of(stages)
    sources = {n.id: n.spec for n in stages.graph.nodes if isinstance(n.spec, SourceSpec)}
    latest = store.latest()
    if latest is None:
        progress = Progress(
            {
                name: {
                    partition: PartitionProgress(finished=_ends_at(finals.get(name), partition) == 0)
                    for partition in range(spec.source.partitions)
                }
                for name, spec in sources.items()
            },
            routing,
        )
        first = Manifest(0, run_id, len(routing), operators, progress.to_json())
        store.commit(first)
        return first, Changes({}, ()), True
    known = Progress.from_json(latest.progress)
    _check_sources(known, sources, store.root)
    if latest.virtual_partitions != len(routing):
        raise StateError(
            "the checkpoint has another number of virtual partitions",
            f"'{store.root}' has {latest.virtual_partitions}, the run was given {len(routing)}",
            f"write virtual_partitions={latest.virtual_partitions}",
        )
    return latest, Changes(latest.missing(operators), tuple(latest.left_behind(operators))), False


def _check_sources(known: Progress, sources: Mapping[str, SourceSpec], where: str) -> None:
    if set(known.sources) != set(sources):
        raise StateError(
            "the app's sources have changed",
            f"checkpoint '{where}' was made with {', '.join(sorted(known.sources))}, "
            f"the app reads {', '.join(sorted(sources))}",
            "start from an empty checkpoint",
        )
    for name, spec in sources.items():
        had = len(known.sources[name])
        if had != spec.source.partitions:
            raise StateError(
                f"source '{name}' has changed",
                f"it had {had} partitions, now it has {spec.source.partitions}",
                "read it as before, or start from an empty checkpoint",
            )


def _ends_at(final: list[int] | None, partition: int) -> int | None:
    return None if final is None else final[partition]
