"""What a manifest says of a sink is enough to check its output, to verify it and to go back to it."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.deliveries import delivery_of
from penstock.connectors.delivery import Delivery
from penstock.connectors.writer import BatchWriter, NodeSink, Resumed
from penstock.query.errors import RunError
from penstock.sinks import Arrow, Csv, JsonLines, Parquet
from tests.connectors.batches import ROWS, SCHEMA, batch, begun

KINDS: dict[str, Callable[..., NodeSink]] = {
    "out": Parquet,
    "arrow": Arrow,
    "out.csv": Csv,
    "out.jsonl": JsonLines,
}
every_kind = pytest.mark.parametrize("name", list(KINDS))
text_kinds = pytest.mark.parametrize("name", ["out.csv", "out.jsonl"])


def table(count: int = 3) -> pa.Table:
    return pa.Table.from_batches([batch(ROWS * count)])


def sink(path: Path, **settings: Any) -> NodeSink:
    return KINDS[path.name](path, **settings)


def delivered_by(writer: BatchWriter) -> dict[str, Any]:
    """As a manifest gives it back."""
    plain: dict[str, Any] = json.loads(json.dumps(writer.delivered()))
    return plain


def run(path: Path, batches: int) -> list[dict[str, Any]]:
    """So many batches, of which every third has no rows, and what was delivered before each and at the
    end."""
    writer = begun(sink(path))
    told = [delivered_by(writer)]
    for number in range(batches):
        if number % 3 != 2:
            writer.write_batch(number, table(number + 1))
        told.append(delivered_by(writer))
    writer.close(False)
    return told


def delivery(plain: Mapping[str, Any]) -> Delivery:
    known = delivery_of(plain)
    assert known is not None
    return known


def refused(path: Path, batch: int, delivered: Mapping[str, Any], **settings: Any) -> str:
    """Why a run does not go on; nothing was touched, and nothing stays locked."""
    before = snapshot(path.parent)
    with pytest.raises(RunError) as error:
        sink(path, **settings).open_batches(SCHEMA, Resumed(batch, delivered))
    assert snapshot(path.parent) == before
    assert "overwrite" not in str(error.value)
    return str(error.value)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def goes_on(path: Path, batch: int, delivered: Mapping[str, Any], **settings: Any) -> None:
    begun(sink(path, **settings), SCHEMA, Resumed(batch, delivered)).close(False)


# -- every kind ----------------------------------------------------------------------------------------------


@every_kind
def test_nothing_beside_the_output_is_needed_to_go_on(name: str, tmp_path: Path) -> None:
    """As after ``cp *``, ``rsync`` or ``git clean``, which leave hidden files behind."""
    path = tmp_path / name
    told = run(path, 5)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    before = snapshot(tmp_path)
    goes_on(path, 5, told[-1])
    goes_on(path, 5, told[-1], overwrite=True)
    assert snapshot(tmp_path) == before


@every_kind
def test_every_kept_version_is_checked_verified_and_gone_back_to(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    told = run(path, 8)
    for version in range(8, -1, -1):
        of_version = delivery(told[version])
        for later in range(version, -1, -1):  # of the same output, as it is now
            assert delivery(told[later]).check(later) is None
            assert delivery(told[later]).verify(later) is None
        of_version.roll_back(version)
        assert of_version.verify(version) is None
        run(tmp_path / str(version) / name, version)
        assert contents(path) == contents(tmp_path / str(version) / name)


def contents(path: Path) -> dict[str, bytes]:
    return snapshot(path) if path.is_file() else {file.name: file.read_bytes() for file in path.iterdir()}


@every_kind
def test_any_byte_that_is_changed_is_found_by_reading(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    told = run(path, 5)
    files = [path] if path.is_file() else sorted(path.iterdir())
    choose = random.Random(5)
    for _ in range(40):
        file = choose.choice(files)
        data = file.read_bytes()
        place = choose.randrange(len(data))
        file.write_bytes(data[:place] + bytes([data[place] ^ choose.randrange(1, 256)]) + data[place + 1 :])
        assert "changed" in (delivery(told[-1]).verify(5) or "")
        file.write_bytes(data)
    assert delivery(told[-1]).verify(5) is None


@every_kind
def test_an_output_that_is_gone_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    told = run(path, 5)
    aside = path.rename(tmp_path / "aside")
    for settings in ({}, {"overwrite": True}):
        why = refused(path, 5, told[-1], **settings)
        assert "had been delivered" in why
        assert "bring it back as it was, go back to before it with 'penstock checkpoint rollback', or" in why
    aside.rename(path)
    goes_on(path, 5, told[-1])


@every_kind
def test_another_working_directory_is_told_and_gets_no_new_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(home)
    told = run(Path(name), 2)
    assert told[-1]["path"] == str(home / name)
    monkeypatch.chdir(elsewhere)
    why = refused(Path(name), 2, told[-1])
    assert f"cannot go on with '{elsewhere / name}'" in why
    assert f"into '{home / name}'; give that path" in why
    assert not list(elsewhere.iterdir())
    monkeypatch.chdir(home)
    goes_on(Path(name), 2, told[-1])


@every_kind
def test_the_same_place_under_another_name_is_gone_on_with(name: str, tmp_path: Path) -> None:
    """As when a disk is mounted elsewhere, and a link left where it was."""
    moved = tmp_path / "moved" / name
    moved.parent.mkdir()
    path = tmp_path / name
    told = run(path, 2)
    path.rename(moved)
    path.symlink_to(moved)
    writer = begun(sink(moved), SCHEMA, Resumed(2, told[-1]))
    assert writer.delivered() == {**told[-1], "path": str(moved)}
    writer.close(False)


@every_kind
def test_a_sink_of_another_kind_is_refused_until_it_has_another_name(name: str, tmp_path: Path) -> None:
    told = run(tmp_path / name, 2)
    other = "out.csv" if name == "out.jsonl" else "out.jsonl"
    why = refused(tmp_path / other, 2, told[-1])
    assert "the sink was of kind" in why
    assert "leave it as it was, or give the new one another name" in why
    goes_on(tmp_path / other, 2, told[0])  # it had delivered nothing


@every_kind
def test_a_sink_that_has_delivered_nothing_may_move_or_lose_its_place(name: str, tmp_path: Path) -> None:
    told = run(tmp_path / name, 0)[0]
    goes_on(tmp_path / "new" / name, 4, told)
    path = tmp_path / name
    path.rmdir() if path.is_dir() else path.unlink()
    goes_on(path, 4, told)


@every_kind
def test_one_writer_at_a_time(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    told = run(path, 2)
    resumed = Resumed(2, told[-1])
    first = sink(path).open_batches(SCHEMA, resumed)  # from when it is opened
    before = snapshot(tmp_path)
    for again in (resumed, None):
        with pytest.raises(RunError, match=r"is being written by another run: stop it first"):
            sink(path, overwrite=True).open_batches(SCHEMA, again)
    with pytest.raises(RunError, match=r"is being written by another run: stop it first"):
        sink(path, overwrite=True).open(SCHEMA)
    assert snapshot(tmp_path) == before
    first.close(False)
    on_a_node = sink(path, overwrite=True).open(SCHEMA)
    with pytest.raises(RunError, match=r"is being written by another run: stop it first"):
        sink(path, overwrite=True).open_batches(SCHEMA, None)
    on_a_node.close(True)
    begun(sink(path, overwrite=True)).close(False)


@every_kind
def test_an_output_made_by_another_run_meanwhile_is_not_taken(name: str, tmp_path: Path) -> None:
    """Both were opened when nothing was there; the one that begins first has it."""
    first, second = (sink(tmp_path / name).open_batches(SCHEMA, None) for _ in range(2))
    first.begin()
    with pytest.raises(RunError, match=r"is being written by another run"):
        second.begin()
    second.close(False)
    first.write_batch(0, table())
    assert delivery(delivered_by(first)).verify(1) is None


# -- files of text -------------------------------------------------------------------------------------------


@text_kinds
def test_a_file_that_is_shorter_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    told = run(path, 2)[-1]
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    assert f"it has {len(data) - 1:,} bytes, and {len(data):,} bytes had been delivered" in refused(
        path, 2, told
    )


@text_kinds
def test_another_file_of_the_same_or_greater_length_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    told = run(path, 2)[-1]
    data = path.read_bytes()
    for other in (data[::-1], data + data, b"x" * len(data) + data[:10], b"x" + data):
        expected = other[: len(data)][-4096:] != data[-4096:]
        path.write_bytes(other)
        if expected:
            assert "it is another file or was changed" in refused(path, 2, told)
        else:
            goes_on(path, 2, told)
            assert path.read_bytes() == data


@text_kinds
def test_rows_that_did_not_count_are_cut_off_when_the_run_begins(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    told = run(path, 5)
    data = path.read_bytes()
    writer = sink(path).open_batches(SCHEMA, Resumed(4, told[4]))
    assert path.read_bytes() == data
    writer.close(False)
    assert path.read_bytes() == data
    goes_on(path, 4, told[4])
    assert path.read_bytes() == data[: told[4]["bytes"]]


@text_kinds
def test_a_file_taken_away_while_it_is_written_ends_the_run(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    writer = begun(sink(path))
    writer.write_batch(0, table())
    path.rename(tmp_path / "aside")
    with pytest.raises(RunError, match="was removed or replaced while the run writes it"):
        writer.write_batch(1, table())
    path.write_text("another")
    with pytest.raises(RunError, match="was removed or replaced while the run writes it"):
        writer.write_batch(1, table())
    assert path.read_text() == "another"


def test_a_checksum_goes_on_over_many_batches_and_restarts(tmp_path: Path) -> None:
    """Also when the bytes by which a file is known come from several batches, or from one alone."""
    path, told = tmp_path / "out.jsonl", None
    for number, count in enumerate((1, 2, 100, 1, 1, 300, 1)):
        resumed = None if told is None else Resumed(number, told)
        writer = begun(sink(path), SCHEMA, resumed)
        for _ in range(2):  # the second attempt counts
            writer.write_batch(number, table(count))
        told = delivered_by(writer)
        writer.close(False)
        assert told["bytes"] == path.stat().st_size
        assert delivery(told).verify(number + 1) is None


# -- folders of Parquet files --------------------------------------------------------------------------------


def part(path: Path, number: int) -> Path:
    return path / f"batch-{number:012}.parquet"


def test_the_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "out"
    told = run(path, 8)[-1]
    for number in (0, 3, 7):
        data = part(path, number).read_bytes()
        part(path, number).unlink()
        assert f"batch-{number:012}.parquet is missing; bring it back" in refused(path, 8, told)
        part(path, number).write_bytes(data)
    goes_on(path, 8, told)


def test_a_file_of_another_size_is_named(tmp_path: Path) -> None:
    path = tmp_path / "out"
    told = run(path, 8)[-1]
    shutil.copy(part(path, 1), part(path, 4))
    size = part(path, 1).stat().st_size
    assert f"batch-000000000004.parquet has {size:,} bytes, which is not what was" in refused(path, 8, told)


def test_a_file_that_nobody_delivered_is_named(tmp_path: Path) -> None:
    path = tmp_path / "out"
    told = run(path, 8)[-1]
    shutil.copy(part(path, 1), part(path, 5))  # which had no rows
    assert "batch-000000000005.parquet was not delivered by this checkpoint's runs" in refused(path, 8, told)


def test_several_missing_files_are_counted_and_named_where_every_batch_had_rows(tmp_path: Path) -> None:
    path = tmp_path / "out"
    told = run(path, 8)[-1]
    for number in (1, 3):
        part(path, number).unlink()
    assert "2 of 6 files are missing, which ended with batch-000000000007.parquet" in refused(path, 8, told)
    dense = tmp_path / "dense" / "out"
    writer = begun(sink(dense))
    for number in range(9):
        writer.write_batch(number, table())
    writer.close(False)
    for number in range(2, 8):
        part(dense, number).unlink()
    names = ", ".join(f"batch-{number:012}.parquet" for number in range(2, 7))
    assert f"6 of 9 files are missing: {names}, …; bring" in refused(dense, 9, delivered_by(writer))


def test_several_other_files_are_told_as_well(tmp_path: Path) -> None:
    path = tmp_path / "out"
    told = run(path, 8)[-1]
    for number in (0, 1):
        shutil.copy(part(path, 7), part(path, number))
    assert "of 6 files more than one has another name or size" in refused(path, 8, told)
    for number in (2, 5):
        shutil.copy(part(path, 7), part(path, number))
    assert "2 files are there that were not delivered" in refused(path, 8, told)


def test_what_is_said_of_a_folder_does_not_grow(tmp_path: Path) -> None:
    told = run(tmp_path / "out", 30)
    assert max(len(json.dumps(one)) for one in told) < len(json.dumps(told[1])) + 20
    assert (told[-1]["files"], told[-1]["last"]) == (20, 28)
    assert told[-1]["bytes"] == sum(os.path.getsize(file) for file in (tmp_path / "out").iterdir())


def test_what_cannot_be_looked_at_is_none() -> None:
    assert delivery_of({"kind": "callback"}) is None
    assert delivery_of({"kind": "SomebodysOwn"}) is None
