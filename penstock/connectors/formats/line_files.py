"""Files of lines, read a chunk of lines at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.formats.lines import LineBuffer
from penstock.memory.arrow import schema_from_arrow
from penstock.query.errors import QueryError, RunError
from penstock.query.types import Schema

_CHUNK_BYTES = 1 << 19
_SAMPLE_BYTES = 1 << 14
#: Files of lines only; the others compress inside.
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_INFLATED = 5  # times as large, about, as a compressed file of text
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: Of the file that this process reads: how many lines end before a place.
_counted: dict[Path, tuple[int, int]] = {}


def inferred(path: Path, read: Callable[[bytes], pa.Table]) -> Schema:
    """The schema that the beginning of the file suggests; columns without a value there are strings."""
    sample = b"".join(islice(chunks(path), 2))
    try:
        table = read(sample)
    except pa.ArrowInvalid as error:
        raise QueryError(
            f"cannot tell the columns of '{path}'",
            detail=str(error),
            hint="give schema={'ts': 'timestamp', ...}",
        ) from None
    fields = [
        pa.field(field.name, pa.string()) if pa.types.is_null(field.type) else field for field in table.schema
    ]
    return schema_from_arrow(
        pa.schema(fields), [name for name in table.column_names if table.column(name).null_count]
    )


def bytes_per_line(path: Path) -> float:
    """About how long a line of a file is, by those at its beginning; in a compressed file, a guess."""
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            sample: bytes = stream.read(_SAMPLE_BYTES)
    except OSError as error:
        raise RunError(f"cannot read file '{path}': {error}") from error
    lines = sample.count(b"\n")
    length = (sample.rfind(b"\n") + 1) / lines if lines else max(1, len(sample))
    return length / _INFLATED if path.suffix in COMPRESSED else length


def line_end(path: Path, place: int) -> int | None:
    """Where the line ends that goes on at ``place``, or that has just ended there; None in a compressed
    file: nobody can look into its middle."""
    if path.suffix in COMPRESSED:
        return None
    try:
        with path.open("rb") as file:
            file.seek(place - 1)
            while data := file.read(_SAMPLE_BYTES):
                found = data.find(b"\n")
                if found >= 0:
                    return file.tell() - len(data) + found + 1
            return file.tell()
    except OSError as error:
        raise RunError(f"cannot read file '{path}': {error}") from error


def lines_before(path: Path, place: int) -> int:
    """How many lines end before ``place``. Counted once per process, as far as that has come."""
    known = _counted.get(path, (0, 0))
    begin, lines = known if known[0] <= place else (0, 0)
    if begin < place:
        try:
            with path.open("rb") as file:
                file.seek(begin)
                while begin < place and (data := file.read(min(_CHUNK_BYTES, place - begin))):
                    lines += data.count(b"\n")
                    begin += len(data)
        except OSError as error:
            raise RunError(f"cannot read file '{path}': {error}") from error
        _counted.clear()  # files are read one after the other
        _counted[path] = (begin, lines)
    return lines


def chunks(path: Path, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
    """Whole lines, each ended by a newline, the last one too. Decompresses by the name's ending; then there
    are no parts, and ``stop`` is the end of the file."""
    buffer = LineBuffer()
    at_start = start == 0
    left = 1 << 62 if stop is None or path.suffix in COMPRESSED else stop - start
    try:
        with _stream(path, start) as stream:
            while data := stream.read(min(_CHUNK_BYTES, left)):
                left -= len(data)
                if at_start:
                    data, at_start = data.removeprefix(_BYTE_ORDER_MARK), False
                buffer.feed(data)
                if buffer.lines:
                    yield buffer.take()
    except OSError as error:
        raise RunError(f"cannot read file '{path}': {error}") from error
    if rest := buffer.end():
        yield rest + b"\n"


def _stream(path: Path, start: int) -> Any:
    if start == 0:
        return pa.input_stream(str(path), compression="detect", buffer_size=_CHUNK_BYTES)
    file = path.open("rb")
    file.seek(start)
    return file
