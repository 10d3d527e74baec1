"""The files that are read: the same events in every format, and with a bad record in a thousand."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from penstock.memory.arrow import ArrowArray

#: The columns as the source, and with other names of types the peers, are told them.
COLUMNS = {
    "ts": "timestamp",
    "user": "int64",
    "page": "string",
    "kind": "string",
    "amount": "float64",
    "note": "string",
}
#: As far as an event may lie behind the latest one.
LATENESS_US = 500_000
#: One record of so many is bad, where some are.
BAD_EVERY = 1_000
_ROWS = 1 << 18  # made at a time, and a row group of Parquet
_START_US = 1_760_000_000_000_000
_SPACING_US = 1_000


class FileKind(Enum):
    """What is measured: a format, and how its fields are written."""

    PARQUET = "parquet"
    CSV = "csv"
    QUOTED = "csv_quoted"
    JSON = "jsonl"

    @property
    def ending(self) -> str:
        return "csv" if self in (FileKind.CSV, FileKind.QUOTED) else self.value


@dataclass(frozen=True)
class MeasuredInput:
    """A file, and how many events and bad records it holds."""

    kind: FileKind
    path: Path
    events: int
    bad: int = 0


def write(kind: FileKind, folder: Path, events: int, *, bad: bool = False) -> MeasuredInput:
    """Writes a file of so many records; with ``bad`` one of ``BAD_EVERY`` lines is no event."""
    path = folder / f"{kind.value}{'_bad' if bad else ''}.{kind.ending}"
    if kind is FileKind.PARQUET:
        _write_parquet(path, events)
        return MeasuredInput(kind, path, events)
    with path.open("wb") as file:
        if kind is not FileKind.JSON:
            file.write(",".join(COLUMNS).encode() + b"\n")
        for start in range(0, events, _ROWS):
            table = _table(start, min(_ROWS, events - start), quoted=kind is FileKind.QUOTED)
            lines = _json(table) if kind is FileKind.JSON else _csv(table)
            file.write(_with_bad(lines) if bad else lines)
    wrong = sum(
        len(range(_FIRST_BAD, min(_ROWS, events - start), BAD_EVERY)) for start in range(0, events, _ROWS)
    )
    return MeasuredInput(kind, path, events - wrong, wrong) if bad else MeasuredInput(kind, path, events)


_FIRST_BAD = BAD_EVERY // 2


def _table(start: int, rows: int, *, quoted: bool = False) -> pa.Table:
    random = np.random.default_rng(start)
    times = _START_US + _SPACING_US * np.arange(start, start + rows) - random.integers(0, LATENESS_US, rows)
    pages: ArrowArray = pa.array([f"page-{number:03}" for number in range(100)])
    kinds: ArrowArray = pa.array(["view", "click", "purchase"])
    comma = "," if quoted else ""
    notes: ArrowArray = pa.array(
        [f"note {number:03} on this event{comma} of a usual length" for number in range(1_000)]
    )
    users: ArrowArray = pa.array(random.integers(0, 10_000, rows))
    amounts: ArrowArray = pa.array(random.integers(0, 10_000, rows) / 100)
    columns: list[ArrowArray] = [
        pa.array(times).cast(pa.timestamp("us")),
        users,
        pages.take(pa.array(random.integers(0, len(pages), rows))),
        kinds.take(pa.array(random.integers(0, len(kinds), rows))),
        amounts,
        notes.take(pa.array(random.integers(0, len(notes), rows))),
    ]
    return pa.table(columns, names=list(COLUMNS))


def _write_parquet(path: Path, events: int) -> None:
    with pq.ParquetWriter(path, _table(0, 0).schema) as file:
        for start in range(0, events, _ROWS):
            file.write_table(_table(start, min(_ROWS, events - start)))


def _texts(table: pa.Table) -> pa.Table:
    times: ArrowArray = pc.strftime(table["ts"], format="%Y-%m-%dT%H:%M:%S")
    return table.set_column(0, "ts", times)


def _csv(table: pa.Table) -> bytes:
    """Without quotes unless a text has a delimiter: then Arrow puts all texts in quotes."""
    commas = pc.any(pc.match_substring(table["note"], ",")).as_py()
    sink = pa.BufferOutputStream()
    options = pacsv.WriteOptions(include_header=False, quoting_style="needed" if commas else "none")
    pacsv.write_csv(_texts(table), sink, options)
    return sink.getvalue().to_pybytes()


def _json(table: pa.Table) -> bytes:
    parts: list[ArrowArray | str] = []
    for place, column in enumerate(_texts(table).columns):
        quote = '"' if pa.types.is_string(column.type) else ""
        parts += [
            f'{"," if place else "{"}"{table.column_names[place]}":{quote}',
            column.cast(pa.string()),
            quote,
        ]
    pieces = [pa.scalar(part) if isinstance(part, str) else part for part in parts]
    lines: ArrowArray = pc.binary_join_element_wise(*pieces, pa.scalar("}\n"), pa.scalar(""))
    return "".join(lines.to_pylist()).encode()


def _with_bad(text: bytes) -> bytes:
    """In place of every thousandth record one whose number is none, or whose line ends too early."""
    lines = text.split(b"\n")
    for number, place in enumerate(range(_FIRST_BAD, len(lines) - 1, BAD_EVERY)):
        line = lines[place]
        if number % 2:
            lines[place] = line[: len(line) // 3]
        elif line.startswith(b"{"):
            lines[place] = line.replace(b'"user":', b'"user":"many"+', 1)
        else:
            first, user, rest = line.split(b",", 2)
            lines[place] = b",".join((first, b"x" + user, rest))
    return b"\n".join(lines)
