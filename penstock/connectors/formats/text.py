"""Lines of text as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.formats.line_format import LineFormat, LineText
from penstock.connectors.formats.lines import LineParser, RegularLines
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError
from penstock.query.types import DataType, Schema


@dataclass(frozen=True)
class TextFormat(LineFormat):
    """A line is the value of the one column, a string; an empty line is an empty string."""

    name = "text"
    endings = (".txt", ".log")

    def check(self, schema: Schema) -> None:
        if len(schema) != 1 or next(iter(schema)).dtype is not DataType.STRING:
            raise QueryError(
                "text has one column, a string",
                detail=f"got {', '.join(map(str, schema))}",
                hint="give schema={'line': 'string'}, or select one string",
            )

    @property
    def no_schema(self) -> str | None:
        return None

    def infer(self, path: Path) -> Schema:
        return Schema(line="string")

    def parser(self, schema: Schema, layout: Layout, strings: StringPool) -> LineParser:
        return TextParser(schema, layout, strings)

    def text(self, schema: Schema) -> LineText:
        return PlainText()


class TextParser(LineParser):
    """Every line is a record, also one without a character."""

    def is_blank(self, line: bytes) -> bool:
        return False

    def fast(self, chunk: bytes, lines: int) -> RegularLines | None:
        return RegularLines({self.schema.names[0]: pa.array(chunk.decode().split("\n")[:-1], pa.string())})

    def row(self, line: str) -> Sequence[Any]:
        return (line,)


class PlainText(LineText):
    """The one column's values; a null is an empty line, and a value with a line end in it two lines."""

    def lines(self, batch: pa.RecordBatch) -> bytes:
        texts: list[str | None] = batch.column(0).to_pylist()
        return "".join(f"{text or ''}\n" for text in texts).encode()
