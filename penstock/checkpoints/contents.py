"""What is in a checkpoint: versions, steps with their state, positions, what sinks have delivered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from penstock.checkpoints.parts import Part, parts_of
from penstock.checkpoints.positions import PartitionProgress, Progress
from penstock.connectors.deliveries import delivery_of
from penstock.state.errors import StateError
from penstock.state.inspection import StateSize, state_sizes
from penstock.state.manifest import Manifest


@dataclass(frozen=True)
class VersionContents:
    """A version that is kept."""

    version: int
    batches: int
    fence: int
    process: str
    state_rows: int
    problem: str | None = None  # why it cannot be read


@dataclass(frozen=True)
class StepContents:
    """A step with state."""

    name: str
    text: str  # what it does
    rows: int
    bytes: int


@dataclass(frozen=True)
class SinkContents:
    """What the sink of a query has delivered."""

    query: str
    kind: str
    path: str | None  # None: it can neither be looked at nor taken back
    delivered: str


@dataclass(frozen=True)
class PartContents:
    """A checkpoint, or that of one group; but for the versions, all is of the newest one that can be read."""

    folder: str
    group: int | None
    versions: tuple[VersionContents, ...]
    complete: bool
    events: int
    tasks: int
    steps: tuple[StepContents, ...]
    sources: dict[str, dict[int, PartitionProgress]]
    sinks: tuple[SinkContents, ...]
    problem: str | None  # why the sizes of steps are not known

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    def text(self) -> str:
        """As people read it."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        newest = self.versions[-1]
        group = "" if self.group is None else f", group {self.group}"
        yield f"{self.folder}{group}: {'complete' if self.complete else 'not complete'}"
        yield f"  newest version {newest.version} after {newest.batches:,} batches and {self.events:,} events"
        yield f"  by {newest.process or 'an unknown process'}, start {newest.fence}, {self.tasks} tasks"
        yield "versions"
        for version in self.versions:
            told = f"after {version.batches:,} batches, {version.state_rows:,} rows of state"
            yield f"  {version.version}: {version.problem or told}"
        yield "steps"
        for step in self.steps:
            yield f"  {step.name}: {step.rows:,} rows, {step.bytes:,} bytes ({step.text})"
        if self.problem is not None:
            yield f"  {self.problem}"
        yield "sources"
        for name, partitions in self.sources.items():
            for number, partition in partitions.items():
                yield f"  {name}, partition {number}: {_position(partition)}"
        yield "sinks"
        for sink in self.sinks:
            where = "" if sink.path is None else f" in '{sink.path}'"
            yield f"  {sink.query}: {sink.kind}, {sink.delivered}{where}"


def contents_of(root: str | Path) -> list[PartContents]:
    """What is in a checkpoint; one that a run is using, too."""
    return [_contents(part) for part in parts_of(root)]


def _contents(part: Part) -> PartContents:
    store = part.store
    versions: list[VersionContents] = []
    newest: Manifest | None = None
    for number in store.versions():
        try:
            manifest = store.load(number)
        except StateError as error:
            if error.what != "no such checkpoint":  # else it was collected just now
                versions.append(VersionContents(number, 0, 0, "", 0, f"{error.what}: {error.detail}"))
            continue
        rows = sum(entry.rows for entry in manifest.files)
        versions.append(VersionContents(number, manifest.batches, manifest.fence, manifest.process, rows))
        newest = manifest
    if newest is None:
        raise StateError(
            "unreadable checkpoint",
            f"none of the versions in '{part.checkpoint.state}' can be read",
            "restore it from a copy, or start from an empty checkpoint",
        )
    sizes: dict[str, StateSize] = dict.fromkeys(newest.operators, StateSize())
    problem = None
    try:
        sizes = state_sizes(store, newest)
    except StateError as error:
        problem = f"{error.what}: {error.detail}"
    progress = Progress.from_json(newest.progress)
    return PartContents(
        part.checkpoint.root,
        part.group,
        tuple(versions),
        progress.complete,
        progress.totals.get("events", 0),
        progress.tasks,
        tuple(
            StepContents(name, progress.texts.get(name, computes), *sizes.get(name, StateSize()))
            for name, computes in newest.operators.items()
        ),
        {name: dict(partitions) for name, partitions in progress.sources.items()},
        tuple(_sink(query, plain) for query, plain in newest.deliveries.items()),
        problem,
    )


def _sink(query: str, plain: dict[str, Any]) -> SinkContents:
    delivery = delivery_of(plain)
    if delivery is None:
        return SinkContents(query, str(plain["kind"]), None, "cannot go back")
    return SinkContents(query, delivery.kind, delivery.path, delivery.amount)


def _position(partition: PartitionProgress) -> str:
    latest = partition.latest_us
    time = "" if latest is None else f", latest event {datetime.fromtimestamp(latest / 1e6, UTC):%F %T} UTC"
    end = ", at its end" if partition.finished else ""
    return f"position {partition.position:,}, {partition.records:,} records{time}{end}"
