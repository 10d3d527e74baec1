"""Whether a checkpoint and what its sinks have delivered are as they were written, by every checksum."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from penstock.checkpoints.parts import Part, parts_of
from penstock.checkpoints.positions import Progress
from penstock.checkpoints.spark_log import SparkLog
from penstock.connectors.deliveries import delivery_of
from penstock.connectors.files.journal import FileJournal
from penstock.query.errors import PenstockError, RunError
from penstock.state.errors import StateError
from penstock.state.inspection import damage
from penstock.state.manifest import Manifest


def problems_of(root: str | Path) -> list[str]:
    """Everything that is wrong, a line each; also of a checkpoint that a run is using."""
    return [part.name + problem for part in parts_of(root) for problem in _problems(part)]


def _problems(part: Part) -> Iterator[str]:
    store, checked = part.store, set[str]()
    newest: Manifest | None = None
    for version in reversed(store.versions()):
        try:
            manifest = store.load(version)
        except StateError as error:
            problems = [f"{error.what}: {error.detail}"]
        else:
            problems = damage(store, manifest, checked)
            problems += _of_output(manifest, whole=newest is None)
            if newest is None:
                problems += notes_problems(part, manifest)
            newest = newest or manifest
        if problems and version in store.versions():  # else a run has collected it meanwhile
            yield from (f"version {version}: {problem}" for problem in problems)


def _of_output(manifest: Manifest, *, whole: bool) -> Iterator[str]:
    """What sinks had delivered. The newest version knows all of it, so only there everything is read."""
    for query, plain in manifest.deliveries.items():
        delivery = delivery_of(plain)
        if delivery is None:
            continue
        look = delivery.verify if whole else delivery.check
        wrong = look(manifest.batches)
        if wrong is not None:
            yield f"sink of query '{query}' in '{delivery.path}': {wrong}"


def notes_problems(part: Part, manifest: Manifest) -> Iterator[str]:
    """What is wrong with what sources have written down."""
    checkpoint, progress = part.checkpoint, Progress.from_json(manifest.progress)
    if progress.complete:  # nothing is read any more
        return
    for name, mark in progress.marks.items():
        try:
            FileJournal(checkpoint.source(name)).check(mark)
        except RunError as error:
            yield f"source '{name}': {error}"
    if not manifest.logs:  # made by a node
        return
    try:
        SparkLog(checkpoint.spark).check_sources(manifest)
    except PenstockError as error:
        yield str(error)
