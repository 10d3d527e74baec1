"""Connectors: a folder per outside system, one place for formats, and what all sources and sinks share.

The names here are for sources, sinks and formats of one's own: ``class Table(ps.connectors.NodeSource)``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.connectors.buffered import BufferedReader
    from penstock.connectors.formats.arrow import ArrowFormat
    from penstock.connectors.formats.csv import CsvFormat
    from penstock.connectors.formats.json_lines import JsonLinesFormat
    from penstock.connectors.formats.line_format import LineFormat, LineText, times_as_text
    from penstock.connectors.formats.lines import LineParser
    from penstock.connectors.formats.parquet import ParquetFormat
    from penstock.connectors.formats.tables import TableFile, TableFormat
    from penstock.connectors.formats.text import TextFormat
    from penstock.connectors.formats.values import decode
    from penstock.connectors.memory.sink import plain_rows
    from penstock.connectors.offsets import OffsetPositions
    from penstock.connectors.reader import BadRecord, NodeSource, Positions, Reader, Resume
    from penstock.connectors.writer import BatchWriter, NodeSink, Resumed, Writer

# Loaded when first asked for: whoever reads one file needs no writer of another.
_HOMES = {
    "ArrowFormat": "formats.arrow",
    "BadRecord": "reader",
    "BatchWriter": "writer",
    "BufferedReader": "buffered",
    "CsvFormat": "formats.csv",
    "JsonLinesFormat": "formats.json_lines",
    "LineFormat": "formats.line_format",
    "LineParser": "formats.lines",
    "LineText": "formats.line_format",
    "NodeSink": "writer",
    "NodeSource": "reader",
    "OffsetPositions": "offsets",
    "ParquetFormat": "formats.parquet",
    "Positions": "reader",
    "Reader": "reader",
    "Resume": "reader",
    "Resumed": "writer",
    "TableFile": "formats.tables",
    "TableFormat": "formats.tables",
    "TextFormat": "formats.text",
    "Writer": "writer",
    "decode": "formats.values",
    "plain_rows": "memory.sink",
    "times_as_text": "formats.line_format",
}

__all__ = [
    "ArrowFormat",
    "BadRecord",
    "BatchWriter",
    "BufferedReader",
    "CsvFormat",
    "JsonLinesFormat",
    "LineFormat",
    "LineParser",
    "LineText",
    "NodeSink",
    "NodeSource",
    "OffsetPositions",
    "ParquetFormat",
    "Positions",
    "Reader",
    "Resume",
    "Resumed",
    "TableFile",
    "TableFormat",
    "TextFormat",
    "Writer",
    "decode",
    "plain_rows",
    "times_as_text",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
