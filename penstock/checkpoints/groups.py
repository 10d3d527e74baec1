"""The groups of a checkpoint: who runs in which, where each keeps its state, and how one becomes several.

CHECKPOINT/groups.json     the groups; written last, so that a split counts whole or not at all
CHECKPOINT/groups/0/…      a checkpoint of its own for each group: state, Spark's log, sources
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from penstock.checkpoints.folders import Checkpoint, operators_of
from penstock.checkpoints.planned import planned
from penstock.placement.query_groups import QueryGroups
from penstock.query.graph import Graph
from penstock.query.steps import SourceSpec
from penstock.state.errors import StateError
from penstock.state.files import Folder, sync_all
from penstock.state.store import StateStore

_FORMAT = 1
_NAME = "groups.json"
_PARTS = ("state", "spark", "sources")  # of a checkpoint without groups
_COPIED = ("spark/sources", "sources")  # what sources have written down


def folder_of(checkpoint: Checkpoint, group: int) -> str:
    """The checkpoint of one group."""
    return f"{checkpoint.root}/groups/{group}"


def stored_groups(checkpoint: Checkpoint) -> QueryGroups | None:
    """The groups that an earlier run had; None if there are none."""
    folder = Folder(checkpoint.root)
    if _NAME not in folder.names():
        return None
    try:
        body = json.loads(folder.read(_NAME).to_pybytes())
        groups = tuple(tuple(str(query) for query in group) for group in body["groups"])
        known = body["format"] == _FORMAT
    except (ValueError, TypeError, KeyError) as error:
        raise StateError(
            "the groups of the checkpoint cannot be read",
            f"'{checkpoint.root}/{_NAME}': {type(error).__name__}",
            "restore it from a copy, or start from an empty checkpoint",
        ) from None
    if not known:
        raise StateError(
            "the checkpoint is of another version of Penstock",
            f"'{checkpoint.root}/{_NAME}' has format {body['format']}, this one reads {_FORMAT}",
            "start from an empty checkpoint, or use the version that wrote it",
        )
    return groups


def check_no_groups(root: str | Path | None) -> None:
    """Raises if the checkpoint is one of groups: a run without would not find their state."""
    stored = None if root is None else stored_groups(Checkpoint.at(root))
    if stored is not None:
        raise StateError(
            "the checkpoint has groups",
            f"'{root}' was made with {_shown(stored)}",
            'write groups="auto" to go on with them, or start from an empty checkpoint',
        )


def store_groups(checkpoint: Checkpoint, groups: QueryGroups) -> None:
    """Makes the groups count, by one rename."""
    body = {"format": _FORMAT, "groups": [list(group) for group in groups]}
    Folder(checkpoint.root).write(_NAME, json.dumps(body, indent=1).encode())


def delivered_in(checkpoint: Checkpoint, groups: QueryGroups) -> tuple[frozenset[str], ...]:
    """By group, the queries whose deliveries its checkpoint has, also of those that have gone."""
    newest = (StateStore(f"{folder_of(checkpoint, number)}/state").latest() for number in range(len(groups)))
    return tuple(frozenset(() if manifest is None else manifest.deliveries) for manifest in newest)


def resumed_groups(
    stored: QueryGroups,
    wanted: QueryGroups | None,
    queries: Sequence[str],
    root: str,
    delivered: Sequence[Collection[str]] = (),
) -> QueryGroups:
    """The groups to go on with: those stored, for the app's queries of today.

    ``wanted`` are those that the user wrote, None: whatever there is. A query that has gone leaves its group;
    if it comes again, it joins the one that knows what it has ``delivered``, and a new one the smallest.
    Queries that were in different groups have come to different places in their input, so they cannot be put
    together again, nor a group be divided once more.
    """
    here = set(queries)
    kept = [[query for query in group if query in here] for group in stored]
    for query in queries:
        if not any(query in group for group in kept):
            homes = [group for group, known in zip(kept, delivered, strict=False) if query in known]
            min(homes or kept, key=len).append(query)
    found = tuple(tuple(group) for group in kept)
    if wanted is not None and {frozenset(g) for g in wanted} != {frozenset(g) for g in found if g}:
        raise StateError(
            "the groups have changed",
            f"checkpoint '{root}' was made with {_shown(found)}, the run was given {_shown(wanted)}",
            'write groups="auto" to go on with those of the checkpoint, or start from an empty one',
        )
    return found


def obstacle(graph: Graph, parts: Sequence[Graph]) -> str | None:
    """Why a checkpoint of all queries cannot be carried over to groups; None if it can.

    Every group must read all sources: Spark's log speaks of all of them.
    """
    sources = _sources(graph)
    for part in parts:
        missing = sorted(sources - _sources(part))
        if missing:
            return f"one of the groups does not read source '{missing[0]}'"
    return None


def split(checkpoint: Checkpoint, groups: QueryGroups, graph: Graph, parts: Sequence[Graph]) -> None:
    """Makes a checkpoint for each group out of the one of all: each goes on where all of them stand now.

    Nobody may run in it. An operator keeps its id in its group, and so finds its state; columns that only
    queries of other groups read are left out when it is loaded. A crash on the way leaves the old checkpoint
    as it is.
    """
    manifest = StateStore(checkpoint.state).latest()
    if manifest is not None:
        if "://" in checkpoint.root:
            raise StateError(
                "a checkpoint that is not in a local folder cannot be divided",
                f"'{checkpoint.root}' has state of all queries in one group",
                "write groups=None to go on with one group, or start from an empty checkpoint",
            )
        root = Path(checkpoint.root)
        computed = operators_of(planned(graph))
        # Of an operator that has changed since, the state is dropped, as in a run without groups.
        known = {name for name, computes in manifest.operators.items() if computed.get(name) == computes}
        gone = set(manifest.deliveries).difference(*groups)
        shutil.rmtree(root / "groups", ignore_errors=True)  # of a split that did not come to its end
        for number, part in enumerate(parts):
            target = Path(folder_of(checkpoint, number))
            for name in _COPIED:
                if (root / name).is_dir():
                    shutil.copytree(root / name, target / name)
            (target / "state" / "data").mkdir(parents=True)
            for name in manifest.file_names:
                _link(root / "state" / "data" / name, target / "state" / "data" / name)
            operators = {name: text for name, text in operators_of(planned(part)).items() if name in known}
            # What was delivered by queries that are in no group now stays in one place, the first.
            own = set(groups[number]) | (set() if number else gone)
            delivered = {query: told for query, told in manifest.deliveries.items() if query in own}
            of_group = replace(
                manifest, version=manifest.version + 1, operators=operators, deliveries=delivered
            )
            # Of the versions before it none is of this group alone, so it cannot go back to them.
            StateStore(str(target / "state")).commit(of_group, again=manifest)
        sync_all(root / "groups")  # before anything of the old one is removed
    store_groups(checkpoint, groups)
    remove_undivided(checkpoint)


def remove_undivided(checkpoint: Checkpoint) -> None:
    """Removes what all queries had together, once the groups count: a crash may have left it there."""
    if "://" not in checkpoint.root:
        for name in _PARTS:
            shutil.rmtree(Path(checkpoint.root) / name, ignore_errors=True)


def _link(source: Path, target: Path) -> None:
    """Files of state never change once they are written, so groups share them."""
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        shutil.copy2(source, target)


def _sources(graph: Graph) -> set[str]:
    return {node.id for node in graph.nodes if isinstance(node.spec, SourceSpec)}


def _shown(groups: QueryGroups) -> str:
    return " and ".join(
        "[" + ", ".join([*group[:3], *(["…"] if len(group) > 3 else [])]) + "]" for group in groups if group
    )
