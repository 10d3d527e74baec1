"""What the files of a version hold, by operator, without any of the operators."""

from __future__ import annotations

from typing import NamedTuple

from penstock.state.errors import StateError
from penstock.state.manifest import Manifest
from penstock.state.store import StateStore


class StateSize(NamedTuple):
    """How much state an operator has."""

    rows: int = 0
    bytes: int = 0  # about, as it lies in memory: operators share files, and rows their columns

    def plus(self, rows: int, size: int) -> StateSize:
        return StateSize(self.rows + rows, self.bytes + size)


def state_sizes(store: StateStore, manifest: Manifest) -> dict[str, StateSize]:
    """By operator; every file is read and checked."""
    sizes = dict.fromkeys(manifest.operators, StateSize())
    for entry in manifest.files:
        files = [store.file(manifest, link) for link in entry.links]
        for schema, section in files[-1].sections.items():
            groups = [file.sections[schema].added for file in files if schema in file.sections]
            held = [group.rows for group in groups if group is not None]
            row_bytes = sum(rows.nbytes for rows in held) / max(sum(rows.num_rows for rows in held), 1)
            for (operator, _), rows in zip(section.names, section.counts, strict=True):
                sizes[operator] = sizes.get(operator, StateSize()).plus(rows, round(rows * row_bytes))
    return sizes


def damage(store: StateStore, manifest: Manifest, checked: set[str]) -> list[str]:
    """What is wrong with the files of a version, but for those that were checked before; adds its own."""
    problems = []
    for entry in manifest.files:
        for link in entry.links:
            if link.file in checked:
                continue
            checked.add(link.file)
            try:
                store.file(manifest, link)
            except StateError as error:
                problems.append(f"{error.what}: {error.detail}")
    return problems
