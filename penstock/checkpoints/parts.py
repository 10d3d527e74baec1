"""The parts of a checkpoint that are whole in themselves: all of it, or one for each group of queries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.checkpoints.folders import Checkpoint
from penstock.checkpoints.groups import folder_of, stored_groups
from penstock.state.errors import StateError
from penstock.state.store import StateStore


@dataclass(frozen=True)
class Part:
    """The checkpoint of one streaming query."""

    checkpoint: Checkpoint
    group: int | None  # None: there are no groups

    @property
    def store(self) -> StateStore:
        return StateStore(self.checkpoint.state)

    @property
    def name(self) -> str:
        """What stands in front of a line about it."""
        return "" if self.group is None else f"group {self.group}: "


def parts_of(root: str | Path) -> list[Part]:
    """The parts that have a version. Raises ``StateError`` if there is none."""
    whole = Checkpoint.at(root)
    groups = stored_groups(whole)
    if groups is None:
        parts = [Part(whole, None)]
    else:
        parts = [Part(Checkpoint(folder_of(whole, group)), group) for group in range(len(groups))]
    parts = [part for part in parts if part.store.versions()]
    if not parts:
        raise StateError(
            "no checkpoint",
            f"'{root}' has no version of any state",
            "give the folder that runs are given, as in ps.Spark(checkpoint='FOLDER')",
        )
    return parts
