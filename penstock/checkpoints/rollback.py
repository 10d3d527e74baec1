"""A checkpoint goes back to a version that it has kept: state, positions and files of sinks together.

What the version says comes again as the newest one, and only then files are cut: a crash before that has
changed nothing that counts, and after it the next start cuts them, or the same command.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from penstock.checkpoints.lock import CheckpointLock, this_process
from penstock.checkpoints.parts import Part, parts_of
from penstock.checkpoints.spark_log import SparkLog
from penstock.connectors.deliveries import delivery_of
from penstock.connectors.delivery import Delivery
from penstock.connectors.files.target_lock import TargetLock
from penstock.state.errors import StateError
from penstock.state.inspection import damage
from penstock.state.manifest import FORMAT, Manifest
from penstock.state.store import StateStore

#: Sinks of which nothing outlives the run, so that nothing is delivered twice.
_FLEETING = frozenset(("discard", "memory", "console"))


@dataclass(frozen=True)
class WentBack:
    """What a rollback has done."""

    folder: str
    version: int  # the newest now
    like: int  # the version that it says the same as
    batches: int
    cut: tuple[str, ...]  # files and folders of sinks
    left: tuple[str, ...]  # queries whose sinks could not go back

    def text(self) -> str:
        """As people read it."""
        lines = [
            f"'{self.folder}' is back at version {self.like}, after {self.batches:,} batches; it is version "
            f"{self.version} now"
        ]
        lines += [f"output as it was then: '{path}'" for path in self.cut]
        lines += [
            f"not taken back, and gets the rows again: the sink of query '{query}'" for query in self.left
        ]
        return "\n".join(lines)


def roll_back(root: str | Path, to: int, *, group: int | None = None, leave_sinks: bool = False) -> WentBack:
    """Goes back to a version; ``leave_sinks`` also where sinks cannot. Nobody may run in the checkpoint."""
    parts_of(root)  # no lock makes the folder of a checkpoint that is not there
    lock = CheckpointLock(str(root))
    try:
        part = _part(root, group)
        store = part.store
        then = store.load(to)
        for problem in damage(store, then, set()):
            raise StateError(f"version {to} cannot be gone back to", problem, "go back to another one")
        newest, fence = _newest(store)
        deliveries = _deliveries(then, newest)
        left = tuple(query for query, plain in deliveries.items() if _stays(plain))
        if left and then.batches < newest.batches and not leave_sinks:
            raise StateError(
                "some sinks cannot go back",
                ", ".join(f"query '{query}' ({deliveries[query]['kind']})" for query in left)
                + f" would get the rows since version {to} again",
                "take back by hand what they have delivered since, if that matters, and give --leave-sinks",
            )
        outputs = {query: delivery for query, plain in deliveries.items() if (delivery := delivery_of(plain))}
        with _locked(outputs):
            _check(outputs, then)
            again = replace(
                then,
                version=store.versions()[-1] + 1,
                fence=fence + 1,
                run_id=uuid4().hex,
                process=this_process(),
                deliveries=deliveries,
                format=FORMAT,
            )
            # It is made anew at each start. If it stayed, the state would seem to lack what came after.
            SparkLog(part.checkpoint.spark).clear()
            store.commit(again, again=then)
            store.drop(to + 1, again.version)
            for delivery in outputs.values():
                delivery.roll_back(then.batches)
    finally:
        lock.free()
    paths = tuple(sorted(delivery.path for delivery in outputs.values()))
    return WentBack(part.checkpoint.root, again.version, to, again.batches, paths, left)


def _part(root: str | Path, group: int | None) -> Part:
    parts = parts_of(root)
    chosen = [part for part in parts if part.group == group]
    if not chosen:
        groups = ", ".join(str(part.group) for part in parts)
        raise StateError(
            "no such part of the checkpoint",
            f"'{root}' has {'no groups' if parts[0].group is None else f'the groups {groups}'}",
            "leave --group out"
            if parts[0].group is None
            else "each goes back by itself: give --group NUMBER",
        )
    return chosen[0]


def _newest(store: StateStore) -> tuple[Manifest, int]:
    """The newest version that can be read, and the highest fence that any can have."""
    versions = store.versions()
    for unreadable, version in enumerate(reversed(versions)):
        try:
            manifest = store.load(version)
        except StateError:
            continue
        return manifest, manifest.fence + unreadable  # each start raises it by one
    raise AssertionError("the version to go back to can be read")


def _deliveries(then: Manifest, newest: Manifest) -> dict[str, Any]:
    """What sinks had delivered then; those that came later had delivered nothing."""
    return {
        query: then.deliveries.get(query) or _nothing(plain) for query, plain in newest.deliveries.items()
    }


def _nothing(plain: Mapping[str, Any]) -> Mapping[str, Any]:
    delivery = delivery_of(plain)
    return plain if delivery is None else type(delivery)(delivery.kind, delivery.path).plain()


def _stays(plain: Mapping[str, Any]) -> bool:
    return delivery_of(plain) is None and plain["kind"] not in _FLEETING


def _check(outputs: Mapping[str, Delivery], then: Manifest) -> None:
    for query, delivery in outputs.items():
        wrong = delivery.check(then.batches)
        if wrong is not None:
            raise StateError(
                "the output does not reach back to that version",
                f"sink of query '{query}' in '{delivery.path}': {wrong}",
                "bring it back as it was, or go back to another version",
            )


@contextlib.contextmanager
def _locked(outputs: Mapping[str, Delivery]) -> Iterator[None]:
    """Nobody writes the outputs meanwhile."""
    with contextlib.ExitStack() as stack:
        for path in {delivery.path for delivery in outputs.values()}:
            stack.callback(TargetLock(Path(path)).free)
        yield
