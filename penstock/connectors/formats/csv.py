"""Lines of delimiter-separated values."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from penstock.connectors.files.decoding import Piece
from penstock.connectors.files.parts import FilePart
from penstock.connectors.formats.line_files import chunks, inferred
from penstock.connectors.formats.line_format import LineFormat, LineText, times_as_text
from penstock.connectors.formats.lines import LineParser, Parsed, RegularLines, as_file, line_ends, without
from penstock.memory.arrow import ArrowArray
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError, RunError
from penstock.query.types import DataType, Schema


@dataclass(frozen=True)
class CsvFormat(LineFormat):
    """Fields between delimiters; in files under a header, by which columns are found."""

    name = "csv"
    endings = (".csv",)

    delimiter: str = ","
    header: bool = True

    def __post_init__(self) -> None:
        delimiter = self.delimiter
        if len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii():
            raise QueryError(
                "delimiter must be one character", detail=f"got {delimiter!r}", hint="write e.g. ';'"
            )

    @property
    def no_schema(self) -> str | None:
        return None if self.header else "a CSV file without header needs a schema"

    def infer(self, path: Path) -> Schema:
        parse = pacsv.ParseOptions(delimiter=self.delimiter, invalid_row_handler=lambda row: "skip")
        convert = pacsv.ConvertOptions(null_values=[""], strings_can_be_null=True)

        def read(sample: bytes) -> pa.Table:
            options = pacsv.ReadOptions(use_threads=False, block_size=len(sample) + 1)
            return pacsv.read_csv(as_file(sample), options, parse, convert)

        return inferred(path, read)

    def parser(self, schema: Schema, layout: Layout, strings: StringPool) -> LineParser:
        return CsvParser(schema.names, schema, layout, strings, self.delimiter)

    def text(self, schema: Schema) -> LineText:
        return CsvText(schema, self.delimiter, self.header)

    def pieces(
        self, part: FilePart, schema: Schema, layout: Layout, strings: StringPool
    ) -> Iterator[Piece[Parsed]]:
        """Every part needs the file's header."""
        if not self.header:
            yield from super().pieces(part, schema, layout, strings)
            return
        path, texts = part.path, chunks(part.path, part.start, part.stop)
        beginning = next(texts if part.start == 0 else chunks(path), b"")
        if not beginning:
            return
        line, _, rest = beginning.partition(b"\n")
        names = _header(path, line, self.delimiter)
        for name in schema.names:
            if names.count(name) != 1:
                problem = "is missing" if name not in names else "is there twice"
                raise RunError(f"column '{name}' {problem}: file '{path}' has {', '.join(names)}")
        parser = CsvParser(names, schema, layout, strings, self.delimiter)
        if part.start == 0:
            yield partial(_below_header, parser, rest)
        for chunk in texts:
            yield partial(parser.parse, chunk)


class CsvParser(LineParser):
    """``names`` are the columns of the file, in order; those that the schema lacks are left out.

    An empty field is null, except in a string column without nulls, where it is the empty string. A record is
    one line: quoted fields may hold delimiters and doubled quotes, no line ends.
    """

    def __init__(
        self, names: Sequence[str], schema: Schema, layout: Layout, strings: StringPool, delimiter: str = ","
    ) -> None:
        super().__init__(schema, layout, strings)
        self._names = list(names)
        self._places = [self._names.index(name) for name in schema.names]
        self._delimiter = delimiter
        self._convert = pacsv.ConvertOptions(
            column_types={str(place): pa.string() for place in range(len(self._names))},
            include_columns=[str(place) for place in self._places],
            check_utf8=False,  # checked before
        )

    def fast(self, chunk: bytes, lines: int) -> RegularLines | None:
        """By Arrow, which is shown no line that it might see differently: one with quotes that do not stand
        around a whole field, a carriage return in its middle, or nothing."""
        quoted = b'"' in chunk
        for simplified in (False, True):
            numbers: NDArray[np.int64] | None = None
            shown = chunk
            if simplified or quoted or b"\r" in chunk:
                numbers, shown = self._simple(chunk)
            try:
                table, wrong = self._read(shown, quoted)
            except pa.ArrowInvalid:
                return None
            count = lines if numbers is None else len(numbers)
            if table.num_rows + len(wrong) == count:  # else there are blank lines, of which it tells nothing
                if wrong:
                    numbers = np.delete(np.arange(lines) if numbers is None else numbers, wrong)
                return RegularLines(
                    self._named([column.combine_chunks() for column in table.columns]), numbers
                )
        return None

    def _simple(self, chunk: bytes) -> tuple[NDArray[np.int64] | None, bytes]:
        """The lines that Arrow sees as we do, and their numbers."""
        from penstock.connectors.formats.quotes import odd_lines  # brings a compiler

        odd = odd_lines(np.frombuffer(chunk, np.uint8), line_ends(chunk), ord(self._delimiter))
        return without(chunk, odd) if odd.any() else (None, chunk)

    def _read(self, chunk: bytes, quoted: bool) -> tuple[pa.Table, list[int]]:
        """The fields as texts, and the places of the lines that have too few or too many of them."""
        wrong: list[int] = []

        def skip(row: Any) -> Literal["skip"]:
            wrong.append(row.number - 1)
            return "skip"

        names = [str(place) for place in range(len(self._names))]
        read = pacsv.ReadOptions(use_threads=False, block_size=len(chunk) + 1, column_names=names)
        parse = pacsv.ParseOptions(
            delimiter=self._delimiter, quote_char='"' if quoted else False, invalid_row_handler=skip
        )
        return pacsv.read_csv(as_file(chunk), read, parse, self._convert), wrong

    def row(self, line: str) -> list[Any]:
        if "\r" in line:
            raise ValueError("the line has a carriage return in its middle")
        fields = split_fields(line, self._delimiter)
        if len(fields) != len(self._names):
            raise ValueError(f"the line has {len(fields)} fields, not {len(self._names)}")
        return [fields[place] for place in self._places]

    def arrays(self, columns: Sequence[Sequence[Any]]) -> dict[str, ArrowArray]:
        return self._named([*super().arrays(columns).values()])

    def _named(self, columns: Sequence[ArrowArray]) -> dict[str, ArrowArray]:
        arrays: dict[str, ArrowArray] = {}
        for field, array in zip(self.schema, columns, strict=True):
            if field.nullable or field.dtype is not DataType.STRING:
                empty = pc.equal(pc.binary_length(array), pa.scalar(0))
                if empty.true_count:
                    array = pc.replace_with_mask(array, empty, pa.scalar(None, pa.string()))
            arrays[field.name] = array
        return arrays


class CsvText(LineText):
    """Lines of CSV. Not by Arrow's own writer: it puts every string in quotes or none."""

    def __init__(self, schema: Schema, delimiter: str, header: bool) -> None:
        self._names = schema.names if header else ()
        self._delimiter = pa.scalar(delimiter)
        self._special = f'["\r\n{re.escape(delimiter)}]'
        self._null = ""
        if len(schema) == 1:  # a line of nothing would be no row
            self._special += "|^$"
            self._null = '""'

    @property
    def header(self) -> bytes:
        if not self._names:
            return b""
        return self._joined([self._quoted(pa.array([name])) for name in self._names])

    def lines(self, batch: pa.RecordBatch) -> bytes:
        columns: list[ArrowArray] = []
        for column in times_as_text(batch).columns:
            is_text = pa.types.is_string(column.type)
            columns.append(self._quoted(column) if is_text else column.cast(pa.string()))
        return self._joined(columns)

    def _quoted(self, texts: ArrowArray) -> ArrowArray:
        """In quotes where a text holds what would end it."""
        special: ArrowArray = pc.match_substring_regex(texts, self._special)
        if not special.true_count:
            return texts
        doubled = pc.replace_substring(texts, '"', '""')
        quoted = pc.binary_join_element_wise(pa.scalar('"'), doubled, pa.scalar('"'), pa.scalar(""))
        return pc.if_else(special, quoted, texts)

    def _joined(self, columns: list[ArrowArray]) -> bytes:
        joined: ArrowArray = pc.binary_join_element_wise(
            *columns, self._delimiter, null_handling="replace", null_replacement=self._null
        )
        lines: ArrowArray = pc.binary_join_element_wise(joined, pa.scalar("\n"), pa.scalar(""))
        return "".join(lines.to_pylist()).encode()


def split_fields(line: str, delimiter: str) -> list[str]:
    """The fields of one line; ``ValueError`` if its quotes do not close."""
    if '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise ValueError(f"the line is no CSV: {error}") from None


def _header(path: Path, line: bytes, delimiter: str) -> list[str]:
    try:
        return split_fields(line.rstrip(b"\r").decode(), delimiter)
    except ValueError as error:
        raise RunError(f"cannot read the header of file '{path}': {error}") from None


def _below_header(parser: CsvParser, rest: bytes) -> Parsed:
    """The header is no record, but it is a line."""
    parsed = parser.parse(rest)
    bad = [replace(entry, line=entry.line + 1) for entry in parsed.bad]
    return replace(parsed, lines=parsed.lines + 1, bad=bad)
