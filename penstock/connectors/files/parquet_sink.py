"""Results in a folder of Parquet files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.connectors.files.parquet_batches import GROUP_ROWS, PATTERNS, ParquetBatches
from penstock.connectors.files.paths import prepare_folder
from penstock.connectors.files.target_lock import TargetLock
from penstock.connectors.writer import BatchWriter, NodeSink, Resumed, Writer
from penstock.memory.arrow import arrow_schema
from penstock.query.errors import QueryError
from penstock.query.types import Schema


class Parquet(NodeSink):
    """Writes ``part-00000.parquet``, ``part-00001.parquet`` … into the folder ``path``.

    A file holds ``rows_per_file`` rows and has a hidden name until it is whole; the last one is finished when
    the run ends. Without any row there is one empty file, so that the folder can be read.

    On Spark every batch that has rows makes one file, ``batch-000000000007.parquet``, however few they are:
    ``rows_per_file`` plays no part, and nothing is compacted. The folder is one on the driver's machine. The
    checkpoint knows the names, sizes and checksums of all of them: a run that goes on refuses a folder in
    which one is missing or another. ``overwrite`` is for new runs only.
    """

    def __init__(self, path: str | Path, *, rows_per_file: int = 10_000_000, overwrite: bool = False) -> None:
        if rows_per_file < 1:
            raise QueryError("rows_per_file must be positive", detail=f"Parquet got {rows_per_file}")
        self._path, self._rows_per_file, self._overwrite = Path(path), rows_per_file, overwrite

    @property
    def guarantee(self) -> str:
        return (
            "files are whole or not there; a crash loses the rows of the unfinished file, "
            "and a new run starts from the beginning"
        )

    @property
    def target(self) -> Path:
        return self._path

    @property
    def batch_guarantee(self) -> str:
        return "exactly once: a file per batch, whole or not there, and replaced if the batch comes again"

    def open(self, schema: Schema) -> Writer:
        lock = TargetLock(self._path)
        try:
            prepare_folder(self._path, PATTERNS, self._overwrite)
            lock.take()
        except BaseException:
            lock.free()
            raise
        return _ParquetWriter(self._path, arrow_schema(schema), self._rows_per_file, lock)

    def open_batches(self, schema: Schema, resumed: Resumed | None) -> BatchWriter:
        return ParquetBatches(self._path, arrow_schema(schema), self._overwrite, resumed)


class _ParquetWriter(Writer):
    def __init__(self, folder: Path, schema: pa.Schema, rows_per_file: int, lock: TargetLock) -> None:
        self._folder, self._schema, self._rows_per_file, self._lock = folder, schema, rows_per_file, lock
        self._file: pq.ParquetWriter | None = None
        self._files = 0
        self._rows_left = rows_per_file  # that the current file still takes, collected ones counted as taken
        self._collected: list[pa.RecordBatch] = []
        self._collected_rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        position = 0
        while position < batch.num_rows:
            part = batch.slice(position, min(self._rows_left, GROUP_ROWS - self._collected_rows))
            position += part.num_rows
            self._collected.append(part)
            self._collected_rows += part.num_rows
            self._rows_left -= part.num_rows
            if self._collected_rows == GROUP_ROWS or not self._rows_left:
                self._write_group()
            if not self._rows_left:
                self._finish_file()

    def close(self, complete: bool) -> None:
        if self._collected_rows or self._files == 0 or self._file is not None:
            self._write_group()
            self._finish_file()
        self._lock.free()

    @property
    def _names(self) -> tuple[Path, Path]:
        name = f"part-{self._files:05}.parquet"
        return self._folder / f".{name}.tmp", self._folder / name

    def _write_group(self) -> None:
        if self._file is None:
            self._file = pq.ParquetWriter(self._names[0], self._schema)
        if self._collected_rows:
            self._file.write_table(pa.Table.from_batches(self._collected, self._schema))
        self._collected, self._collected_rows = [], 0

    def _finish_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            hidden, visible = self._names
            hidden.rename(visible)
            self._files += 1
        self._rows_left = self._rows_per_file
