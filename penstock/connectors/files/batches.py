"""What sinks of files share: one writer for runs that are one batch, on a node, and for batch by batch.

What has counted is in the manifest. What a batch adds beyond it is taken back when its number comes again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa

from penstock.connectors.deliveries import taken_up
from penstock.connectors.delivery import Delivery
from penstock.connectors.files.target_lock import TargetLock
from penstock.connectors.writer import BatchWriter, Resumed, Writer

D = TypeVar("D", bound=Delivery)


class FileBatches(BatchWriter, Generic[D]):
    """A file or folder whose content is what was delivered; ``new`` is that of an output that begins."""

    side_by_side = True

    def __init__(self, new: D, overwrite: bool, resumed: Resumed | None) -> None:
        self._path, self._overwrite = Path(new.path), overwrite
        self._batch = 0 if resumed is None else resumed.batch
        self._lock = TargetLock(self._path)
        try:
            delivery = taken_up(resumed, new)
            if delivery is None or (delivery.is_empty and not self._is_ours()):
                self._check_place()
                delivery = None
        except BaseException:
            self._lock.free()
            raise
        self._is_new = delivery is None
        # What has counted, and what is there with the newest batch, which may come again.
        self._counted = self._present = delivery or new
        self._newest = -1

    def write_batch(self, batch_id: int, rows: pa.Table) -> None:
        if batch_id > self._newest:
            self._newest, self._counted = batch_id, self._present
        self._present = self._replaced(batch_id, rows)

    def delivered(self) -> Mapping[str, Any]:
        return self._present.plain()

    def close(self, complete: bool) -> None:
        self._lock.free()

    @abstractmethod
    def write(self, rows: pa.RecordBatch) -> None:
        """Adds rows to the one batch of a run; nobody waits until they are on disk."""

    @abstractmethod
    def _replaced(self, batch_id: int, rows: pa.Table) -> D:
        """Makes these rows what follows on that which has counted, and waits until they are on disk."""

    @abstractmethod
    def _is_ours(self) -> bool:
        """Whether what is there can be of a first batch that did not count."""

    @abstractmethod
    def _check_place(self) -> None:
        """Raises unless an output may begin here."""


class WholeRun(Writer):
    """A run on a node, as one batch whose rows are written as they come."""

    def __init__(self, files: FileBatches[Any]) -> None:
        self._files = files
        try:
            files.begin()
        except BaseException:
            files.close(False)
            raise

    def write(self, batch: pa.RecordBatch) -> None:
        self._files.write(batch)

    def close(self, complete: bool) -> None:
        try:
            self._files.end(0)
        finally:
            self._files.close(complete)
