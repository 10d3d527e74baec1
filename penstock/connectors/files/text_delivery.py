"""What a sink has put into one file of text: its length, and the checksum of all its bytes."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from penstock.connectors.delivery import Delivery
from penstock.connectors.files.durable import LogFile

_Bytes: TypeAlias = bytes  # the delivery has a field of that name
_END = 4096  # bytes, by which a file is known without reading all of it
_PIECE = 1 << 20  # bytes that are read at a time


@dataclass(frozen=True)
class TextDelivery(Delivery):
    """The first ``bytes`` of a file."""

    bytes: int = 0
    crc32: int = 0  # of all of them: it can be continued without reading them again
    end_crc32: int = 0  # of the last few thousand
    end: _Bytes | None = field(default=None, compare=False, repr=False)  # those; None: only the file has them

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> TextDelivery:
        return cls(**values)

    @property
    def is_empty(self) -> bool:
        return not self.bytes

    @property
    def amount(self) -> str:
        return f"{self.bytes:,} bytes"

    def plain(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "end"}

    def plus(self, data: _Bytes) -> TextDelivery:
        """After ``data`` was appended to the file."""
        before = _end(self) if self.end is None else self.end
        end = (before + data[-_END:])[-_END:]
        count, crc32 = self.bytes + len(data), zlib.crc32(data, self.crc32)
        return replace(self, bytes=count, crc32=crc32, end_crc32=zlib.crc32(end), end=end)

    def check(self, batch: int) -> str | None:
        path = Path(self.path)
        if self.is_empty:
            return None
        if not path.is_file():
            found = "is a folder" if path.is_dir() else "is not there"
            return f"it {found}, and {self.amount} of it had been delivered"
        size = path.stat().st_size
        if size < self.bytes:
            return f"it has {size:,} bytes, and {self.amount} had been delivered"
        if zlib.crc32(_end(self)) != self.end_crc32:
            return (
                f"it is another file or was changed: what stands before byte {self.bytes:,} is not what was "
                "delivered"
            )
        return None

    def verify(self, batch: int) -> str | None:
        wrong = self.check(batch)
        if wrong is None and not self.is_empty and self._read() != self.crc32:
            return f"it was changed: the {self.amount} that were delivered have another checksum now"
        return wrong

    def roll_back(self, batch: int) -> None:
        if os.path.exists(self.path):
            file = LogFile(Path(self.path))
            file.cut(self.bytes)
            file.close()

    def _read(self) -> int:
        crc32, left = 0, self.bytes
        with Path(self.path).open("rb") as file:
            while left and (piece := file.read(min(left, _PIECE))):
                crc32, left = zlib.crc32(piece, crc32), left - len(piece)
        return crc32


def _end(delivery: TextDelivery) -> bytes:
    """The last few thousand bytes of what was delivered, as the file has them."""
    if delivery.is_empty:
        return b""
    with Path(delivery.path).open("rb") as file:
        file.seek(max(delivery.bytes - _END, 0))
        return file.read(min(delivery.bytes, _END))
