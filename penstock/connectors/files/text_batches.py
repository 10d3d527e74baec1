"""One file of text that takes every batch once: how far it had come after each is in the manifest.

A batch is appended, and counts when the manifest has the new length. If the run fails in between, the file is
first cut back to where the batch began.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.deliveries import taken_up
from penstock.connectors.files.durable import LogFile
from penstock.connectors.files.paths import absolute, check_file, make_folder
from penstock.connectors.files.target_lock import TargetLock
from penstock.connectors.files.text_delivery import Grown, TextDelivery
from penstock.connectors.files.text_sink import TextFormat
from penstock.connectors.writer import BatchWriter, Resumed
from penstock.query.errors import RunError

EXACTLY_ONCE = (
    "exactly once: the checkpoint has the file's length and checksum after every batch, and rows that did "
    "not count are cut off; while a run is down, the file may end in rows of the batch in which it failed"
)


class TextFileBatches(BatchWriter):
    """Appends batches to a file, each with one write to disk."""

    side_by_side = True

    def __init__(
        self, path: Path, kind: str, text: TextFormat, overwrite: bool, resumed: Resumed | None
    ) -> None:
        self._path, self._text = absolute(path), text
        new = TextDelivery(kind, str(self._path))
        self._file: LogFile | None = None
        self._lock = TargetLock(self._path)
        try:
            delivery = taken_up(resumed, new)
            if delivery is None or (delivery.is_empty and not self._is_ours()):
                check_file(self._path, overwrite)
                delivery = None
        except BaseException:
            self._lock.free()
            raise
        # What has counted, and what is there with the newest batch, which may come again.
        self._counted = self._present = Grown.of(delivery or new)
        self._newest = -1

    def begin(self) -> None:
        make_folder(self._path.parent)
        self._file = LogFile(self._path)
        self._lock.take()
        # The header comes with the first batch: until then the file is empty, so that a run whose checkpoint
        # does not know it yet can be started anew.
        self._file.cut(self._present.delivery.bytes)

    def write_batch(self, batch_id: int, rows: pa.Table) -> None:
        if batch_id > self._newest:
            self._newest, self._counted = batch_id, self._present
        lines = [self._text.lines(batch) for batch in rows.to_batches()]
        self._append(b"".join([b"" if self._counted.delivery.bytes else self._text.header, *lines]))

    def end(self, batch_id: int) -> None:
        if self._present.delivery.is_empty:
            self._append(self._text.header)

    def delivered(self) -> Mapping[str, Any]:
        return self._present.delivery.plain()

    def close(self, complete: bool) -> None:
        if self._file is not None:
            self._file.close()
        self._lock.free()

    def _append(self, data: bytes) -> None:
        """Makes ``data`` what follows on that which has counted."""
        assert self._file is not None
        if not self._file.is_at(self._path):
            raise RunError(f"'{self._path}' was removed or replaced while the run writes it")
        self._file.cut(self._counted.delivery.bytes)
        self._file.append(data)
        self._present = self._counted.plus(data)

    def _is_ours(self) -> bool:
        """Whether what is there can be of a first batch that did not count."""
        if not self._path.is_file():
            return not self._path.exists()
        beginning = self._text.beginning
        with self._path.open("rb") as file:
            found = file.read(len(beginning))
        return beginning.startswith(found)
