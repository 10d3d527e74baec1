"""A folder with one Parquet file per batch: each appears whole, and a batch that comes again replaces it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.engine.sinks.base import BatchWriter
from penstock.engine.sinks.durable import hidden, replace_file, sync
from penstock.engine.sinks.paths import prepare_folder

GROUP_ROWS = 131_072  # rows of a row group

_BATCHES = "batch-" + "[0-9]" * 12 + ".parquet"

#: Names of the files that are ours, to be removed when a new run may overwrite: of node runs, and of batches.
PATTERNS = ("part-*.parquet", _BATCHES)


class ParquetBatches(BatchWriter):
    """Writes ``batch-<number>.parquet`` for every batch, with a number of 12 digits."""

    side_by_side = True

    def __init__(self, folder: Path, schema: pa.Schema, overwrite: bool, resumed_from: int | None) -> None:
        self._folder, self._schema = folder, schema
        if resumed_from is None or not self._goes_on(resumed_from):
            prepare_folder(folder, PATTERNS, overwrite)
            return
        for file in self._files():
            if _number(file) >= resumed_from:  # of a batch that did not count, and may have no rows next time
                file.unlink()
        for left in folder.glob(hidden(folder / _BATCHES).name):
            left.unlink()
        sync(folder)

    def write_batch(self, batch_id: int, rows: pa.Table) -> None:
        self._write(batch_id, rows)

    def close(self, complete: bool) -> None:
        # So that the folder can be read. A run that failed before it had a checkpoint must find it empty.
        if complete and not self._files():
            self._write(0, self._schema.empty_table())

    def _write(self, batch_id: int, rows: pa.Table) -> None:
        path = self._folder / f"batch-{batch_id:012}.parquet"
        replace_file(path, lambda file: pq.write_table(rows, file, row_group_size=GROUP_ROWS))

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob(_BATCHES))

    def _goes_on(self, resumed_from: int) -> bool:
        """Whether the files in the folder can be those of the run that goes on."""
        numbers = [_number(file) for file in self._files()] if self._folder.is_dir() else []
        if resumed_from == 0:
            return numbers == [0]
        return bool(numbers)


def _number(file: Path) -> int:
    return int(file.stem.removeprefix("batch-"))
