"""What a sink has put into a folder of files, one per batch: how many, and their sums."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import xxhash

from penstock.connectors.delivery import Delivery
from penstock.connectors.files.durable import hidden, sync
from penstock.connectors.files.sums import FileSums

_NAMED = 5  # files that an error names
_ENDING = ".parquet"  # unless a manifest says another


@dataclass(frozen=True)
class FolderDelivery(Delivery):
    """The files of all batches that had rows. It takes the same room for any number of them."""

    files: int = 0
    bytes: int = 0
    last: int = -1  # the number of the newest
    names: FileSums = field(default_factory=FileSums)  # of numbers and sizes
    contents: FileSums = field(default_factory=FileSums)  # of numbers, sizes and checksums
    ending: str = _ENDING  # of the files' names

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> FolderDelivery:
        names, contents = (FileSums((*values[name],)) for name in ("names", "contents"))
        return cls(**{**values, "names": names, "contents": contents})

    @property
    def is_empty(self) -> bool:
        return not self.files

    @property
    def amount(self) -> str:
        return f"{self.files:,} file{'s' * (self.files != 1)}"

    def plain(self) -> dict[str, Any]:
        sums = {"names": list(self.names.powers), "contents": list(self.contents.powers)}
        plain = {**vars(self), **sums}
        if self.ending == _ENDING:
            del plain["ending"]
        return plain

    @property
    def pattern(self) -> str:
        """What the names of all batches' files match."""
        return f"batch-{'[0-9]' * 12}{self.ending}"

    def file_name(self, number: int) -> str:
        """The name of a batch's file."""
        return f"batch-{number:012}{self.ending}"

    def with_file(self, number: int) -> FolderDelivery:
        """After the file of one more batch was written."""
        size, checksum = _read(Path(self.path, self.file_name(number)))
        return replace(
            self,
            files=self.files + 1,
            bytes=self.bytes + size,
            last=number,
            names=self.names.plus(number, size),
            contents=self.contents.plus(number, (size, checksum)),
        )

    def check(self, batch: int) -> str | None:
        if not self.is_empty and not os.path.isdir(self.path):
            return f"it is no folder, and {self.amount} had been delivered into it"
        sizes = self._sizes(batch)
        sums = FileSums.of(sizes.items())
        if (sums, len(sizes)) == (self.names, self.files):
            return None
        return self._difference(sizes, sums)

    def verify(self, batch: int) -> str | None:
        wrong = self.check(batch)
        if wrong is not None or self.is_empty:
            return wrong
        numbers = self._sizes(batch)
        sums = FileSums.of((number, _read(Path(self.path, self.file_name(number)))) for number in numbers)
        if sums == self.contents:
            return None
        odd = self.contents.odd_one(sums)
        changed = "more than one file" if odd is None else self.file_name(odd)
        return f"{changed} was changed: it has another checksum than what was delivered"

    def roll_back(self, batch: int) -> None:
        folder = Path(self.path)
        if folder.is_dir():
            beyond = [file for file in self._files() if self._number(file) >= batch]
            for file in [*beyond, *folder.glob(hidden(folder / self.pattern).name)]:
                file.unlink()
            sync(folder)

    def beyond(self, batch: int) -> list[int]:
        """The numbers of files that have not counted."""
        return sorted(number for file in self._files() if (number := self._number(file)) >= batch)

    def _files(self) -> list[Path]:
        folder = Path(self.path)
        return list(folder.glob(self.pattern)) if folder.is_dir() else []

    def _sizes(self, batch: int) -> dict[int, int]:
        """By number, the sizes of the files that can have counted."""
        files = ((self._number(file), file) for file in self._files())
        return {number: file.stat().st_size for number, file in files if number < batch}

    def _difference(self, sizes: Mapping[int, int], sums: FileSums) -> str:
        missing = self.files - len(sizes)
        odd = self.names.odd_one(sums)
        if odd is not None and missing == (odd not in sizes) and odd <= self.last:
            if missing:
                return f"{self.file_name(odd)} is missing"
            return f"{self.file_name(odd)} has {sizes[odd]:,} bytes, which is not what was delivered"
        if odd is not None and odd in sizes and missing == -1:
            return f"{self.file_name(odd)} was not delivered by this checkpoint's runs"
        if self.files == self.last + 1:  # every batch had rows, so every gap is a loss
            gaps = [number for number in range(self.last + 1) if number not in sizes]
            if gaps:
                return f"{len(gaps):,} of {self.amount} are missing: {self._listed(gaps)}"
        if missing > 0:
            return f"{missing:,} of {self.amount} are missing, which ended with {self.file_name(self.last)}"
        if missing < 0:
            return f"{-missing:,} files are there that were not delivered by this checkpoint's runs"
        return f"of {self.amount} more than one has another name or size than what was delivered"

    def _listed(self, numbers: Sequence[int]) -> str:
        shown = ", ".join(map(self.file_name, numbers[:_NAMED]))
        return shown if len(numbers) <= _NAMED else f"{shown}, …"

    def _number(self, file: Path) -> int:
        return int(file.name.removeprefix("batch-").removesuffix(self.ending))


def _read(file: Path) -> tuple[int, str]:
    """Its size and the checksum of its bytes."""
    with pa.memory_map(str(file)) as mapped:
        data = mapped.read_buffer()
        return data.size, xxhash.xxh3_64_hexdigest(data)
