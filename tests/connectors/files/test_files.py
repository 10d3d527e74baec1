from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from penstock.query.errors import QueryError, RunError
from penstock.sources import Arrow, Csv, Files, JsonLines, Parquet
from tests.connectors.drain import Drain, rows_of

SCHEMA = {"ts": "timestamp", "lane": "string", "speed": "float64?"}
ROWS = [{"ts": i, "lane": "ab"[i % 2], "speed": None if i % 3 == 0 else i / 4} for i in range(10)]


def table(rows: list[dict[str, Any]] = ROWS) -> pa.Table:
    kinds = pa.schema(
        [
            pa.field("ts", pa.timestamp("us", tz="UTC")),
            pa.field("lane", pa.dictionary(pa.int32(), pa.string())),
            pa.field("speed", pa.float64()),
        ]
    )
    return pa.Table.from_pylist(rows, kinds)


def write_lines(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_parquet_files_are_read_in_name_order(tmp_path: Path) -> None:
    pq.write_table(table(ROWS[4:]), tmp_path / "b.parquet", row_group_size=2)
    pq.write_table(table(ROWS[:4]), tmp_path / "a.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".c.parquet").write_text("not whole")
    (tmp_path / "d.parquet.tmp").write_text("not whole")
    (tmp_path / "notes.txt").write_text("not mine")
    source = Files(tmp_path, "parquet")
    assert str(source.schema) == "Schema(ts: timestamp, lane: string, speed: float64?)"
    assert rows_of(source, (3, 1)) == ROWS
    assert rows_of(Parquet(tmp_path / "*.parquet")) == ROWS
    assert rows_of(Parquet(tmp_path / "a.parquet")) == ROWS[:4]
    assert [list(row) for row in Drain(source, ["speed"]).to_end()] == [["speed"]] * 10


def test_arrow_files_and_streams_are_read(tmp_path: Path) -> None:
    feather.write_feather(table(), tmp_path / "a.arrow")
    with pa.ipc.new_stream(tmp_path / "b.arrow", table().schema) as writer:
        writer.write_table(table(), max_chunksize=3)
    assert rows_of(Arrow(tmp_path), (4,)) == ROWS * 2


def test_nulls_where_none_are_declared_are_bad_records_in_tables_too(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "a.parquet")
    drain = Drain(Parquet(tmp_path, {"ts": "timestamp", "speed": "float64"}), ["ts"])
    assert [row["ts"] for row in drain.to_end()] == [i for i in range(10) if i % 3]
    bad = drain.reader.take_bad()
    assert [entry.offset for entry in bad] == [0, 3, 6, 9]
    assert bad[0].reason == (
        "column 'speed': null, but the schema has float64 and not float64? (row 1 of a.parquet)"
    )


def test_csv_with_bad_lines(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.csv", "ts,more,lane,speed", "1,x,a,1.5", "2,x,a", "", "three,x,b,1", "4,x,b,")
    write_lines(tmp_path / "b.csv", "speed,lane,ts", '7,"a,""b""",5', "x,a,6")
    drain = Drain(Csv(tmp_path, SCHEMA))
    assert drain.to_end((1, 2)) == [
        {"ts": 1, "lane": "a", "speed": 1.5},
        {"ts": 4, "lane": "b", "speed": None},
        {"ts": 5, "lane": 'a,"b"', "speed": 7.0},
    ]
    assert [(bad.partition, bad.offset, bad.record, bad.reason) for bad in drain.reader.take_bad()] == [
        (0, 1, "2,x,a", "the line has 3 fields, not 4 (line 3 of a.csv)"),
        (0, 2, "three,x,b,1", "column 'ts': 'three' is not a timestamp (line 5 of a.csv)"),
        (0, 5, "x,a,6", "column 'speed': 'x' is not a float64 (line 3 of b.csv)"),
    ]
    assert drain.reader.take_bad() == []


def test_csv_options_and_compression(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write("5;left\n6;right")
    source = Files(tmp_path, "csv", {"ts": "timestamp", "lane": "string"}, delimiter=";", header=False)
    assert rows_of(source) == [{"ts": 5, "lane": "left"}, {"ts": 6, "lane": "right"}]


def test_csv_types_come_from_the_first_file(tmp_path: Path) -> None:
    lines = ["ts,a,b,c,d", "2024-01-01T00:00:00Z,1,1.5,x,", "2024-01-01T00:00:01Z,,2,y,"]
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" + "\n".join(lines).encode())
    source = Csv(tmp_path / "a.csv")
    assert str(source.schema) == "Schema(ts: timestamp, a: int64?, b: float64, c: string, d: string?)"
    assert [row["a"] for row in rows_of(source)] == [1, None]


def test_json_lines(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", '{"ts": 1, "lane": "a"}', "{", '{"ts": 3, "lane": "b", "speed": 2}')
    drain = Drain(JsonLines(tmp_path, SCHEMA))
    assert [row["ts"] for row in drain.to_end()] == [1, 3]
    assert [bad.offset for bad in drain.reader.take_bad()] == [1]
    (tmp_path / "a.jsonl").write_text('{"t": "2024-01-01 00:00:00", "x": 1, "y": null}')
    assert str(JsonLines(tmp_path).schema) == "Schema(t: timestamp, x: int64, y: string?)"


def test_many_chunks_give_the_same_events_as_one(tmp_path: Path) -> None:
    numbers = np.arange(120_000)
    lines = "".join(f"{i},{'bad' if i % 50_001 == 50_000 else i / 8}\n" for i in numbers)
    (tmp_path / "a.csv").write_text("ts,speed\n" + lines)
    drain = Drain(Csv(tmp_path / "a.csv", {"ts": "timestamp", "speed": "float64"}))
    rows = drain.to_end((7_777,))
    assert [row["ts"] for row in rows] == [i for i in numbers if i % 50_001 != 50_000]
    bad = drain.reader.take_bad()
    assert [entry.offset for entry in bad] == [50_000, 100_001]
    assert bad[1].reason.endswith("(line 100003 of a.csv)")


def test_a_watched_folder_is_read_as_it_fills(tmp_path: Path) -> None:
    source = JsonLines(tmp_path, {"ts": "timestamp"}, watch=True)
    assert not source.bounded
    drain = Drain(source)
    reader = drain.reader
    assert reader.available(0) == 0
    assert not reader.finished
    write_lines(tmp_path / "b.jsonl", '{"ts": 1}')
    write_lines(tmp_path / "a.jsonl", '{"ts": 0}')
    write_lines(tmp_path / "_hidden.jsonl", '{"ts": 9}')
    due = reader.next_due_ns()
    assert due is not None
    assert reader.available(due - 1) == 0
    for now in (due, 2 * due, 3 * due, 4 * due):
        if reader.available(now):
            drain.read(5)
    assert drain.rows == [{"ts": 0}, {"ts": 1}]
    write_lines(tmp_path / "c.jsonl", '{"ts": 2}')
    assert reader.available(9 * due) == 1
    drain.read(5)
    assert drain.rows[-1] == {"ts": 2}
    assert not reader.finished
    reader.close()


def test_a_later_file_that_differs_is_an_error_that_names_file_and_column(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "a.parquet")
    pq.write_table(pa.table({"ts": [1], "lane": ["a"]}), tmp_path / "b.parquet")
    with pytest.raises(RunError, match=r"column 'speed' is missing: file '.*b\.parquet' has ts, lane"):
        rows_of(Parquet(tmp_path))
    pq.write_table(pa.table({"ts": [1], "lane": ["a"], "speed": ["fast"]}), tmp_path / "b.parquet")
    with pytest.raises(RunError, match=r"column 'speed' has another type: file '.*b\.parquet' has string"):
        rows_of(Parquet(tmp_path))
    (tmp_path / "b.parquet").write_text("no table at all")
    with pytest.raises(RunError, match=r"cannot read file '.*b\.parquet'"):
        rows_of(Parquet(tmp_path))
    write_lines(tmp_path / "a.csv", "ts,lane", "1,a")
    with pytest.raises(RunError, match=r"column 'speed' is missing: file '.*a\.csv' has ts, lane"):
        rows_of(Csv(tmp_path, SCHEMA))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"format": "csv"}, "no csv file at"),
        ({"format": "csv", "watch": True}, "no csv file at .* yet.*give schema="),
        ({}, "cannot tell the format"),
        ({"format": "xml"}, "unknown format 'xml'"),
        ({"format": "csv", "header": False}, "without header needs a schema"),
        ({"format": "csv", "delimiter": ";;"}, "delimiter"),
    ],
)
def test_a_source_that_cannot_be_is_refused_at_once(
    tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(QueryError, match=message):
        Files(tmp_path, **arguments)


def test_the_same_files_are_the_same_stream(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.csv", "ts", "1")
    assert Csv(tmp_path).key() == Files(tmp_path, "csv").key()
    assert Csv(tmp_path).key() != Csv(tmp_path, {"ts": "timestamp"}).key()


def test_an_empty_file_has_no_events(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    write_lines(tmp_path / "b.csv", "ts", "1")
    assert rows_of(Csv(tmp_path, {"ts": "timestamp"})) == [{"ts": 1}]


@pytest.mark.parametrize(
    ("ending", "text"), [("csv", "t,a,b\n1,2,x\n"), ("jsonl", '{"t":1,"a":2,"b":"x"}\n')]
)
def test_what_nobody_reads_is_checked_unless_one_asks_for_less(
    ending: str, text: str, tmp_path: Path
) -> None:
    path = tmp_path / f"in.{ending}"
    path.write_text(text)
    schema = {"t": "timestamp", "a": "int64", "b": "int64"}
    strict = Drain(Files(path, schema=schema), ("t", "a"))
    assert strict.to_end() == []
    (bad,) = strict.reader.take_bad()
    assert bad.reason.startswith("column 'b': 'x' is not an int64")
    assert Drain(Files(path, schema=schema, check="needed"), ("t", "a")).to_end() == [{"t": 1, "a": 2}]
    with pytest.raises(QueryError, match="'all' and 'needed'"):
        Files(path, schema=schema, check="none")  # type: ignore[arg-type]
