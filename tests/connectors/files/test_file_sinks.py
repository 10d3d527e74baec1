"""Files of all formats, as a node writes them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors.formats.line_format import LineFormat
from penstock.connectors.formats.registry import FORMATS, FormatName
from penstock.connectors.writer import NodeSink
from penstock.query.errors import QueryError, RunError
from penstock.query.types import Schema
from penstock.sinks import Csv, Files, JsonLines, Parquet
from penstock.sources import Csv as CsvSource
from penstock.sources import Files as FilesSource
from penstock.sources import JsonLines as JsonSource
from penstock.sources import Parquet as ParquetSource
from tests.connectors.batches import ROWS, SCHEMA, batch
from tests.connectors.drain import rows_of


def test_parquet_files_appear_whole_with_as_many_rows_as_asked(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "out"
    writer = Parquet(folder, rows_per_file=4).open(SCHEMA)
    writer.write(batch())
    assert not list(folder.glob("*.parquet"))
    writer.write(batch())
    assert [path.name for path in folder.glob("*.parquet")] == ["part-00000.parquet"]
    writer.write(batch())
    writer.close(True)
    counts = [pq.read_metadata(path).num_rows for path in sorted(folder.iterdir())]
    assert counts == [4, 4, 1]
    assert rows_of(ParquetSource(folder, SCHEMA)) == ROWS * 3


def test_small_batches_share_a_row_group(tmp_path: Path) -> None:
    writer = Parquet(tmp_path / "out").open(SCHEMA)
    for _ in range(20):
        writer.write(batch())
    writer.close(False)
    metadata = pq.read_metadata(tmp_path / "out" / "part-00000.parquet")
    assert (metadata.num_rows, metadata.num_row_groups) == (60, 1)


def test_without_rows_there_is_one_empty_file(tmp_path: Path) -> None:
    Parquet(tmp_path / "out").open(SCHEMA).close(True)
    assert rows_of(ParquetSource(tmp_path / "out", SCHEMA)) == []


def test_csv_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "out.csv"
    writer = Csv(path).open(SCHEMA)
    writer.write(batch(ROWS[:2]))
    assert path.read_text().splitlines() == [
        "ts,lane,cars,speed,free",
        "1970-01-01T00:00:00.000000Z,left,3,12.25,true",
        "2023-11-14T22:13:20.250000Z,,-1,,false",
    ]
    writer.write(batch(ROWS[2:]))
    writer.close(True)
    assert rows_of(CsvSource(path, SCHEMA)) == ROWS


def test_csv_quotes_what_needs_it_and_nothing_else(tmp_path: Path) -> None:
    path, schema = tmp_path / "out.csv", Schema.of({"a;b": "string", "c": "string"})
    writer = Csv(path, delimiter=";").open(schema)
    writer.write(batch([{"a;b": 'x"y', "c": "plain, text"}, {"a;b": ";", "c": ""}], schema))
    writer.close(True)
    assert path.read_text() == '"a;b";c\n"x""y";plain, text\n";";\n'
    assert rows_of(CsvSource(path, schema, delimiter=";"))[1] == {"a;b": ";", "c": ""}


@pytest.mark.parametrize("kind", ["string?", "int64?"])
def test_csv_with_one_column_keeps_rows_that_are_null(tmp_path: Path, kind: str) -> None:
    path, schema = tmp_path / "out.csv", Schema(a=kind)
    value: object = '""' if kind == "string?" else 5
    rows: list[dict[str, object]] = [{"a": None}, {"a": value}, {"a": None}]
    writer = Csv(path).open(schema)
    writer.write(batch(rows, schema))
    writer.close(True)
    assert rows_of(CsvSource(path, schema)) == rows


def test_json_lines_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "out.jsonl"
    writer = JsonLines(path).open(SCHEMA)
    writer.write(batch(ROWS[:2]))
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"ts": "1970-01-01T00:00:00.000000Z", "lane": "left", "cars": 3, "speed": 12.25, "free": True},
        {"ts": "2023-11-14T22:13:20.250000Z", "lane": None, "cars": -1, "speed": None, "free": False},
    ]
    writer.write(batch(ROWS[2:]))
    writer.close(True)
    assert rows_of(JsonSource(path, SCHEMA)) == ROWS


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "t": st.integers(-(10**14), 10**16),
                "f": st.none() | st.floats(),
                "g": st.floats(width=32),
                "s": st.text(st.characters(exclude_characters="\n\r", codec="utf-8")),
                "i": st.integers(-(2**63), 2**63 - 1),
            }
        ),
        max_size=6,
    )
)
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_what_a_sink_writes_the_source_reads_back(
    kind: str, tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]]
) -> None:
    schema = Schema(t="timestamp", f="float64?", g="float32", s="string", i="int64")
    path = tmp_path_factory.mktemp("round") / f"out.{kind}"
    writer = (Csv(path) if kind == "csv" else JsonLines(path)).open(schema)
    writer.write(batch(rows, schema))
    writer.close(True)
    back = rows_of(CsvSource(path, schema) if kind == "csv" else JsonSource(path, schema))
    assert [same(row) for row in back] == [same(row) for row in rows]


def same(row: dict[str, object]) -> list[object]:
    return [
        "nan" if isinstance(value, float) and math.isnan(value) else repr(value)
        for _, value in sorted(row.items())
    ]


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda path, overwrite: Parquet(path, overwrite=overwrite), "out"),
        (lambda path, overwrite: Csv(path, overwrite=overwrite), "out.csv"),
        (lambda path, overwrite: JsonLines(path, overwrite=overwrite), "out.jsonl"),
    ],
)
def test_nothing_is_overwritten_unasked(
    tmp_path: Path, make: Callable[[Path, bool], NodeSink], name: str
) -> None:
    path = tmp_path / name
    for rows in (ROWS, ROWS[:1]):
        writer = make(path, rows is not ROWS).open(SCHEMA)
        writer.write(batch(rows))
        writer.close(True)
    with pytest.raises(RunError, match=rf"{name}.*not empty.*overwrite=True"):
        make(path, False).open(SCHEMA)
    files = [path] if path.is_file() else list(path.iterdir())
    assert len(files) == 1
    source = {"out": ParquetSource, "out.csv": CsvSource, "out.jsonl": JsonSource}[name]
    assert rows_of(source(path, SCHEMA)) == ROWS[:1]


def test_overwriting_a_folder_leaves_strange_files_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("keep")
    (tmp_path / ".part-00007.parquet.tmp").write_text("left by a crash")
    Parquet(tmp_path, overwrite=True).open(SCHEMA).close(True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "part-00000.parquet"]


def test_a_path_of_the_wrong_kind_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="it is a file"):
        Parquet(tmp_path / "file").open(SCHEMA)
    with pytest.raises(RunError, match="it is a folder"):
        Csv(tmp_path).open(SCHEMA)
    with pytest.raises(RunError, match="cannot make folder"):
        Csv(tmp_path / "file" / "out.csv").open(SCHEMA)


@pytest.mark.parametrize("name", list(FORMATS))
def test_every_format_writes_what_it_reads(name: FormatName, tmp_path: Path) -> None:
    schema, rows = (
        (SCHEMA, ROWS) if name != "text" else (Schema(line="string"), [{"line": "a,"}, {"line": ""}])
    )
    ending = FORMATS[name].endings[0]
    path = tmp_path / f"out{ending}"
    writer = Files(path).open(schema)
    writer.write(batch(rows, schema))
    writer.write(batch(rows, schema))
    writer.close(True)
    assert path.is_dir() == (not issubclass(FORMATS[name], LineFormat))
    assert rows_of(FilesSource(path, name, schema)) == rows * 2
    assert [file.suffix for file in path.glob("*")] == [ending] * path.is_dir()


def test_a_file_of_lines_has_no_rows_per_file(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="rows_per_file is for folders of files: format 'csv'"):
        Files(tmp_path / "out.csv", rows_per_file=5)
    with pytest.raises(QueryError, match="rows_per_file must be positive: Parquet got 0"):
        Parquet(tmp_path, rows_per_file=0)
    with pytest.raises(QueryError, match="text has one column, a string"):
        Files(tmp_path / "out.txt").open(SCHEMA)


@pytest.mark.parametrize("written", [ROWS, []])
def test_lines_go_into_a_pipe_too(written: list[dict[str, object]]) -> None:
    reading, writing = os.pipe()
    writer = Csv(f"/dev/fd/{writing}").open(SCHEMA)
    writer.write(batch(written))
    writer.close(True)
    os.close(writing)
    with open(reading, "rb") as pipe:
        lines = pipe.read().splitlines()
    assert lines[0] == b"ts,lane,cars,speed,free"
    assert len(lines) == 1 + len(written)


def test_a_run_that_stops_early_leaves_a_header(tmp_path: Path) -> None:
    Csv(tmp_path / "out.csv").open(SCHEMA).close(False)
    assert (tmp_path / "out.csv").read_text() == "ts,lane,cars,speed,free\n"
