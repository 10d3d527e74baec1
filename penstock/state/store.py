"""The state store: versions of the state of a whole graph, each made of one file per task and one manifest.

Tasks write files and tell the driver; the driver alone commits a version, by one rename. Whatever has no
manifest never happened: attempts that failed, lost a race or were replayed leave files that nobody reads, and
``collect`` removes them later.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa
from pyarrow import fs

from penstock.state import state_file
from penstock.state.errors import StateError
from penstock.state.files import Folder, final_name, is_temporary
from penstock.state.manifest import FileEntry, Manifest, checksum
from penstock.state.tables import StateTables

_DATA_NAME = re.compile(r"v(\d+)-t\d+-a\d+-\w+\.arrow")
_MANIFEST_NAME = re.compile(r"(\d+)\.json")


class StateStore:
    """Versions of state under ``root``: a local path, a URI that pyarrow can write, or a path in ``files``.

    A version is numbered by whoever commits it; batch n of a run reads version n and makes version n + 1.
    """

    def __init__(self, root: str | os.PathLike[str], files: fs.FileSystem | None = None) -> None:
        self.root = os.fspath(root)
        folder = Folder(root, files)
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
    ) -> FileEntry | None:
        """Writes the state of one task, by operator, as one new file; without rows, none.

        The entry is what the task must return to the driver. The name has the attempt and the driver's run
        in it, so no two writers ever meet.
        """
        data, rows, partitions = state_file.encode(state, virtual_partitions)
        if not rows:
            return None
        name = f"v{version:012d}-t{task:05d}-a{attempt}-{_word(run_id)}.arrow"
        self._data.make()
        self._data.write(name, data)
        return FileEntry(task, name, rows, len(data), checksum(data), partitions)

    def read(
        self, version: int | Manifest, operators: Collection[str] | None, partitions: Iterable[int]
    ) -> dict[str, StateTables]:
        """The state of these operators (None: all) in these virtual partitions, by operator.

        Opens only files that the manifest names and that have such partitions, and checks every one whole.
        """
        manifest = self.load(version) if isinstance(version, int) else version
        wanted = set(partitions)
        parts: dict[tuple[str, str], list[pa.Table]] = {}
        owners: dict[tuple[str, str, int], str] = {}
        for entry in manifest.files:
            if wanted.isdisjoint(entry.partitions):
                continue
            buffer = self._checked(manifest, entry)
            for key, (here, table) in state_file.decode(buffer, entry.file, operators, wanted).items():
                for partition in here:
                    other = owners.setdefault((*key, partition), entry.file)
                    if other != entry.file:
                        raise StateError(
                            "inconsistent checkpoint",
                            f"version {manifest.version} has partition {partition} of '{key[0]}' in "
                            f"{other} and in {entry.file}",
                            "two tasks wrote it: they were given different routing tables",
                        )
                parts.setdefault(key, []).append(table)
        state: dict[str, StateTables] = {}
        for (operator, name), tables in parts.items():
            whole = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
            state.setdefault(operator, {})[name] = whole
        return state

    # -- the driver ------------------------------------------------------------------------------------------

    def commit(self, manifest: Manifest) -> None:
        """Makes the version exist, in one step. A version that is committed again is replaced."""
        self._manifests.make()
        self._manifests.write(f"{manifest.version}.json", manifest.to_bytes())

    def versions(self) -> list[int]:
        """All committed versions, in order."""
        found = (_MANIFEST_NAME.fullmatch(name) for name in self._manifests.names())
        return sorted(int(match[1]) for match in found if match is not None)

    def latest(self) -> Manifest | None:
        """The newest version, or None if there is none yet.

        One that cannot be read is an error: to go back further on one's own could do a batch twice.
        """
        versions = self.versions()
        return self.load(versions[-1]) if versions else None

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
        nobody names it: a task that lost its race may be writing it right now. Nothing is removed while the
        manifest of a kept version cannot be read.
        """
        if keep_versions < 1 or grace_versions < 1:
            raise ValueError(f"at least one version must be kept: {keep_versions}, {grace_versions}")
        versions = self.versions()
        if not versions:
            return []
        kept = versions[-keep_versions:]
        named = {entry.file for version in kept for entry in self.load(version).files}
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
            match = _DATA_NAME.fullmatch(final_name(name))
            if match is not None and name not in named and int(match[1]) < oldest_spared:
                self._data.remove(name)
                removed.append(name)
        return removed

    def _checked(self, manifest: Manifest, entry: FileEntry) -> pa.Buffer:
        where = f"{entry.file} of version {manifest.version} in '{self.root}'"
        hint = "restore it from a copy, or remove that version's manifest to go back to the one before it"
        try:
            data = self._data.read(entry.file)
        except FileNotFoundError:
            raise StateError("checkpoint file is missing", where, hint) from None
        if len(data) != entry.bytes:
            detail = f"{where} has {len(data)} bytes, written were {entry.bytes}"
            raise StateError("damaged checkpoint file", detail, hint)
        found = checksum(data)
        if found != entry.checksum:
            detail = f"{where} has checksum {found}, written was {entry.checksum}"
            raise StateError("damaged checkpoint file", detail, hint)
        return data  # type: ignore[no-any-return]


def _word(run_id: str) -> str:
    if not re.fullmatch(r"\w+", run_id):
        raise ValueError(f"a run's id must be letters and digits, got {run_id!r}")
    return run_id
