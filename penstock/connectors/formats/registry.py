"""All formats by name: what ``format=`` of sources and sinks stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Literal, TypeVar

from penstock.connectors.formats.arrow import ArrowFormat
from penstock.connectors.formats.csv import CsvFormat
from penstock.connectors.formats.format import Format
from penstock.connectors.formats.json_lines import JsonLinesFormat
from penstock.connectors.formats.line_files import COMPRESSED
from penstock.connectors.formats.line_format import LineFormat
from penstock.connectors.formats.parquet import ParquetFormat
from penstock.connectors.formats.text import TextFormat
from penstock.query.errors import QueryError

Kind = TypeVar("Kind", bound=Format)
FormatName = Literal["parquet", "arrow", "csv", "jsonl", "text"]
LineFormatName = Literal["jsonl", "csv", "text"]

FORMATS: Mapping[str, type[Format]] = {
    kind.name: kind for kind in (ParquetFormat, ArrowFormat, CsvFormat, JsonLinesFormat, TextFormat)
}
LINE_FORMATS: Mapping[str, type[LineFormat]] = {
    name: kind for name, kind in FORMATS.items() if issubclass(kind, LineFormat)
}


def file_format(path: Path, given: str | Format | None, **settings: object) -> Format:
    """The format that is meant, by its name or else by the path's ending; with those settings that are not
    None, which it must have."""
    if isinstance(given, Format):
        return _with(given, settings)
    if given is not None:
        return _with(_named(given, FORMATS, "formats"), settings)
    ending = suffix(path)
    for kind in FORMATS.values():
        if ending in kind.endings:
            return _with(kind, settings)
    raise QueryError(f"cannot tell the format of '{path}'", hint=f"give format=, one of {', '.join(FORMATS)}")


def line_format(given: str | LineFormat, records: str, **settings: object) -> LineFormat:
    """The format of ``records``, such as lines or messages."""
    kind = given if isinstance(given, LineFormat) else _named(given, LINE_FORMATS, f"formats of {records}")
    return _with(kind, settings)


def suffix(path: Path) -> str:
    """The ending that tells the format."""
    return (path.with_suffix("") if path.suffix in COMPRESSED else path).suffix


def _named(name: str, among: Mapping[str, type[Kind]], what: str) -> type[Kind]:
    if name not in among:
        raise QueryError(f"unknown format '{name}'", hint=f"{what} are {', '.join(among)}")
    return among[name]


def _with(kind: type[Kind] | Kind, settings: Mapping[str, object]) -> Kind:
    given = {name: value for name, value in settings.items() if value is not None}
    if isinstance(kind, Format):
        if given:
            hint = f"give {type(kind).__name__}({', '.join(f'{name}=...' for name in given)})"
            raise QueryError("a format brings its own settings", detail=f"got {', '.join(given)}", hint=hint)
        return kind
    for name in sorted(given.keys() - {field.name for field in fields(kind)}):
        raise QueryError(f"format '{kind.name}' has no {name}", hint=f"leave {name}= out")
    return kind(**given)
