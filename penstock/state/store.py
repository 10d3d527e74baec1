"""The state store: versions of the state of a whole graph, each made of one file per task and one manifest.

A file is a snapshot, or a delta to older files that its entry names: its chain. Tasks write files and tell
the driver; the driver alone commits a version, by one rename. Whatever has no manifest never happened:
attempts that failed, lost a race or were replayed leave files that nobody reads, and ``collect`` removes them
later.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa
from pyarrow import fs

from penstock.state import delta, state_file
from penstock.state.delta import Base
from penstock.state.errors import GO_BACK, StateError
from penstock.state.files import Create, Folder, final_name, is_temporary
from penstock.state.groups import TableName, grouped
from penstock.state.manifest import FileEntry, FileLink, Manifest, checksum
from penstock.state.state_file import StateFile
from penstock.state.tables import StateTables

_DATA_NAME = re.compile(r"v(\d+)-t\d+-a\d+-\w+\.state")
_MANIFEST_NAME = re.compile(r"(\d+)\.json")


class Written(NamedTuple):
    """What a write gives back."""

    entry: FileEntry | None  # for the driver; None: there are no rows
    base: Base | None  # for the task's next write, if it stays the owner


class StateStore:
    """Versions of state under ``root``: a local path, a URI that pyarrow can write, or a path in ``files``.

    A version is numbered by whoever commits it; a batch reads the newest one and makes the next.
    ``chain_limit``: so many older files may a delta build on, then a snapshot is written; with 0 there are no
    deltas. A state of less than ``small_bytes`` is always a snapshot. ``create`` makes a manifest where the
    file system is not local: without it nothing can be committed there.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        files: fs.FileSystem | None = None,
        *,
        chain_limit: int = 8,
        small_bytes: int = 256 * 1024,
        create: Create | None = None,
    ) -> None:
        self.root = os.fspath(root)
        self._chain_limit, self._small_bytes = chain_limit, small_bytes
        self._committed: Manifest | None = None  # the last one, made or gone on from
        folder = Folder(root, files, create)
        self._data, self._manifests = folder.inside("data"), folder.inside("manifests")

    # -- tasks -----------------------------------------------------------------------------------------------

    def write(
        self,
        version: int,
        task: int,
        attempt: int,
        run_id: str,
        state: Mapping[str, StateTables],
        virtual_partitions: int,
        base: Base | None = None,
    ) -> Written:
        """Writes the state of one task, by operator, as one new file; without rows, none.

        The entry is what the task must return to the driver. The name has the attempt and the driver's run
        in it, so no two writers ever meet.

        ``base``: what this task was given back when it wrote the version before this one, if that is what was
        committed (``Base.is_in``). The file then has only what changed since, if that pays; and if nothing
        did, there is none, and the entry is that of the base.
        """
        groups = grouped(state)
        if not groups:
            return Written(None, None)
        if base is not None and (base.entry.task, base.virtual_partitions) != (task, virtual_partitions):
            base = None
        small = sum(group.rows.nbytes for group in groups) < self._small_bytes
        plan = delta.snapshot(groups) if small else delta.plan(groups, base, self._chain_limit)
        if base is not None and plan.is_empty:
            return Written(base.entry, base)
        data, rows, partitions = state_file.encode(plan.parts, virtual_partitions)
        name = f"v{version:012d}-t{task:05d}-a{attempt}-{_word(run_id)}.state"
        self._data.write(name, data)
        entry = FileEntry(task, name, rows, len(data), checksum(data), partitions, plan.chain)
        return Written(entry, Base(entry, virtual_partitions, plan.logs, plan.unpaid, plan.rest))

    def read(
        self, version: int | Manifest, operators: Collection[str] | None, partitions: Iterable[int]
    ) -> dict[str, StateTables]:
        """The state of these operators (None: all) in these virtual partitions, by operator.

        Opens only files that the manifest names and that are needed for such partitions, and checks every one
        whole. The order of rows means nothing.
        """
        manifest = self.load(version) if isinstance(version, int) else version
        wanted = set(partitions)
        parts: dict[TableName, list[pa.Table]] = {}
        held: dict[TableName, list[tuple[int, str]]] = {}
        for entry in manifest.files:
            if wanted.isdisjoint(entry.partitions):
                continue
            chain = [self.file(manifest, link) for link in entry.links]
            for key, (bits, table) in state_file.rows_of(chain, operators, wanted).items():
                for other, file in held.setdefault(key, []):
                    if other & bits:
                        raise _written_twice(manifest, key[0], other & bits, file, entry.file)
                held[key].append((bits, entry.file))
                parts.setdefault(key, []).append(table)
        state: dict[str, StateTables] = {}
        for (operator, name), tables in parts.items():
            whole = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
            state.setdefault(operator, {})[name] = whole
        return state

    # -- the driver ------------------------------------------------------------------------------------------

    def commit(self, manifest: Manifest, again: Manifest | None = None) -> None:
        """Makes the version exist, in one step, unless somebody else has made it: then this run has lost the
        checkpoint to another, and must end.

        Older files that it needs must be those of the version before it, or of the version that is to come
        ``again``: others may be collected at any time.
        """
        older = {link.file for entry in manifest.files for link in entry.chain}
        older |= {entry.file for entry in manifest.files if _version_of(entry.file) < manifest.version}
        if older:
            known = self._names_before(manifest.version) if again is None else again.file_names
            unknown = older - known
            if unknown:
                raise StateError(
                    "a version builds on a file that the one before it does not have",
                    f"version {manifest.version} needs {min(unknown)}",
                    "give `write` a base only if it `is_in` the version that the batch began with",
                )
        name, data = f"{manifest.version}.json", manifest.to_bytes()
        is_mine = self._manifests.create(name, data)
        versions = self.versions()
        # A version of that number may have been made and collected long ago: then there are later ones.
        if not is_mine or versions[-1:] != [manifest.version]:
            if is_mine:
                self._manifests.remove(name)
            raise self._lost(manifest, versions)
        if self._committed is not None and self._committed.version not in versions:
            self._manifests.remove(name)
            raise self._gone(self._committed.version)
        self._committed = manifest

    def versions(self) -> list[int]:
        """All committed versions, in order."""
        found = (_MANIFEST_NAME.fullmatch(name) for name in self._manifests.names())
        return sorted(int(match[1]) for match in found if match is not None)

    def latest(self) -> Manifest | None:
        """The newest version, or None if there is none yet.

        One that cannot be read is an error: to go back further on one's own could do a batch twice.
        """
        versions = self.versions()
        if not versions:
            return None
        self._committed = self.load(versions[-1])
        return self._committed

    def before(self, batch: int) -> Manifest:
        """The version that a batch starts from: the newest of those that wait for it."""
        for version in reversed(self.versions()):
            manifest = self.load(version)
            if manifest.batches == batch:
                return manifest
            if manifest.batches < batch:
                break
        raise StateError(
            "no such checkpoint",
            f"batch {batch} starts from no version in '{self.root}'",
            "another run has gone on from there, or the folder was changed while a run used it",
        )

    def load(self, version: int) -> Manifest:
        """The manifest of one version."""
        name = f"{version}.json"
        try:
            data = self._manifests.read(name)
        except FileNotFoundError:
            known = ", ".join(str(number) for number in self.versions()) or "none"
            raise StateError(
                "no such checkpoint", f"version {version} in '{self.root}'", f"versions there: {known}"
            ) from None
        manifest = Manifest.from_bytes(data.to_pybytes(), f"{name} in '{self.root}'")
        if manifest.version != version:
            raise StateError(
                "unreadable checkpoint",
                f"manifest {name} in '{self.root}' is of version {manifest.version}",
                "it was renamed or copied: give it its own name back",
            )
        return manifest

    def collect(self, keep_versions: int = 2, grace_versions: int = 1) -> list[str]:
        """Removes all but the newest versions, and files that no kept version names; says which.

        Whatever was written for the newest ``grace_versions`` versions, or for later ones, stays even if
        nobody names it: a task that lost its race may be writing it right now. With 0 nobody is: what was
        written for the newest version, and is not of it, is of a run that has ended. Nothing is removed while
        the manifest of a kept version cannot be read.
        """
        if keep_versions < 1 or grace_versions < 0:
            raise ValueError(f"at least one version must be kept: {keep_versions}, {grace_versions}")
        versions = self.versions()
        if not versions:
            return []
        kept = versions[-keep_versions:]
        try:
            named = {file for version in kept for file in self.load(version).file_names}
        except StateError:  # one that nobody may ever ask for is no reason to end a run
            return []
        oldest_spared = kept[-1] - grace_versions + 1
        removed: list[str] = []
        # Manifests first: a crash in between leaves files too many, never a version that lacks one.
        for name in self._manifests.names():
            match = _MANIFEST_NAME.fullmatch(final_name(name))
            if match is None:
                continue
            version = int(match[1])
            if version < oldest_spared if is_temporary(name) else version < kept[0]:
                self._manifests.remove(name)
                removed.append(name)
        for name in self._data.names():
            if name not in named and _version_of(name) < oldest_spared:
                self._data.remove(name)
                removed.append(name)
        return removed

    def drop(self, first: int, behind: int) -> None:
        """Forgets the versions from ``first`` on, up to ``behind``; ``collect`` removes their files."""
        for version in self.versions():
            if first <= version < behind:
                self._manifests.remove(f"{version}.json")

    def _lost(self, manifest: Manifest, versions: list[int]) -> StateError:
        """Why a version could not be committed: who has done it instead."""
        if not versions:
            raise self._gone(manifest.version)
        other = self.load(versions[-1])
        mine, theirs = manifest.process or "an unknown process", other.process or "an unknown process"
        return StateError(
            "another run has taken over the checkpoint",
            f"'{self.root}' is at version {other.version} of {theirs}, this run ({mine}) would have made "
            f"version {manifest.version}",
            "this run has ended, and what it did since the version before does not count; let only one run "
            "use a checkpoint at a time",
        )

    def _gone(self, version: int) -> StateError:
        return StateError(
            "the checkpoint is gone",
            f"version {version} was removed from '{self.root}' while a run used it",
            "let nobody change the folder of a run, and start again",
        )

    def _names_before(self, version: int) -> set[str]:
        known = self._committed
        if known is None or known.version != version - 1:
            earlier = [number for number in self.versions() if number < version]
            known = self.load(earlier[-1]) if earlier else None
        return set() if known is None else known.file_names

    def file(self, manifest: Manifest, link: FileLink) -> StateFile:
        """A file that a version names, read whole and checked."""
        where = f"{link.file} of version {manifest.version} in '{self.root}'"
        try:
            data = self._data.read(link.file)
        except FileNotFoundError:
            raise StateError("checkpoint file is missing", where, GO_BACK) from None
        if len(data) != link.bytes:
            detail = f"{where} has {len(data)} bytes, written were {link.bytes}"
            raise StateError("damaged checkpoint file", detail, GO_BACK)
        found = checksum(data)
        if found != link.checksum:
            detail = f"{where} has checksum {found}, written was {link.checksum}"
            raise StateError("damaged checkpoint file", detail, GO_BACK)
        return state_file.decode(data, link.file)


def _written_twice(manifest: Manifest, operator: str, bits: int, one: str, other: str) -> StateError:
    partition = (bits & -bits).bit_length() - 1  # the first of them
    return StateError(
        "inconsistent checkpoint",
        f"version {manifest.version} has partition {partition} of '{operator}' in {one} and in {other}",
        "two tasks wrote it: they were given different routing tables",
    )


def _version_of(name: str) -> float:
    """The version that a file was written for; of what is not ours, one that never gets old."""
    match = _DATA_NAME.fullmatch(final_name(name))
    return float("inf") if match is None else int(match[1])


def _word(run_id: str) -> str:
    if not re.fullmatch(r"\w+", run_id):
        raise ValueError(f"a run's id must be letters and digits, got {run_id!r}")
    return run_id
