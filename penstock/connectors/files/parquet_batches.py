"""A folder with one Parquet file per batch: each appears whole, and a batch that comes again replaces it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.connectors.deliveries import taken_up
from penstock.connectors.files.durable import replace_file
from penstock.connectors.files.parquet_delivery import BATCHES, ParquetDelivery, batch_name
from penstock.connectors.files.paths import absolute, check_folder, make_folder, prepare_folder
from penstock.connectors.files.target_lock import TargetLock
from penstock.connectors.writer import BatchWriter, Resumed

GROUP_ROWS = 131_072  # rows of a row group

#: Names of the files that are ours, to be removed when a new run may overwrite: of node runs, and of batches.
PATTERNS = ("part-*.parquet", BATCHES)


class ParquetBatches(BatchWriter):
    """Writes ``batch-<number>.parquet`` for every batch, with a number of 12 digits."""

    side_by_side = True

    def __init__(self, folder: Path, schema: pa.Schema, overwrite: bool, resumed: Resumed | None) -> None:
        self._folder, self._schema, self._overwrite = absolute(folder), schema, overwrite
        self._batch = 0 if resumed is None else resumed.batch
        new = ParquetDelivery("parquet", str(self._folder))
        self._lock = TargetLock(self._folder)
        try:
            delivery = taken_up(resumed, new)
            # Before anything has counted, nothing but the file of the batch that failed can be ours.
            if delivery is None or (delivery.is_empty and not set(new.beyond(0)) <= {self._batch}):
                check_folder(self._folder, overwrite)
                delivery = None
        except BaseException:
            self._lock.free()
            raise
        self._is_new = delivery is None
        # What has counted, and what is there with the newest batch, which may come again.
        self._counted = self._delivery = delivery or new
        self._newest = -1

    def begin(self) -> None:
        if self._is_new:
            prepare_folder(self._folder, PATTERNS, self._overwrite)
        elif self._delivery.is_empty:
            make_folder(self._folder)
        self._lock.take()
        self._delivery.roll_back(self._batch)

    def write_batch(self, batch_id: int, rows: pa.Table) -> None:
        if batch_id > self._newest:
            self._newest, self._counted = batch_id, self._delivery
        path = self._folder / batch_name(batch_id)
        replace_file(path, lambda file: pq.write_table(rows, file, row_group_size=GROUP_ROWS))
        self._delivery = self._counted.with_file(batch_id)

    def end(self, batch_id: int) -> None:
        if self._delivery.is_empty:  # so that the folder can be read
            self.write_batch(batch_id, self._schema.empty_table())

    def delivered(self) -> Mapping[str, Any]:
        return self._delivery.plain()

    def close(self, complete: bool) -> None:
        self._lock.free()
