"""Parquet, CSV and JSON lines have every batch once, whatever crashes and comes again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.sinks.base import BatchWriter, NodeSink
from penstock.query.errors import RunError
from penstock.query.types import Schema
from penstock.sinks import Csv, JsonLines, Parquet
from penstock.sources import Csv as CsvSource
from penstock.sources import JsonLines as JsonSource
from penstock.sources import Parquet as ParquetSource
from tests.engine.sinks.crashes import Crash, crashing
from tests.engine.sources.drain import rows_of

SCHEMA = Schema(batch="int64", attempt="int64", text="string")
KINDS: dict[str, tuple[Callable[..., NodeSink], Callable[..., Any]]] = {
    "out": (Parquet, ParquetSource),
    "out.csv": (Csv, CsvSource),
    "out.jsonl": (JsonLines, JsonSource),
}
every_kind = pytest.mark.parametrize("name", list(KINDS))


def rows(batch: int, attempt: int, count: int) -> list[dict[str, Any]]:
    return [{"batch": batch, "attempt": attempt, "text": "x" * (i + attempt)} for i in range(count)]


def table(data: list[dict[str, Any]]) -> pa.Table:
    schema = pa.schema(
        [
            pa.field(n, t, False)
            for n, t in zip(SCHEMA.names, (pa.int64(), pa.int64(), pa.string()), strict=True)
        ]
    )
    whole = pa.Table.from_pylist(data, schema)
    return pa.concat_tables([whole.slice(0, 2), whole.slice(2)])  # rows come in chunks


def sink(path: Path, **settings: Any) -> NodeSink:
    return KINDS[path.name][0](path, **settings)


def found(path: Path) -> list[dict[str, Any]]:
    return rows_of(KINDS[path.name][1](path, SCHEMA))


@dataclass
class Driver:
    """Runs batches as the runtime does: a batch counts when the next version is known."""

    path: Path
    version: int | None = None  # of the newest manifest
    attempts: int = 0
    counted: list[dict[str, Any]] = field(default_factory=list)
    writer: BatchWriter | None = None

    def batch(self, count: int, dies_at: int | None = None, after: bool = False, commits: bool = True) -> int:
        """One batch, started up first if need be; returns the steps on disk. Dies before it counts unless it
        ``commits``."""
        self.attempts += 1
        with crashing(dies_at, after) as disk:
            try:
                if self.writer is None:
                    self.writer = sink(self.path).open_batches(SCHEMA, self.version)
                    self.version = self.version or 0
                assert self.version is not None
                mine = rows(self.version, self.attempts, count)
                if mine:
                    self.writer.write_batch(self.version, table(mine))
                if not commits:
                    raise Crash
                self.counted += mine
                self.version += 1
            except Crash:
                self.writer = None
        return disk.steps

    def finish(self) -> None:
        self.batch(1)
        assert self.writer is not None
        self.writer.close(True)
        assert found(self.path) == self.counted


@every_kind
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.none() | st.integers(1, 9),
            st.booleans(),
            st.sampled_from([True, True, False]),
        ),
        max_size=12,
    )
)
def test_every_batch_counts_once_whatever_crashes(
    name: str, tmp_path_factory: pytest.TempPathFactory, batches: list[tuple[int, int | None, bool, bool]]
) -> None:
    driver = Driver(tmp_path_factory.mktemp("out") / name)
    for count, dies_at, after, commits in batches:
        driver.batch(count, dies_at, after, commits)
    driver.finish()


@every_kind
@pytest.mark.parametrize("start", [0, 2])
def test_a_crash_at_any_step_of_a_batch(name: str, start: int, tmp_path: Path) -> None:
    free = Driver(tmp_path / "free" / name)
    steps = [free.batch(2) for _ in range(start + 1)][-1]
    assert steps >= 3
    for step in range(1, steps + 1):
        for after in (False, True):
            driver = Driver(tmp_path / f"{step}-{after}" / name)
            for _ in range(start):
                driver.batch(2)
            driver.batch(3, step, after)
            driver.finish()


@every_kind
def test_a_batch_that_comes_again_without_rows_leaves_none(name: str, tmp_path: Path) -> None:
    driver = Driver(tmp_path / name)
    driver.batch(2)
    driver.batch(3, commits=False)
    driver.batch(0)
    driver.batch(0, commits=False)  # starts again from a batch that had no rows
    driver.finish()


@every_kind
def test_the_same_number_twice_in_one_run_replaces(name: str, tmp_path: Path) -> None:
    writer = sink(tmp_path / name).open_batches(SCHEMA, None)
    for batch, attempt in ((0, 1), (4, 1), (4, 2), (9, 3)):
        writer.write_batch(batch, table(rows(batch, attempt, 3)))
    writer.close(True)
    assert found(tmp_path / name) == rows(0, 1, 3) + rows(4, 2, 3) + rows(9, 3, 3)


@every_kind
def test_a_new_run_overwrites_nothing_unasked(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    for batch in (0, 1):
        writer = sink(path).open_batches(SCHEMA, batch or None)
        writer.write_batch(batch, table(rows(batch, 1, 2)))
        writer.close(True)
    for resumed_from in (None, 0):  # a run that failed in batch 0 has left nothing of batch 1
        with pytest.raises(RunError, match=r"not empty.*overwrite=True"):
            sink(path).open_batches(SCHEMA, resumed_from)
    assert len(found(path)) == 4
    writer = sink(path, overwrite=True).open_batches(SCHEMA, None)
    writer.write_batch(0, table(rows(0, 2, 1)))
    writer.close(True)
    assert found(path) == rows(0, 2, 1)


@every_kind
def test_one_batch_of_another_run_is_not_overwritten_by_a_new_one(name: str, tmp_path: Path) -> None:
    driver = Driver(tmp_path / name)
    driver.finish()
    with pytest.raises(RunError, match="overwrite=True"):
        sink(tmp_path / name).open_batches(SCHEMA, None)


@every_kind
def test_overwriting_does_not_touch_what_counted_when_a_run_goes_on(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    sink(path).open_batches(SCHEMA, None).write_batch(0, table(rows(0, 1, 2)))
    sink(path, overwrite=True).open_batches(SCHEMA, 1).write_batch(1, table(rows(1, 1, 1)))
    assert found(path) == rows(0, 1, 2) + rows(1, 1, 1)


@every_kind
def test_a_query_added_to_a_run_that_goes_on_starts_its_output(name: str, tmp_path: Path) -> None:
    writer = sink(tmp_path / name).open_batches(SCHEMA, 7)
    writer.write_batch(8, table(rows(8, 1, 2)))
    writer.close(True)
    assert found(tmp_path / name) == rows(8, 1, 2)


@every_kind
def test_without_any_row_the_output_can_be_read(name: str, tmp_path: Path) -> None:
    writer = sink(tmp_path / name).open_batches(SCHEMA, None)
    writer.close(True)
    if name != "out.jsonl":  # which has nothing to say then
        assert found(tmp_path / name) == []
    Driver(tmp_path / name, version=0).finish()


# -- what each kind does ---------------------------------------------------------------


def test_a_parquet_file_per_batch_with_its_number(tmp_path: Path) -> None:
    writer = Parquet(tmp_path).open_batches(SCHEMA, None)
    writer.write_batch(7, table(rows(7, 1, 3)))
    writer.write_batch(12, pa.concat_tables([table(rows(12, 1, 2))] * 100_000))
    names = ["batch-000000000007.parquet", "batch-000000000012.parquet"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert pq.read_metadata(tmp_path / names[1]).num_row_groups == 2


def test_a_crash_inside_a_parquet_file_is_seen_by_no_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(tmp_path / "out")
    driver.batch(2)

    def dies(rows: pa.Table, path: Path, **settings: Any) -> None:
        path.write_bytes(b"PAR1 and no more")
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(pq, "write_table", dies)
        driver.batch(3)
    assert found(driver.path) == driver.counted
    driver.finish()
    assert not list(driver.path.glob(".*"))


def test_parquet_removes_what_a_crash_left_and_nothing_else(tmp_path: Path) -> None:
    writer = Parquet(tmp_path).open_batches(SCHEMA, None)
    for batch in range(3):
        writer.write_batch(batch, table(rows(batch, 1, 1)))
    (tmp_path / "notes.txt").touch()
    (tmp_path / ".batch-000000000003.parquet.tmp").touch()
    Parquet(tmp_path).open_batches(SCHEMA, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "batch-000000000000.parquet",
        "batch-000000000001.parquet",
        "notes.txt",
    ]


def test_a_run_on_a_node_overwrites_batches_and_the_other_way_round(tmp_path: Path) -> None:
    Parquet(tmp_path).open_batches(SCHEMA, None).close(True)
    Parquet(tmp_path, overwrite=True).open(SCHEMA).close(True)
    assert [path.name for path in tmp_path.iterdir()] == ["part-00000.parquet"]
    Parquet(tmp_path, overwrite=True).open_batches(SCHEMA, None).close(True)
    assert [path.name for path in tmp_path.iterdir()] == ["batch-000000000000.parquet"]


def test_the_header_is_written_once(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "out.csv")
    driver.batch(1, commits=False)
    driver.batch(1)
    driver.batch(1, commits=False)
    driver.finish()
    assert (tmp_path / "out.csv").read_text() == "batch,attempt,text\n0,2,xx\n1,4,xxxx\n"


def test_a_checkpoint_may_be_set_back_by_some_batches(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    writer = Csv(path).open_batches(SCHEMA, None)
    for batch in range(100):
        writer.write_batch(batch, table(rows(batch, 1, 1)))
    writer.close(False)
    with pytest.raises(RunError, match=r"cannot write batch 50 into .*out.csv"):
        Csv(path).open_batches(SCHEMA, 50)
    Csv(path).open_batches(SCHEMA, 90).close(False)
    assert [row["batch"] for row in found(path)] == list(range(90))
    assert len(json.loads((tmp_path / ".out.csv.penstock.json").read_text())["lengths"]) <= 32


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl"])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path, notes: path.unlink(), r"has 0 bytes, fewer than .* batch 0 left"),
        (lambda path, notes: path.write_text("x"), r"has 1 bytes, fewer than .* batch 0 left"),
        (lambda path, notes: notes.write_text("{"), r"penstock.json'.* cannot be read"),
        (lambda path, notes: notes.write_text('{"format": 9}'), r"cannot be read \(format 9\)"),
        (lambda path, notes: notes.unlink(), r"not empty: give overwrite=True"),
    ],
)
def test_a_file_that_cannot_be_gone_on_with_is_an_error(
    name: str, damage: Callable[[Path, Path], object], message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    sink(path).open_batches(SCHEMA, None).write_batch(0, table(rows(0, 1, 2)))
    damage(path, path.with_name(f".{name}.penstock.json"))
    with pytest.raises(RunError, match=message):
        sink(path).open_batches(SCHEMA, 1)
