"""What is too large to pass through Java: written to files beside the state; only the places are sent.

Java would hold results several times, and all of a batch at once. Nobody needs these files after the batch or
after a crash, so they are not synced: the driver removes them when the batch counts, or when it starts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from penstock.state.files import Folder

#: What a task holds of results before it writes the largest of them out.
HELD_BYTES = 32 << 20
#: What a task sends through Java at most, beside its report.
SENT_BYTES = 1 << 20
#: Results of one query that are not worth a file of their own.
LEAST_BYTES = 256 << 10
_ALIGNMENT = 64  # of Arrow's buffers


@dataclass(frozen=True)
class Place:
    """Where a payload stands that is not in its message."""

    folder: str
    file: str
    start: int
    length: int

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Place:
        return cls(**json.loads(data))

    def read(self) -> Any:
        """The payload as a buffer; of a local file it is mapped, not copied, and stays when the file goes."""
        return Folder(self.folder).read(self.file).slice(self.start, self.length)


class ResultFiles:
    """The files that one task writes, in a folder that the driver can read too; None: all is sent."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._held = 0

    def begin(self) -> None:
        """Nothing is held."""
        self._held = 0

    def hold(self, size: int, mine: int) -> bool:
        """Notes that so much more is held; whether who holds ``mine`` is to write it out now."""
        self._held += size
        if self._folder is None or self._held < HELD_BYTES or mine < min(LEAST_BYTES, HELD_BYTES):
            return False
        self._held -= mine
        return True

    def write(self, payloads: Sequence[Any]) -> list[Place]:
        """Writes payloads into one file."""
        assert self._folder is not None
        name, start = f"{uuid4().hex}.rows", 0
        places: list[Place] = []
        parts: list[Any] = []
        for payload in payloads:
            places.append(Place(self._folder, name, start, len(payload)))
            gap = -len(payload) % _ALIGNMENT
            start += len(payload) + gap
            parts += [payload, bytes(gap)]
        Folder(self._folder).write_fleeting(name, parts)
        return places

    def settled(self, payloads: Sequence[Any]) -> list[Any]:
        """The payloads as they are to be sent: themselves, or their places if they are large together."""
        small = [payload for payload in payloads if not isinstance(payload, Place)]
        if self._folder is None or sum(map(len, small)) <= SENT_BYTES:
            return list(payloads)
        written = iter(self.write(small))
        return [payload if isinstance(payload, Place) else next(written) for payload in payloads]


def opened(payload: Any) -> Any:
    """A payload, wherever it stands."""
    return payload.read() if isinstance(payload, Place) else payload


def stand_elsewhere(tags: pa.ChunkedArray[Any]) -> bool:
    """Whether any of these messages has its payload in a file."""
    least: Any = pc.min(tags).as_py()
    return least is not None and least < 0


def remove_all(folder: str) -> None:
    """Removes the files: of the batch that counts now, of tasks that came to nothing, of a killed run."""
    root = Folder(folder)
    for name in root.names():
        root.remove(name)
