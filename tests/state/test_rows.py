import numpy as np
import pytest

from penstock.memory.layout import Layout
from penstock.query.types import DataType, Field
from penstock.state.rows import RowStore

A = Field("a", DataType.INT64)
B = Field("b", DataType.FLOAT32, nullable=True)
C = Field("c", DataType.STRING)


def test_appends_ranges_and_picked_rows() -> None:
    layout = Layout([A, B])
    columns = (np.arange(10), np.arange(10, dtype=np.float32), np.arange(10) % 2 == 0)
    store = RowStore(layout)
    store.append(columns, 2, 4)
    store.append(columns, 5, 9, np.array([0, 3]))
    assert len(store) == 4
    assert [column.tolist() for column in store.columns] == [
        [2, 3, 5, 8],
        [2.0, 3.0, 5.0, 8.0],
        [True, False, False, True],
    ]
    assert store.gather(np.array([3, 0]))[0].tolist() == [8, 2]
    store.keep(np.array([True, False, False, True]))
    assert store.column("a").tolist() == [2, 8]
    store.append(columns, 0, 1)
    assert store.column("a").tolist() == [2, 8, 0]


def test_takes_its_fields_from_a_wider_layout_and_the_rest_from_extra() -> None:
    source = Layout([C, B, A])
    store = RowStore(Layout([A, Field("$pane", DataType.INT64), B]), source)
    columns = (np.arange(3, dtype=np.int32), np.zeros(3, np.float32), np.ones(3, bool), np.arange(3) * 10)
    store.append(columns, 1, 3, extra=(np.array([7, 8]),))
    assert [column.tolist() for column in store.columns] == [[10, 20], [7, 8], [0.0, 0.0], [True, True]]


def test_a_null_mask_cannot_be_made_up() -> None:
    with pytest.raises(ValueError, match="'b' must be nullable"):
        RowStore(Layout([B]), Layout([Field("b", DataType.FLOAT32)]))


def test_grows_and_gives_memory_back() -> None:
    store = RowStore(Layout([A]))
    before = store.nbytes
    for _ in range(100):
        store.append((np.arange(1_000),), 0, 1_000)
    assert len(store) == 100_000
    assert store.column("a")[99_999] == 999
    store.keep(store.column("a") == 5)
    assert store.column("a").tolist() == [5] * 100
    store.clear()
    assert len(store) == 0
    assert store.nbytes == before
