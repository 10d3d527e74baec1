from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.connectors.files import journal as file_journal
from penstock.connectors.files import positions as file_positions
from penstock.query.errors import RunError
from penstock.sources import Arrow, Csv, Files, JsonLines, Parquet
from tests.connectors.drain import Drain, RangeDrain


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
    return [part.path.name for part in drain.positions.describe(0, 0, end)]


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
    assert (by_range.resume.position, by_range.resume.offset, by_range.resume.records) == (30, 4, 7)


@given(
    lines=st.lists(st.sampled_from(["7", "12345", "bad", "", "-3", "ä", " "]), max_size=60),
    limits=st.lists(st.integers(1, 20), min_size=1, max_size=5),
    ends=st.booleans(),
)
def test_parts_of_text_are_the_text_wherever_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], limits: list[int], ends: bool
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    for name, header in (("a.csv", "x,y\r\n"), ("b.csv", "\ufeffy,x\n")):
        text = header + "".join(f"{line},{number}\n" if line else "\n" for number, line in enumerate(lines))
        (folder / name).write_text(text if ends else text.removesuffix("\n"))
    check_parts(Csv(folder, {"x": "int64", "y": "string?"}), limits)


@settings(max_examples=15)
@given(rows=st.integers(0, 70), group=st.integers(1, 30), limits=st.lists(st.integers(1, 20), min_size=1))
def test_parts_of_tables_are_the_table_wherever_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory, rows: int, group: int, limits: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    values = [None if number % 7 == 3 else number for number in range(rows)]
    table = pa.table({"x": pa.array(values, pa.int64()), "y": [str(number) for number in range(rows)]})
    schema = {"x": "int64", "y": "string"}
    for name in "ab":
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=group)
        feather.write_feather(table, folder / f"{name}.arrow", chunksize=group)
        with pa.ipc.new_stream(folder / f"{name}.ipc", table.schema) as writer:
            writer.write_table(table, group)
    check_parts(Parquet(folder, schema), limits)
    check_parts(Arrow(folder, schema), limits)


def check_parts(source: Files, limits: list[int]) -> None:
    whole = Drain(source)
    whole.to_end()
    by_range = RangeDrain(source)
    final = by_range.positions.final
    assert final is not None
    for number in range(10_000):
        start = by_range.resume.position
        if start == final[0]:
            break
        (end,) = by_range.positions.latest([start], limits[number % len(limits)])
        assert end > start
        by_range.read(end)
    assert by_range.rows == whole.rows
    assert by_range.bad == whole.reader.take_bad()


def test_a_limit_cuts_tables_by_rows(folder: Path) -> None:
    table = pa.table({"x": list(range(10))})
    for name in "abc":
        pq.write_table(table, folder / f"{name}.parquet")
        feather.write_feather(table, folder / f"{name}.arrow")
    for source in (Parquet(folder), Arrow(folder)):
        positions = source.positions()
        assert positions.final == [30]
        assert [positions.latest([0], limit)[0] for limit in (1, 10, 19, 30, 90, None)] == [
            1,
            10,
            19,
            30,
            30,
            30,
        ]
        assert positions.latest([25], 3) == [28]
        assert positions.latest([30], 1) == [30]
        assert positions.waiting([12]) == 18


def test_a_part_ends_with_a_row_group_if_one_is_near(folder: Path) -> None:
    pq.write_table(pa.table({"x": list(range(100))}), folder / "a.parquet", row_group_size=30)
    positions = Parquet(folder).positions()
    assert positions.latest([0], 40) == [30]
    assert positions.latest([0], 70) == [60]
    assert positions.latest([0], 20) == [20]
    assert positions.latest([20], 20) == [40]  # 10 rows to the group's end would be too few
    assert positions.latest([20], 19) == [30]


def test_long_files_of_text_are_cut_at_lines(folder: Path) -> None:
    write(folder, "a.jsonl", *['{"x": 1}'] * 50_000)
    write(folder, "b.jsonl", *['{"x": 1}'] * 50_000)
    positions = JsonLines(folder, {"x": "int64"}).positions()
    assert positions.final == [900_000]
    assert positions.latest([0], 20_000) == [180_000]
    assert positions.latest([180_000], 40_000) == [540_000]
    assert positions.waiting([450_000]) == 50_000


def test_a_compressed_file_of_text_is_read_in_one_piece(folder: Path) -> None:
    for name in "ab":
        with gzip.open(folder / f"{name}.jsonl.gz", "wt") as file:
            file.write('{"x": 1}\n' * 1_000)
    source = JsonLines(folder, {"x": "int64"})
    positions = source.positions()
    assert positions.final is not None
    (first,) = positions.latest([0], 10)
    assert positions.final == [2 * first]
    assert len(RangeDrain(source).to_end(10)) == 2_000


def test_an_event_is_as_large_as_its_columns_or_its_text(folder: Path) -> None:
    write(folder, "a.jsonl", *['{"x": 1, "comment": "' + 79 * "x" + '"}'] * 100)
    assert JsonLines(folder, {"x": "int64"}).positions().event_bytes([0]) == 103
    write(folder, "a.csv", "x", *range(9))
    assert Csv(folder, {"x": "int64"}).positions().event_bytes([0]) == 8
    pq.write_table(pa.table({"x": [f"{number:0200}" for number in range(1_000)]}), folder / "a.parquet")
    found = Parquet(folder).positions().event_bytes([0])
    assert found is not None
    assert 200 <= found < 300


def test_a_watched_folder_keeps_the_order_of_finding_over_restarts(folder: Path, tmp_path: Path) -> None:
    journal = str(tmp_path / "journal")
    drain = RangeDrain(watched(folder), journal)
    assert drain.positions.final is None
    assert drain.positions.latest([0], None) == [0]
    write(folder, "m.csv", "x", 1)
    assert drain.positions.latest([0], None) == [4]
    write(folder, "a.csv", "x", 2)
    write(folder, "z.csv", "x", 3)
    assert drain.positions.latest([4], None) == [12]
    again = RangeDrain(watched(folder), journal)
    write(folder, "b.csv", "x", 4)
    assert again.positions.latest([4], None) == [16]
    assert names(again, 16) == ["m.csv", "a.csv", "z.csv", "b.csv"]
    again.read(16)
    assert [row["x"] for row in again.rows] == [1, 2, 3, 4]


def test_many_entries_of_a_journal_become_one(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_journal, "_ENTRIES", 3)
    journal = tmp_path / "journal"
    drain = RangeDrain(watched(folder), str(journal))
    order = ["f", "c", "g", "a", "e", "d", "b"]
    for place, name in enumerate(order):
        write(folder, f"{name}.csv", "x", 1)
        if place == 3:
            kept = tmp_path / "kept"
            shutil.copytree(journal, kept)
        assert drain.positions.latest([0], None) == [4 * place + 4]
    assert len(list(journal.iterdir())) == 3
    expected = [f"{name}.csv" for name in order]
    assert names(RangeDrain(watched(folder), str(journal)), 28) == expected
    mark = drain.positions.mark([28])
    # as after a crash in the middle of merging, with the first of the merged entries removed
    for old in sorted(kept.iterdir())[2:]:
        shutil.copy(old, journal)
    survivor = RangeDrain(watched(folder), str(journal))
    assert survivor.positions.latest([0], None) == [28]
    assert survivor.positions.mark([28]) == mark
    assert names(survivor, 28) == expected


# -- what has changed --------------------------------------------------------------------------------------


def test_files_that_changed_since_are_an_error(folder: Path, tmp_path: Path) -> None:
    journal = str(tmp_path / "journal")
    write(folder, "a.csv", "x", 1)
    write(folder, "b.csv", "x", 2)
    source = Csv(folder, {"x": "int64"})
    assert source.positions(journal).final == [8]
    assert source.positions(journal).final == [8]
    write(folder, "c.csv", "x", 2)
    with pytest.raises(RunError, match=r"files of a source changed since.*c\.csv' is new;.*watch=True"):
        source.positions(journal)
    (folder / "a.csv").unlink()
    with pytest.raises(RunError, match=r"a\.csv' is gone and 1 more"):
        source.positions(journal)
    with pytest.raises(RunError, match=r"a\.csv' is gone; put them back"):
        source.check_input(journal, 8, None)


def test_other_content_is_noticed_and_another_time_alone_is_not(folder: Path, tmp_path: Path) -> None:
    journal = str(tmp_path / "journal")
    write(folder, "a.csv", "x", *range(100_000, 150_000))
    source = Csv(folder, {"x": "int64"})
    source.positions(journal)
    os.utime(folder / "a.csv", ns=(1, 1))
    assert source.check_input(journal, 4, None) == []
    with (folder / "a.csv").open("r+b") as file:
        file.seek(-3, os.SEEK_END)
        file.write(b"8")
    with pytest.raises(RunError, match=r"a\.csv' has other content; put them back"):
        source.check_input(journal, 4, None)
    write(folder, "a.csv", "x", 1)
    with pytest.raises(RunError, match=r"a\.csv' has 4 bytes, it had 350,002;"):
        source.positions(journal)


def test_of_a_watched_folder_what_was_read_is_told_and_what_is_not_must_be_there(
    folder: Path, tmp_path: Path
) -> None:
    journal = str(tmp_path / "journal")
    for name in "abcd":
        write(folder, f"{name}.csv", "x", 1, 2)
    source = watched(folder)
    assert source.positions(journal).latest([0], None) == [24]
    assert source.check_input(journal, 20, None) == []
    (folder / "a.csv").unlink()
    write(folder, "b.csv", "x", 1, 2, 3)
    write(folder, "e.csv", "x", 1)  # later than the checkpoint: nothing to tell
    changed, gone = source.check_input(journal, 20, None)
    assert changed.endswith("b.csv' has 8 bytes, it had 6, and has been read as it was")
    assert gone.endswith("a.csv', read before, is gone")
    write(folder, "d.csv", "x", 1, 2, 3)
    with pytest.raises(RunError, match=r"d\.csv' has 8 bytes, it had 6;"):  # read in part
        source.check_input(journal, 20, None)
    (folder / "d.csv").unlink()
    with pytest.raises(RunError, match=r"d\.csv' is gone;"):
        source.check_input(journal, 20, None)


@pytest.mark.parametrize("watch", [False, True])
def test_files_of_which_nothing_was_read_may_be_mended_come_and_go(
    watch: bool, folder: Path, tmp_path: Path
) -> None:
    journal = str(tmp_path / "journal")
    for name in "abcde":
        write(folder, f"{name}.csv", "x", 1, 2)
        if watch:  # one that ends has all its files from the start
            watched(folder).positions(journal).latest([0], None)
    source = Csv(folder, {"x": "int64"}, watch=watch)
    assert source.positions(journal).latest([8], None) == [30]
    write(folder, "c.csv", "x", 1, 2, 3)
    (folder / "d.csv").unlink()
    write(folder, "bb.csv", "x", 1)
    mended, gone, *new = source.check_input(journal, 8, None)
    assert mended.endswith("c.csv', of which nothing was read, has 8 bytes, it had 6")
    assert gone.endswith("d.csv', of which nothing was read, is gone")
    assert [told.endswith("bb.csv' is new") for told in new] == ([] if watch else [True])
    mark = source.positions(journal).mark([8]) if watch else None
    source.begin_run(journal, 8)
    source.begin_run(journal, 8)  # nothing is left to do
    positions = source.positions(journal)
    assert positions.latest([8], None) == [30]
    assert mark in (None, positions.mark([8]))
    order = [part.path.name for part in positions.describe(0, 0, 30)]
    # Of a watched folder the order of finding counts, else that of names.
    assert order == [
        f"{name}.csv" for name in (["a", "b", "e", "bb", "c"] if watch else ["a", "b", "bb", "c", "e"])
    ]
    assert source.check_input(journal, 8, None) == []


def test_a_file_that_changes_before_it_is_read_is_an_error(folder: Path, tmp_path: Path) -> None:
    write(folder, "a.csv", "x", 1, 2)
    drain = RangeDrain(watched(folder), str(tmp_path / "journal"))
    assert drain.positions.latest([0], None) == [6]
    write(folder, "a.csv", "x", 1, 2, 3)
    with pytest.raises(RunError, match=r"a\.csv' has 8 bytes, it had 6 since it was found: .* put it back"):
        drain.read(6)


def test_a_journal_of_another_checkpoint_is_an_error(folder: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    write(folder, "a.csv", "x", 1)
    source = watched(folder)
    positions = source.positions(str(journal))
    assert positions.mark([0]) == "0:"
    assert positions.latest([0], None) == [4]
    mark = positions.mark([4])
    assert mark is not None
    assert source.check_input(str(journal), 4, mark) == []
    write(folder, "b.csv", "x", 1)
    assert positions.latest([4], None) == [8]
    assert source.check_input(str(journal), 4, mark) == []  # what was found later does not matter
    shutil.rmtree(journal)
    with pytest.raises(RunError, match=r"1 files had been begun, the one in '.*' has 0 files; restore both"):
        source.check_input(str(journal), 4, mark)
    write(folder, "a.csv", "x", 2)
    source.positions(str(journal)).latest([0], None)
    with pytest.raises(RunError, match="names other files"):
        source.check_input(str(journal), 4, mark)


def test_a_lost_journal_is_an_error(folder: Path, tmp_path: Path) -> None:
    write(folder, "a.csv", "x", 1)
    positions = watched(folder).positions(str(tmp_path / "journal"))
    with pytest.raises(RunError, match=r"read up to 5, but .* end at 0: the journal of the source is lost"):
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
