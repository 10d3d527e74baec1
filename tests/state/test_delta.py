"""Deltas: whatever changes between versions, a chain of files gives the state that was written, exactly."""

from __future__ import annotations

import random
import struct
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.state.delta import Base
from penstock.state.groups import grouped
from penstock.state.manifest import FileEntry, Manifest
from penstock.state.row_hash import can_hash, row_hashes
from penstock.state.store import StateStore
from penstock.state.tables import StateTables

V = 6
RUN = "run"
OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000123))[0]

SCHEMAS = [
    pa.schema(
        [
            pa.field("$hash", pa.int64(), False),
            pa.field("town", pa.dictionary(pa.int32(), pa.string())),
            pa.field("x", pa.float64()),
            pa.field("seen", pa.bool_()),
        ]
    ),
    pa.schema(
        [
            pa.field("$hash", pa.int64(), False),
            pa.field("text", pa.string()),
            pa.field("y", pa.float32()),
            pa.field("n", pa.int32()),
            pa.field("at", pa.timestamp("us", tz="UTC")),
        ]
    ),
]
VALUES: dict[str, list[Any]] = {
    "$hash": [-7, 0, 1, 42, 2**63 - 1],
    "town": [None, "", "a", "b", "é", "a town with a long name", "a town with a long name\0"],
    "x": [None, 0.0, -0.0, 1.5, float("nan"), OTHER_NAN, float("inf")],
    "seen": [None, True, False],
    "text": [None, "", "\0", "\0\0", "eight by", "eight byt"],
    "y": [None, 0.0, -0.0, float("nan"), 2.5],
    "n": [None, 0, 1, -1],
    "at": [None, 0, 1],
}
Row = tuple[Any, ...]
#: Rows by operator, table and number of the schema.
Rows = dict[tuple[str, str, int], list[Row]]


def exact(value: Any) -> Any:
    return struct.pack("<d", value) if isinstance(value, float) else value


def table(schema: pa.Schema, rows: list[Row], shuffled: random.Random) -> pa.Table:
    columns = []
    for number, field in enumerate(schema):
        values = [row[number] for row in rows]
        if pa.types.is_dictionary(field.type):
            words = sorted({value for value in values if value is not None} | {"of nobody"})
            shuffled.shuffle(words)  # codes mean nothing
            codes = [None if value is None else words.index(value) for value in values]
            columns.append(pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(words)))
        elif pa.types.is_floating(field.type):
            # By way of numpy: Arrow makes all NaNs of Python one.
            data = np.array(
                [0.0 if value is None else value for value in values], field.type.to_pandas_dtype()
            )
            columns.append(pa.array(data, mask=np.array([value is None for value in values], bool)))
        else:
            columns.append(pa.array(values, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def state_of(rows: Rows, shuffled: random.Random) -> dict[str, StateTables]:
    state: dict[str, StateTables] = {}
    for (operator, name, schema), listed in rows.items():
        state.setdefault(operator, {})[f"{name}{schema}"] = table(SCHEMAS[schema], listed, shuffled)
    return state


def counted(state: dict[str, StateTables]) -> Counter[Row]:
    """All rows with the bits of their floats."""
    found: Counter[Row] = Counter()
    for operator, tables in state.items():
        for name, rows in tables.items():
            assert rows.num_rows > 0
            columns = []
            for field in rows.schema:
                column = rows[field.name]
                if pa.types.is_timestamp(field.type):
                    column = column.cast(pa.int64())
                if pa.types.is_floating(field.type):
                    nulls = column.is_null().to_pylist()
                    bits = column.fill_null(0).to_numpy().view(f"u{field.type.bit_width // 8}").tolist()
                    columns.append([None if null else bit for bit, null in zip(bits, nulls, strict=True)])
                else:
                    columns.append(column.to_pylist())
            found.update((operator, name, *row) for row in zip(*columns, strict=True))
    return found


def random_row(schema: int, source: random.Random) -> Row:
    return tuple(source.choice(VALUES[field.name]) for field in SCHEMAS[schema])


def changed(rows: Rows, source: random.Random) -> Rows:
    after: Rows = {}
    for key, listed in rows.items():
        fate = source.random()
        if fate < 0.1:
            continue
        listed = list(listed)
        if fate < 0.8:
            for _ in range(source.randrange(4)):
                if listed and source.random() < 0.6:
                    del listed[source.randrange(len(listed))]
                place = source.choice([len(listed), source.randrange(len(listed) + 1)])
                listed.insert(place, random_row(key[2], source))
                if source.random() < 0.3:
                    listed.append(source.choice(listed))
        if fate > 0.9:
            source.shuffle(listed)
        after[key] = listed
    if source.random() < 0.3:
        key = (source.choice("abc"), source.choice(["l", "r"]), source.randrange(2))
        after[key] = [random_row(key[2], source) for _ in range(source.randrange(30))]
    return after


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 5))
def test_a_chain_gives_exactly_what_was_written(seed: int, chain_limit: int) -> None:
    source = random.Random(seed)
    rows: Rows = {
        (operator, name, schema): [random_row(schema, source) for _ in range(source.randrange(40))]
        for operator in "abc"
        for name in ("l", "r")
        for schema in (0, 1)
        if source.random() < 0.7
    }
    with tempfile.TemporaryDirectory() as root:
        store = StateStore(root, chain_limit=chain_limit, small_bytes=0)
        base = None
        chains = []
        for version in range(1, 9):
            state = state_of(rows, source)
            if source.random() < 0.1:
                base = None  # another process
            entry, base = store.write(version, 0, version, RUN, state, V, base)
            manifest = Manifest(version, RUN, V, files=() if entry is None else (entry,))
            store.commit(manifest)
            store.collect(keep_versions=1)
            chains.append(0 if entry is None else len(entry.chain))
            written = counted(
                {name: {t: r for t, r in tables.items() if r.num_rows} for name, tables in state.items()}
            )
            assert counted(store.read(version, None, range(V))) == written
            operators, partitions = set(source.sample("abcd", 2)), source.sample(range(V), 3)
            assert counted(store.read(manifest, operators, partitions)) == Counter(
                {
                    row: count
                    for row, count in written.items()
                    if row[0] in operators and row[2] % V in partitions
                }
            )
            rows = changed(rows, source)
        assert max(chains) <= chain_limit


def test_rows_that_differ_in_anything_have_different_hashes() -> None:
    source = random.Random(1)
    for schema in (0, 1):
        listed = list(
            {
                tuple(map(exact, row)): row for row in (random_row(schema, source) for _ in range(3_000))
            }.values()
        )
        made = table(SCHEMAS[schema], listed, source)
        (group,) = grouped({"a": {"t": made}, "b": {"t": table(SCHEMAS[schema], listed, source)}})
        hashes = list(zip(*(each.tolist() for each in row_hashes(group)), strict=True))
        bits = set(counted({"a": {"t": made}}))
        assert len(set(hashes)) == len(hashes) == 2 * len(bits)
        for lane in row_hashes(group):
            assert len(set(lane.tolist())) == len(hashes)
        again = {"a": {"t": table(SCHEMAS[schema], listed, source).slice(3)}}
        (part,) = grouped(again)
        assert list(zip(*(each.tolist() for each in row_hashes(part)), strict=True)) == hashes[3 : len(bits)]


def big(count: int, start: int = 0, add: int = 0) -> dict[str, StateTables]:
    keys = np.arange(start, start + count)
    texts = pa.array([f"town {key % 100}" for key in keys.tolist()]).dictionary_encode()
    return {"step": {"rows": pa.table({"$hash": keys, "town": texts, "sum": keys + add * (keys % 100 == 0)})}}


def step(
    store: StateStore, version: int, state: dict[str, StateTables], base: Base | None
) -> tuple[FileEntry, Base | None]:
    entry, base = store.write(version, 0, 0, RUN, state, V, base)
    assert entry is not None
    store.commit(Manifest(version, RUN, V, files=(entry,)))
    assert counted(store.read(version, None, range(V))) == counted(state)
    return entry, base


def test_a_delta_has_only_what_changed_and_a_long_chain_is_compacted(tmp_path: Path) -> None:
    store = StateStore(tmp_path, chain_limit=3, small_bytes=0)
    base, sizes, chains = None, [], []
    for version in range(1, 10):
        entry, base = step(store, version, big(20_000, add=version), base)
        sizes.append(entry.bytes)
        chains.append(len(entry.chain))
        assert entry.rows == 20_000
        assert FileEntry.from_json(entry.to_json()) == entry
    assert chains == [0, 1, 2, 3, 0, 1, 2, 3, 0]
    assert all((size < sizes[0] / 20) == (chain > 0) for size, chain in zip(sizes, chains, strict=True))


def test_rows_that_move_cost_nothing(tmp_path: Path) -> None:
    store = StateStore(tmp_path, small_bytes=0)
    first, base = step(store, 1, big(20_000), None)
    shifted, base = step(store, 2, big(20_000, start=5), base)  # 5 went, 5 came
    assert shifted.bytes < first.bytes / 50
    turned = {
        "step": {
            "rows": big(20_000, start=5)["step"]["rows"].take(np.random.default_rng(1).permutation(20_000))
        }
    }
    same, base = step(store, 3, turned, base)
    assert same == shifted  # the same rows: no file at all
    assert len(list((tmp_path / "data").iterdir())) == 2


def test_what_changes_for_the_most_part_is_written_whole_and_soon_not_even_compared(tmp_path: Path) -> None:
    store = StateStore(tmp_path, small_bytes=0)
    base, kept = None, []
    for version in range(1, 12):
        entry, base = step(store, version, big(1_000, start=1_000 * version), base)
        assert entry.chain == ()
        assert base is not None
        kept.append(base.nbytes > 0)
    # Compared in versions 2, 3, 6 and 11; the hashes for it are of the version before each.
    assert [version for version, has in enumerate(kept, 1) if has] == [1, 2, 5, 10]
    for version in range(12, 40):  # and then it stays the same
        entry, base = step(store, version, big(1_000, add=version), base)
    assert entry.chain != ()


def test_small_states_are_snapshots_without_hashes(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    base = None
    for version in range(1, 4):
        entry, base = step(store, version, big(100, add=version), base)
        assert entry.chain == ()
        assert base is not None
        assert base.nbytes == 0


def test_columns_that_cannot_be_hashed_make_snapshots(tmp_path: Path) -> None:
    store = StateStore(tmp_path, small_bytes=0)
    listed = {"step": {"rows": pa.table({"$hash": [1, 2], "parts": [[1], [2, 3]]})}}
    assert not can_hash(listed["step"]["rows"].schema)
    base = None
    for version in (1, 2):
        entry, base = store.write(version, 0, 0, RUN, listed, V, base)
        assert entry is not None
        assert entry.chain == ()
        store.commit(Manifest(version, RUN, V, files=(entry,)))
        assert store.read(version, None, range(V))["step"]["rows"].equals(listed["step"]["rows"])


@pytest.mark.parametrize(("task", "count"), [(1, V), (0, V + 1)])
def test_a_base_of_another_task_or_another_number_of_partitions_is_no_base(
    tmp_path: Path, task: int, count: int
) -> None:
    store = StateStore(tmp_path, small_bytes=0)
    _, base = step(store, 1, big(1_000), None)
    entry, _ = store.write(2, task, 0, RUN, big(1_000, add=1), count, base)
    assert entry is not None
    assert entry.chain == ()
