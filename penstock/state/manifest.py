"""The manifest: one small JSON file that says which files a version of the state is made of.

A version exists if and only if its manifest does. The text is one JSON object with the manifest and the
checksum of its canonical form, so that a damaged one is told from one that was written so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import xxhash

from penstock.state.errors import StateError

#: Of manifests and of the files that they name. Readers refuse what is newer.
FORMAT = 1


@dataclass(frozen=True)
class FileEntry:
    """One file of state, as the task that wrote it tells the driver."""

    task: int
    file: str  # its name in the store
    rows: int
    bytes: int
    checksum: str
    partitions: tuple[int, ...]  # virtual partitions that have rows in it

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> FileEntry:
        return cls.of(json.loads(text))

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> FileEntry:
        return cls(**{**values, "partitions": tuple(values["partitions"])})


@dataclass(frozen=True)
class Manifest:
    """All that a run needs to go on from a version."""

    version: int
    run_id: str  # of the driver that committed it
    virtual_partitions: int
    #: The operators of the graph: id → a text that changes when what the operator computes changes.
    operators: Mapping[str, str] = field(default_factory=dict)
    #: How far the run had come: watermarks, source positions, whatever the driver must know. Plain JSON.
    progress: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[FileEntry, ...] = ()
    format: int = FORMAT

    def __post_init__(self) -> None:
        tasks = Counter(entry.task for entry in self.files)
        twice = [task for task, count in tasks.items() if count > 1]
        if twice:
            raise StateError(
                "a version cannot have two files of one task",
                f"version {self.version} has several of task {twice[0]}",
                "commit the entry of one attempt, the one whose output was taken",
            )

    def to_bytes(self) -> bytes:
        body = _canonical({**asdict(self), "files": [asdict(entry) for entry in self.files]})
        return f'{{"checksum": "{checksum(body.encode())}",\n"manifest": {body}}}\n'.encode()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Manifest:
        """Reads one; ``where`` is named in the errors."""
        try:
            outer = json.loads(data)
            body = outer["manifest"]
            found = checksum(_canonical(body).encode())
            if found != outer["checksum"]:
                raise ValueError(f"its checksum is {found}, written was {outer['checksum']}")
        except (ValueError, KeyError, TypeError) as error:
            raise StateError(
                "unreadable checkpoint",
                f"manifest {where}: {error}",
                "it was damaged after it was written: restore it from a copy, or remove it to go back to the "
                "version before it",
            ) from None
        if body.get("format") != FORMAT:
            raise unknown_format(body.get("format"), f"manifest {where}")
        files = tuple(FileEntry.of(entry) for entry in body["files"])
        return cls(**{**body, "files": files})

    def missing(self, operators: Mapping[str, str]) -> dict[str, str]:
        """Operators of a graph that cannot take their state from here, and why; all others match."""
        return {
            name: "it is new" if name not in self.operators else "it computes something else now"
            for name, computes in operators.items()
            if self.operators.get(name) != computes
        }

    def left_behind(self, operators: Iterable[str]) -> list[str]:
        """Operators that a graph no longer has: nobody would take their state."""
        kept = set(operators)
        return [name for name in self.operators if name not in kept]


def checksum(data: Any) -> str:
    """Of bytes or of anything that shows its bytes; finds damage, not malice. About 10 GB a second."""
    return "xxh3:" + xxhash.xxh3_64_hexdigest(data)


def unknown_format(found: object, what: str) -> StateError:
    return StateError(
        "unknown checkpoint format",
        f"{what} has format {found!r}, this version of Penstock reads {FORMAT}",
        "run the version that wrote it, or start from an empty checkpoint",
    )


def _canonical(body: Mapping[str, Any]) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
