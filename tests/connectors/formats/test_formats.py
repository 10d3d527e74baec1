"""Formats by name, by ending and of one's own; settings that a format does not have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.connectors.formats.csv import CsvFormat
from penstock.connectors.formats.line_format import LineFormat
from penstock.connectors.formats.registry import FORMATS, LINE_FORMATS, file_format
from penstock.connectors.formats.text import TextParser
from penstock.connectors.reader import NodeSource
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError
from penstock.query.types import Schema
from penstock.sources import Files, TcpLines
from tests.connectors.drain import Drain, rows_of


def test_a_name_and_an_ending_mean_one_format() -> None:
    endings = [ending for kind in FORMATS.values() for ending in kind.endings]
    assert len(set(endings)) == len(endings)
    assert all(ending.startswith(".") for ending in endings)
    for name, kind in FORMATS.items():
        assert kind.name == name
        for ending in kind.endings:
            assert file_format(Path(f"x{ending}"), None) == file_format(Path("x"), name) == kind()
    assert set(LINE_FORMATS) == {"csv", "jsonl", "text"}


def test_a_format_that_does_not_say_its_name_cannot_be_written_down() -> None:
    with pytest.raises(TypeError, match="format Nameless does not say its name and its endings"):
        type("Nameless", (LineFormat,), {})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Files("a.parquet", delimiter=";"), "format 'parquet' has no delimiter"),
        (lambda: Files("a.jsonl", header=False), "format 'jsonl' has no header"),
        (lambda: Files("a", CsvFormat(), delimiter=";"), r"own settings: got delimiter; .*CsvFormat\("),
        (lambda: TcpLines({"a": "string"}, port=1, delimiter=";"), "format 'jsonl' has no delimiter"),
        (lambda: TcpLines({"a": "int64"}, port=1, format="text"), "text has one column, a string"),
        (lambda: Files(".", "text", {"a": "int64"}, watch=True), "text has one column, a string"),
    ],
)
def test_what_a_format_would_ignore_is_refused(make: Callable[[], NodeSource], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        make()


def test_lines_of_text_are_rows_empty_ones_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text('one,"\n\ntwo\rthree\r\nlast')
    source = Files(tmp_path, "text")
    assert source.schema == Schema(line="string")
    assert rows_of(source) == [{"line": line} for line in ('one,"', "", "two\rthree", "last")]
    (tmp_path / "a.txt").write_bytes(b"good\n\xff\n\nalso\n")
    drain = Drain(Files(tmp_path / "a.txt", schema={"text": "string"}))
    assert [row["text"] for row in drain.to_end()] == ["good", "", "also"]
    assert [(bad.offset, bad.reason) for bad in drain.reader.take_bad()] == [
        (1, "the line is not UTF-8: byte 0 is 0xff (line 2 of a.txt)")
    ]


def test_the_fast_and_the_slow_way_through_text_agree() -> None:
    schema = Schema(line="string")
    parser = TextParser(schema, Layout(schema), StringPool())
    chunk = "a\n\n \r\nü,\n".encode()
    fast = parser.parse(chunk)
    parser.fast = lambda chunk, lines: None  # type: ignore[method-assign]
    slow = parser.parse(chunk)
    assert (fast.count, fast.records, fast.lines) == (slow.count, slow.records, slow.lines) == (4, 4, 4)
    assert [list(column) for column in fast.columns] == [list(column) for column in slow.columns]
