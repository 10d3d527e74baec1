"""Before a run goes on: whether its input is still what it was, as far as the sources can tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.checkpoints.positions import Progress
from penstock.connectors.reader import NodeSource
from penstock.query.connectors import Source
from penstock.query.errors import RunError
from penstock.state.manifest import Manifest


def input_changes(
    manifest: Manifest | None, sources: Mapping[str, Source], journal_of: Callable[[str], str]
) -> list[str]:
    """What has changed of the sources' input since a version, in words; raises where it cannot be read on.

    ``journal_of`` has the folder of each source's journal, which must be the one that the version knows.
    """
    if manifest is None:
        return []
    progress = Progress.from_json(manifest.progress)
    if progress.complete:  # nothing is read any more
        return []
    told: list[str] = []
    for name, partitions in progress.sources.items():
        source = sources.get(name)
        if isinstance(source, NodeSource):
            try:
                changes = source.check_input(
                    journal_of(name), partitions[0].position, progress.marks.get(name)
                )
            except RunError as error:
                raise RunError(f"source '{name}' cannot go on: {error}") from None
            told += [f"source '{name}': {change}" for change in changes]
    return told


def begin_input(progress: Progress, sources: Mapping[str, Source], journal_of: Callable[[str], str]) -> None:
    """Tells every source from where this run goes on: what no version relies on may have changed."""
    for name, partitions in progress.sources.items():
        source = sources.get(name)
        if isinstance(source, NodeSource):
            source.begin_run(journal_of(name), partitions[0].position)


def final_positions(source: Source) -> list[int] | None:
    """Where each partition of a source ends, as far as that is known before it is read."""
    if not isinstance(source, NodeSource) or not source.bounded:
        return None
    positions = source.positions()
    try:
        return positions.final
    finally:
        positions.close()
