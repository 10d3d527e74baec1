"""Lines of JSON objects."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson

from penstock.connectors.formats.line_files import inferred
from penstock.connectors.formats.line_format import LineFormat, LineText, times_as_text
from penstock.connectors.formats.lines import LineParser, RegularLines, as_file
from penstock.memory.arrow import ArrowArray, arrow_type
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.types import DataType, Field, Schema

_MOST = 7 / 8  # of a chunk's lines, if they are to be read as being alike
_MAX_NESTING = 500  # far below the depth at which Python's own parser gives up


@dataclass(frozen=True)
class JsonLinesFormat(LineFormat):
    """A JSON object a line."""

    name = "jsonl"
    endings = (".jsonl", ".ndjson", ".json")

    @property
    def no_schema(self) -> str | None:
        return None

    def infer(self, path: Path) -> Schema:
        def read(sample: bytes) -> pa.Table:
            options = pajson.ReadOptions(use_threads=False, block_size=len(sample) + 1)
            return pajson.read_json(as_file(sample), options)

        return inferred(path, read)

    def parser(self, schema: Schema, layout: Layout, strings: StringPool) -> LineParser:
        return JsonParser(schema, layout, strings)

    @property
    def delivered_as(self) -> str:
        return "json_lines"

    def text(self, schema: Schema) -> LineText:
        return JsonText(schema.names)


class JsonParser(LineParser):
    """One object a line. A missing key is null, an unknown one ignored; numbers are not taken from strings.

    ``NaN``, ``Infinity`` and ``-Infinity`` are floats, as the JSON-lines sink writes them.
    """

    def __init__(self, schema: Schema, layout: Layout, strings: StringPool) -> None:
        super().__init__(schema, layout, strings)
        self._names = frozenset(schema.names)
        self._checks: list[tuple[str, Callable[[Any], Any], Field]] = [
            (field.name, _CHECKS[field.dtype], field) for field in schema
        ]

    def is_blank(self, line: bytes) -> bool:
        return not line.strip()

    def fast(self, chunk: bytes, lines: int) -> RegularLines | None:
        from penstock.connectors.formats.alike import alike  # brings a compiler

        regular = alike(chunk, self.schema, self._layout)
        if regular is not None and (regular.lines is None or len(regular.lines) >= lines * _MOST):
            return regular
        arrays = self._by_arrow(chunk, lines)
        return regular if arrays is None else RegularLines(arrays)

    def _by_arrow(self, chunk: bytes, lines: int) -> dict[str, ArrowArray] | None:
        # Arrow reads values, not lines. If every line starts with { and ends with }, no value spans two
        # lines.
        if chunk[:1] != b"{" or chunk[-2:] != b"}\n" or chunk.count(b"}\n{") != lines - 1:
            return None
        # What Arrow takes and the slow way does not.
        if b"NaN" in chunk or b"Inf" in chunk or b"\\ud" in chunk or b"\\uD" in chunk:
            return None
        if chunk.count(b"{") + chunk.count(b"[") - lines > _MAX_NESTING:
            return None
        schema = self._arrow_schema(chunk[: chunk.index(b"\n")])
        if schema is None:
            return None
        try:
            table = pajson.read_json(
                as_file(chunk),
                pajson.ReadOptions(use_threads=False, block_size=len(chunk) + 1),
                pajson.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            )
        except pa.ArrowInvalid:
            return None
        if table.num_rows != lines:
            return None
        arrays: dict[str, ArrowArray] = {}
        for field in self.schema:
            array = table.column(field.name).combine_chunks()
            if field.dtype.is_float and pc.any(pc.is_inf(array)).as_py():
                return None  # a number too large: bad, the slow way says
            arrays[field.name] = (
                array.cast(pa.float32(), safe=False) if field.dtype is DataType.FLOAT32 else array
            )
        return arrays

    def row(self, line: str) -> list[Any]:
        try:
            pairs = _DECODER.decode(line.strip())
        except RecursionError:
            raise ValueError("the line is nested too deeply") from None
        except json.JSONDecodeError as error:
            raise ValueError(f"the line is no JSON: {error.msg} at character {error.pos}") from None
        if not isinstance(pairs, _Object):
            raise ValueError("the line is JSON, but no object")
        values: dict[str, Any] = {}
        for name, value in pairs:
            if name in self._names:
                if name in values:
                    raise ValueError(f"column '{name}': given twice")
                values[name] = value
        return [self._checked(values.get(name), name, check, field) for name, check, field in self._checks]

    def arrays(self, columns: Sequence[Sequence[Any]]) -> dict[str, ArrowArray]:
        arrays: dict[str, ArrowArray] = {}
        for field, column in zip(self.schema, columns, strict=True):
            if field.dtype is DataType.FLOAT32:
                arrays[field.name] = pa.array(column, pa.float64()).cast(pa.float32(), safe=False)
            elif field.dtype is DataType.TIMESTAMP:
                arrays[field.name] = pa.array(column, pa.string())  # text, or the digits of a number
            else:
                arrays[field.name] = pa.array(column, arrow_type(field.dtype))
        return arrays

    def _arrow_schema(self, first_line: bytes) -> pa.Schema | None:
        """How Arrow should read the chunk; times may be text or numbers, as in the first line."""
        kinds: list[tuple[str, pa.DataType]] = []
        values: Any = None
        for field in self.schema:
            kind = arrow_type(field.dtype)
            if field.dtype is DataType.FLOAT32:
                kind = pa.float64()
            elif field.dtype is DataType.TIMESTAMP:
                if values is None:
                    try:
                        values = json.loads(first_line)
                    except (ValueError, RecursionError):
                        return None
                kind = pa.int64() if isinstance(values.get(field.name), int) else pa.string()
            kinds.append((field.name, kind))
        return pa.schema(kinds)

    @staticmethod
    def _checked(value: Any, name: str, check: Callable[[Any], Any], field: Field) -> Any:
        if value is None:
            return None
        try:
            return check(value)
        except (ValueError, TypeError):
            shown = "an object" if isinstance(value, _Object) else f"{value!r:.100}"
            raise ValueError(f"column '{name}': {shown} is not {_WANTED[field.dtype]}") from None


class JsonText(LineText):
    """Lines of JSON, without spaces."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
        self._names = names

    @property
    def beginning(self) -> bytes:
        return "".join(["{", *(f"{self._encode(name)}:" for name in self._names[:1])]).encode()

    def lines(self, batch: pa.RecordBatch) -> bytes:
        encode = self._encode
        return "".join(f"{encode(row)}\n" for row in times_as_text(batch).to_pylist()).encode()


class _Object(tuple[tuple[str, Any], ...]):
    """A JSON object with all its keys, doubled ones too."""


class _NegativeZero(int):
    """The number -0: the integer 0, or the float -0.0."""


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise json.JSONDecodeError("number too large", text, 0)
    return number


def _int(text: str) -> Any:
    if text == "-0":
        return _NegativeZero(0)
    return int(text) if len(text) < 30 else _float(text)


_DECODER = json.JSONDecoder(object_pairs_hook=_Object, parse_int=_int, parse_float=_float)


def _check_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _check_int(bits: int) -> Callable[[Any], int]:
    limit = 1 << (bits - 1)

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not -limit <= value < limit:
            raise TypeError
        return int(value)

    return check


def _check_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return -0.0 if isinstance(value, _NegativeZero) else float(value)


def _check_string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # a lone surrogate is no text: UnicodeEncodeError is a ValueError
    return value


def _check_time(value: Any) -> str:
    return _check_string(value) if isinstance(value, str) else str(_check_int(64)(value))


_CHECKS: dict[DataType, Callable[[Any], Any]] = {
    DataType.BOOL: _check_bool,
    DataType.INT32: _check_int(32),
    DataType.INT64: _check_int(64),
    DataType.FLOAT32: _check_float,
    DataType.FLOAT64: _check_float,
    DataType.STRING: _check_string,
    DataType.TIMESTAMP: _check_time,
}
_WANTED = {dtype: f"an {dtype}" if dtype.is_integer else f"a {dtype}" for dtype in DataType} | {
    DataType.TIMESTAMP: "a timestamp: ISO 8601 text or whole microseconds"
}
