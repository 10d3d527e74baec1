"""The manifest: one small JSON file that says which files a version of the state is made of.

A version exists if and only if its manifest does. The text is one JSON object with the manifest and the
checksum of its text, so that a damaged one is told from one that was written so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import xxhash

from penstock.state.errors import GO_BACK, StateError

#: Of manifests and of the files that they name. Readers refuse what is newer.
FORMAT = 4

# What stands around the checksum and the manifest. Together it is JSON, but it is checked as it stands.
_HEAD, _MIDDLE, _TAIL = b'{"checksum": "', b'",\n"manifest": ', b"}\n"


@dataclass(frozen=True)
class FileLink:
    """An older file that a delta builds on."""

    file: str
    bytes: int
    checksum: str


@dataclass(frozen=True)
class FileEntry:
    """One file of state, as the task that wrote it tells the driver, and older files that it builds on."""

    task: int
    file: str  # its name in the store
    rows: int  # of the state, of which a delta holds only some
    bytes: int  # of this file alone
    checksum: str
    partitions: tuple[int, ...]  # virtual partitions that the state has rows of
    chain: tuple[FileLink, ...] = ()  # a snapshot and deltas, in order; a snapshot has none

    @property
    def link(self) -> FileLink:
        return FileLink(self.file, self.bytes, self.checksum)

    @property
    def links(self) -> tuple[FileLink, ...]:
        """All files that must be read, in order: the chain and this one."""
        return (*self.chain, self.link)

    @property
    def chain_bytes(self) -> int:
        """What all files that must be read hold together."""
        return sum(link.bytes for link in self.links)

    def to_json(self) -> str:
        return json.dumps(self.plain())

    def plain(self) -> dict[str, Any]:
        """As JSON has it; ``of`` is the way back."""
        chain = [[link.file, link.bytes, link.checksum] for link in self.chain]
        return {**vars(self), "partitions": list(self.partitions), "chain": chain}

    @classmethod
    def from_json(cls, text: str) -> FileEntry:
        return cls.of(json.loads(text))

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> FileEntry:
        chain = tuple(FileLink(*link) for link in values["chain"])
        return cls(**{**values, "partitions": tuple(values["partitions"]), "chain": chain})


@dataclass(frozen=True)
class Manifest:
    """All that a run needs to go on from a version."""

    version: int  # goes up by one with every commit, whatever it is for
    run_id: str  # of the driver that committed it
    virtual_partitions: int
    #: The operators of the graph: id → a text that changes when what the operator computes changes.
    operators: Mapping[str, str] = field(default_factory=dict)
    #: How far the run had come: watermarks, source positions, whatever the driver must know. Plain JSON.
    progress: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[FileEntry, ...] = ()
    #: How many batches have counted, and so the number of the next one.
    batches: int = 0
    #: Goes up by one at each start: of two runs in one checkpoint, the one with the higher number goes on.
    fence: int = 0
    #: The process that committed it, for people: its id, its machine and its start.
    process: str = ""
    #: The texts from which Spark's logs are made anew, by their names below its folder.
    logs: Mapping[str, str] = field(default_factory=dict)
    #: What sinks have delivered. Plain JSON, which only they understand.
    deliveries: Mapping[str, Any] = field(default_factory=dict)
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

    @property
    def file_names(self) -> set[str]:
        """All files that the version needs, those that deltas build on too."""
        return {link.file for entry in self.files for link in entry.links}

    def taken_over(self, run_id: str, process: str) -> Manifest:
        """What a start commits first: all as it was, with a fence higher than that of any run before."""
        return replace(
            self,
            version=self.version + 1,
            fence=self.fence + 1,
            run_id=run_id,
            process=process,
            format=FORMAT,
        )

    def to_bytes(self) -> bytes:
        plain = dict(vars(self))
        for name in ("operators", "progress", "logs", "deliveries"):
            plain[name] = dict(plain[name])
        plain["files"] = [entry.plain() for entry in self.files]
        body = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
        return b"".join((_HEAD, checksum(body).encode(), _MIDDLE, body, _TAIL))

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Manifest:
        """Reads one; ``where`` is named in the errors."""
        try:
            head, middle, text = data.partition(_MIDDLE)
            if not (head.startswith(_HEAD) and middle and text.endswith(_TAIL)):
                raise ValueError("it is not whole")
            text, written = text.removesuffix(_TAIL), head.removeprefix(_HEAD).decode(errors="replace")
            found = checksum(text)
            if found != written:
                raise ValueError(f"its checksum is {found}, written was {written}")
            body = json.loads(text)
        except ValueError as error:
            raise StateError(
                "unreadable checkpoint",
                f"manifest {where}: {error}",
                f"it was damaged after it was written: {GO_BACK}",
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
