from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from penstock.engine.sources import file_positions
from penstock.query.errors import RunError
from penstock.sources import Arrow, Csv, Files, JsonLines, Parquet
from tests.engine.sources.drain import Drain, RangeDrain


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    return made


@pytest.fixture(autouse=True)
def _every_look_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is: a folder that takes long to list is listed less often."""
    monkeypatch.setattr(file_positions, "_QUICK_NS", 10**12)


def write(folder: Path, name: str, *lines: object) -> None:
    (folder / name).write_text("".join(f"{line}\n" for line in lines))


def watched(folder: Path) -> Files:
    return Csv(folder, {"x": "int64"}, watch=True)


def names(drain: RangeDrain, end: int) -> list[str]:
    return [Path(path).name for path in drain.positions.describe(0, 0, end)]


def test_files_in_ranges_are_the_files_as_a_whole(folder: Path) -> None:
    write(folder, "a.csv", "x", 1, "bad", 2)
    write(folder, "b.csv", "x", "worse")
    write(folder, "c.csv", "x", 3, "worst", 4)
    source = Csv(folder, {"x": "int64"})
    whole = Drain(source)
    whole.to_end()
    by_range = RangeDrain(source)
    by_range.to_end(1, (2, 1))
    assert by_range.rows == whole.rows == [{"x": 1}, {"x": 2}, {"x": 3}, {"x": 4}]
    assert by_range.bad == whole.reader.take_bad()
    assert [bad.offset for bad in by_range.bad] == [1, 3, 5]
    assert (by_range.resume.position, by_range.resume.offset, by_range.resume.records) == (3, 4, 7)


def test_a_limit_counts_events_and_lets_one_file_pass(folder: Path) -> None:
    table = pa.table({"x": list(range(10))})
    for name in "abc":
        pq.write_table(table, folder / f"{name}.parquet")
        feather.write_feather(table, folder / f"{name}.arrow")
        write(folder, f"{name}.jsonl", *['{"x": 1}'] * 9)
    for source in (Parquet(folder), Arrow(folder), JsonLines(folder)):
        positions = source.positions()
        assert positions.final == [3]
        assert [positions.latest([0], limit)[0] for limit in (1, 10, 19, 20, 30, None)] == [1, 1, 1, 2, 3, 3]
        assert positions.latest([2], 1) == [3]
        assert positions.latest([3], 1) == [3]


def test_long_files_of_text_are_judged_by_their_beginning(folder: Path) -> None:
    write(folder, "a.csv", "x", *range(100_000, 150_000))
    write(folder, "b.csv", "x", *range(100_000, 150_000))
    positions = Csv(folder, {"x": "int64"}).positions()
    assert positions.latest([0], 90_000) == [1]
    assert positions.latest([0], 110_000) == [2]


def test_a_watched_folder_keeps_the_order_of_finding_over_restarts(folder: Path, tmp_path: Path) -> None:
    journal = str(tmp_path / "journal")
    drain = RangeDrain(watched(folder), journal)
    assert drain.positions.final is None
    assert drain.positions.latest([0], None) == [0]
    write(folder, "m.csv", "x", 1)
    assert drain.positions.latest([0], None) == [1]
    write(folder, "a.csv", "x", 2)
    write(folder, "z.csv", "x", 3)
    assert drain.positions.latest([1], None) == [3]
    again = RangeDrain(watched(folder), journal)
    write(folder, "b.csv", "x", 4)
    assert again.positions.latest([1], None) == [4]
    assert names(again, 4) == ["m.csv", "a.csv", "z.csv", "b.csv"]
    again.read(2)
    again.read(4)
    assert [row["x"] for row in again.rows] == [1, 2, 3, 4]


def test_many_entries_of_a_journal_become_one(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_positions, "_ENTRIES", 3)
    journal = tmp_path / "journal"
    drain = RangeDrain(watched(folder), str(journal))
    order = ["f", "c", "g", "a", "e", "d", "b"]
    for place, name in enumerate(order):
        write(folder, f"{name}.csv", "x", 1)
        if place == 3:
            kept = tmp_path / "kept"
            shutil.copytree(journal, kept)
        assert drain.positions.latest([0], None) == [place + 1]
    assert len(list(journal.iterdir())) == 3
    expected = [f"{name}.csv" for name in order]
    assert names(RangeDrain(watched(folder), str(journal)), 7) == expected
    # as after a crash in the middle of merging, with the first of the merged entries removed
    for old in sorted(kept.iterdir())[2:]:
        shutil.copy(old, journal)
    survivor = RangeDrain(watched(folder), str(journal))
    assert survivor.positions.latest([0], None) == [7]
    assert names(survivor, 7) == expected


def test_files_that_changed_since_are_an_error(folder: Path, tmp_path: Path) -> None:
    journal = str(tmp_path / "journal")
    write(folder, "a.csv", "x", 1)
    write(folder, "b.csv", "x", 2)
    source = Csv(folder, {"x": "int64"})
    assert source.positions(journal).final == [2]
    assert source.positions(journal).final == [2]
    write(folder, "c.csv", "x", 2)
    with pytest.raises(RunError, match=r"files of a source changed since.*c\.csv' is new;.*watch=True"):
        source.positions(journal)
    (folder / "a.csv").unlink()
    with pytest.raises(RunError, match=r"a\.csv' is gone and 1 more"):
        source.positions(journal)


def test_a_lost_journal_is_an_error(folder: Path, tmp_path: Path) -> None:
    write(folder, "a.csv", "x", 1)
    positions = watched(folder).positions(str(tmp_path / "journal"))
    with pytest.raises(RunError, match=r"5 files were read, but only .* the journal of the source is lost"):
        positions.latest([5], None)


def test_a_broken_journal_is_an_error(folder: Path, tmp_path: Path) -> None:
    write(folder, "a.csv", "x", 1)
    journal = tmp_path / "journal"
    watched(folder).positions(str(journal)).latest([0], None)
    (entry,) = journal.iterdir()
    entry.write_text("[")
    with pytest.raises(RunError, match=r"cannot read 'files-000000000000\.json' in the journal"):
        watched(folder).positions(str(journal))
    entry.rename(journal / "files-000000000002.json")
    with pytest.raises(RunError, match="has a gap"):
        watched(folder).positions(str(journal))
