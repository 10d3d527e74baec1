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

from penstock.connectors.deliveries import delivery_of
from penstock.connectors.writer import BatchWriter, NodeSink, Resumed
from penstock.query.errors import RunError
from penstock.query.types import Schema
from penstock.sinks import Arrow, Csv, Files, JsonLines, Parquet
from penstock.sources import Arrow as ArrowSource
from penstock.sources import Csv as CsvSource
from penstock.sources import JsonLines as JsonSource
from penstock.sources import Parquet as ParquetSource
from tests.connectors.crashes import Crash, crashing
from tests.connectors.drain import rows_of

SCHEMA = Schema(batch="int64", attempt="int64", text="string")
KINDS: dict[str, tuple[Callable[..., NodeSink], Callable[..., Any]]] = {
    "out": (Parquet, ParquetSource),
    "arrow": (Arrow, ArrowSource),
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


def begun(path: Path, batch: int = 0, before: BatchWriter | None = None, **settings: Any) -> BatchWriter:
    """A writer of a run that goes on with this batch after what another writer had delivered, or of a new
    run."""
    resumed = None if before is None else Resumed(batch, before.delivered())
    writer = sink(path, **settings).open_batches(SCHEMA, resumed)
    writer.begin()
    return writer


@dataclass
class Driver:
    """Runs batches as the runtime does: a batch counts when the next manifest is there."""

    path: Path
    version: int | None = None  # of the newest manifest
    deliveries: str = "{}"  # what it has, as text
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
                    self.writer = self._start()
                assert self.version is not None
                mine = rows(self.version, self.attempts, count)
                if mine:
                    self.writer.write_batch(self.version, table(mine))
                if not commits:
                    raise Crash
                self._commit(self.version + 1)
                self.counted += mine
            except Crash:
                self.writer = None
        return disk.steps

    def finish(self) -> None:
        self.batch(1)
        assert self.writer is not None
        self.writer.close(True)
        assert found(self.path) == self.counted
        resumed = self._resumed()
        assert resumed is not None
        assert resumed.delivered is not None
        delivery = delivery_of(resumed.delivered)
        assert delivery is not None
        assert delivery.verify(resumed.batch) is None

    def _start(self) -> BatchWriter:
        writer = sink(self.path).open_batches(SCHEMA, self._resumed())
        self.version = self.version or 0  # the first manifest
        self.writer = writer
        writer.begin()
        self._commit(self.version)
        return writer

    def _resumed(self) -> Resumed | None:
        return None if self.version is None else Resumed(self.version, json.loads(self.deliveries).get("q"))

    def _commit(self, version: int) -> None:
        assert self.writer is not None
        self.version, self.deliveries = version, json.dumps({"q": self.writer.delivered()})


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
    assert steps >= 2
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
    writer = begun(tmp_path / name)
    for batch, attempt in ((0, 1), (4, 1), (4, 2), (9, 3)):
        writer.write_batch(batch, table(rows(batch, attempt, 3)))
    writer.close(True)
    assert found(tmp_path / name) == rows(0, 1, 3) + rows(4, 2, 3) + rows(9, 3, 3)
    delivery = delivery_of(writer.delivered())
    assert delivery is not None
    assert delivery.verify(10) is None


@every_kind
def test_a_new_run_overwrites_nothing_unasked(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    writer = begun(path)
    for batch in (0, 1):
        writer.write_batch(batch, table(rows(batch, 1, 2)))
    writer.close(True)
    for resumed in (None, Resumed(0, None), Resumed(5, None)):  # a new run, or a query that is new to one
        with pytest.raises(RunError, match=r"not empty.*overwrite=True"):
            sink(path).open_batches(SCHEMA, resumed)
    assert len(found(path)) == 4
    writer = sink(path, overwrite=True).open_batches(SCHEMA, None)
    assert len(found(path)) == 4  # until the checkpoint is this run's
    writer.begin()
    writer.write_batch(0, table(rows(0, 2, 1)))
    writer.close(True)
    assert found(path) == rows(0, 2, 1)


@every_kind
def test_output_that_came_to_be_while_a_run_was_down_is_not_cut(name: str, tmp_path: Path) -> None:
    """A run that has delivered nothing yet left its place empty, and another has filled it since."""
    path = tmp_path / name
    first = begun(path)
    first.close(False)
    if "." not in name:  # a folder
        other = begun(path)
        for batch in (0, 1):
            other.write_batch(batch, table(rows(batch, 1, 2)))
        other.close(True)
    else:
        path.write_text("something else\n")
    with pytest.raises(RunError, match="not empty"):
        sink(path).open_batches(SCHEMA, Resumed(0, first.delivered()))


@every_kind
def test_overwriting_does_not_touch_what_counted_when_a_run_goes_on(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    first = begun(path)
    first.write_batch(0, table(rows(0, 1, 2)))
    first.close(False)
    again = begun(path, 1, first, overwrite=True)
    again.write_batch(1, table(rows(1, 1, 1)))
    again.close(False)
    assert found(path) == rows(0, 1, 2) + rows(1, 1, 1)


@every_kind
def test_a_query_added_to_a_run_that_goes_on_starts_its_output(name: str, tmp_path: Path) -> None:
    writer = sink(tmp_path / name).open_batches(SCHEMA, Resumed(7, None))
    writer.begin()
    writer.write_batch(8, table(rows(8, 1, 2)))
    writer.close(True)
    assert found(tmp_path / name) == rows(8, 1, 2)


@every_kind
def test_without_any_row_the_output_can_be_read(name: str, tmp_path: Path) -> None:
    writer = begun(tmp_path / name)
    writer.end(3)
    writer.close(True)
    if name != "out.jsonl":  # which has nothing to say then
        assert found(tmp_path / name) == []
    again = begun(tmp_path / name, 4, writer)
    again.write_batch(4, table(rows(4, 1, 2)))
    assert found(tmp_path / name) == rows(4, 1, 2)


# -- what each kind does ---------------------------------------------------------------


def test_a_parquet_file_per_batch_with_its_number(tmp_path: Path) -> None:
    writer = begun(tmp_path / "out")
    writer.write_batch(7, table(rows(7, 1, 3)))
    writer.write_batch(12, pa.concat_tables([table(rows(12, 1, 2))] * 100_000))
    names = ["batch-000000000007.parquet", "batch-000000000012.parquet"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    assert pq.read_metadata(tmp_path / "out" / names[1]).num_row_groups == 2


def test_a_crash_inside_a_parquet_file_is_seen_by_no_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(tmp_path / "out")
    driver.batch(2)

    def dies(file: pq.ParquetWriter, rows: pa.Table) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", dies)
        driver.batch(3)
    assert [file.name for file in driver.path.glob(".*")] == [".batch-000000000001.parquet.tmp"]
    assert found(driver.path) == driver.counted
    driver.finish()
    assert not list(driver.path.glob(".*"))


def test_parquet_removes_what_a_crash_left_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "out"
    first, failed = begun(path), None
    for batch in range(3):
        failed = first.delivered() if batch == 2 else None
        first.write_batch(batch, table(rows(batch, 1, 1)))
    first.close(False)
    (path / "notes.txt").touch()
    (path / ".batch-000000000003.parquet.tmp").touch()
    before = sorted(path.iterdir())
    writer = sink(path).open_batches(SCHEMA, Resumed(2, failed))
    assert sorted(path.iterdir()) == before
    writer.begin()
    assert sorted(file.name for file in path.iterdir()) == [
        "batch-000000000000.parquet",
        "batch-000000000001.parquet",
        "notes.txt",
    ]


def test_a_run_on_a_node_overwrites_batches_and_the_other_way_round(tmp_path: Path) -> None:
    path = tmp_path / "out"
    for _ in range(2):
        writer = begun(path, overwrite=True)
        writer.end(0)
        writer.close(True)
        assert [file.name for file in path.iterdir()] == ["batch-000000000000.parquet"]
        Parquet(path, overwrite=True).open(SCHEMA).close(True)
        assert [file.name for file in path.iterdir()] == ["part-00000.parquet"]


def test_the_header_is_written_once(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "out.csv")
    driver.batch(1, commits=False)
    driver.batch(1)
    driver.batch(1, commits=False)
    driver.finish()
    assert (tmp_path / "out.csv").read_text() == "batch,attempt,text\n0,2,xx\n1,4,xxxx\n"


def test_a_file_that_does_not_tell_whose_it_is_is_not_cut(tmp_path: Path) -> None:
    """A run that failed in its first batch finds lines that may be its own, or anybody's."""
    path, schema = tmp_path / "out.txt", Schema(line="string")
    line = pa.table({"line": ["a"]})

    def writer_of(resumed: Resumed | None, **settings: Any) -> BatchWriter:
        return Files(path, **settings).open_batches(schema, resumed)

    first = writer_of(None)
    first.begin()
    new = first.delivered()
    first.write_batch(0, line)
    first.close(False)
    with pytest.raises(RunError, match=r"not empty.*overwrite=True"):
        writer_of(Resumed(0, new))
    assert path.read_text() == "a\n"
    again = writer_of(Resumed(0, new), overwrite=True)
    again.begin()
    again.write_batch(0, line)
    again.close(False)
    last = writer_of(Resumed(1, again.delivered()))
    last.begin()
    last.write_batch(1, line)
    last.close(True)
    assert path.read_text() == "a\na\n"
