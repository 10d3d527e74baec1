import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.state.table import ABSENT, KeyTable


def keys(*rows: tuple[int, ...]) -> np.ndarray:
    return np.array(rows, np.int64)


def test_entries_are_dense_and_stable() -> None:
    table = KeyTable(2)
    assert table.insert(keys((1, 1), (2, 1), (1, 1), (-1, 9))).tolist() == [0, 1, 0, 2]
    assert table.find(keys((2, 1), (9, 9))).tolist() == [1, ABSENT]
    assert (table.size, len(table)) == (3, 3)
    assert table.words.tolist() == [[1, 1], [2, 1], [-1, 9]]


@pytest.mark.parametrize("width", [1, 3])
def test_growth_keeps_every_entry(width: int) -> None:
    table = KeyTable(width)
    many = np.arange(100_000 * width, dtype=np.int64).reshape(-1, width) * 1_000_003
    entries = table.insert(many)
    assert entries.tolist() == list(range(100_000))
    assert table.find(many).tolist() == entries.tolist()
    assert table.capacity >= 100_000


def test_removed_entries_are_used_again() -> None:
    table = KeyTable(1)
    for round_ in range(1_000):
        entries = table.insert(np.arange(50, dtype=np.int64)[:, None] + 50 * round_)
        table.remove(entries)
    assert len(table) == 0
    assert table.size == 50
    assert table.capacity == 64


def test_clear_gives_memory_back_once_less_is_needed() -> None:
    table = KeyTable(1)
    before = table.nbytes
    table.insert(np.arange(10_000, dtype=np.int64)[:, None])
    table.clear()
    assert (table.size, len(table), table.find(keys((5,))).tolist()) == (0, 0, [ABSENT])
    assert table.capacity >= 10_000  # the next window will need as much
    assert table.insert(keys((5,), (6,))).tolist() == [0, 1]
    table.clear()
    assert (table.nbytes, table.size, len(table)) == (before, 0, 0)
    assert table.insert(keys((5,))).tolist() == [0]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.booleans(), st.lists(st.integers(-20, 20), min_size=1, max_size=40)), max_size=30)
)
def test_behaves_like_a_dictionary(steps: list[tuple[bool, list[int]]]) -> None:
    table, model = KeyTable(2), dict[int, int]()
    for inserting, values in steps:
        rows = np.array([(value << 40, value) for value in values], np.int64)
        if inserting:
            for value, entry in zip(values, table.insert(rows).tolist(), strict=True):
                assert model.setdefault(value, entry) == entry
        else:
            known = sorted({value for value in values if value in model})
            table.remove(np.array([model.pop(value) for value in known], np.int64))
        assert table.find(rows).tolist() == [model.get(value, ABSENT) for value in values]
        assert len(table) == len(model)
        assert sorted(table.entries.tolist()) == sorted(model.values())
