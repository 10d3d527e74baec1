import numpy as np
import pytest

from penstock.memory.layout import Layout
from penstock.query.types import DataType, Field
from penstock.state.keys import KeyWords, float_word, word_of

ALL = [Field(dtype.value, dtype) for dtype in DataType]


def columns_of(layout: Layout, **values: list) -> tuple:
    columns = layout.allocate(len(next(iter(values.values()))))
    for name, listed in values.items():
        columns[layout.data(name)][:] = [0 if value is None else value for value in listed]
        nulls = layout.nulls(name)
        if nulls is not None:
            columns[nulls][:] = [value is None for value in listed]
    return columns


@pytest.mark.parametrize("field", ALL, ids=str)
def test_every_type_comes_back_from_its_word(field: Field) -> None:
    layout = Layout([field])
    columns = columns_of(layout, **{field.name: [0, 1, 1, 0]})
    keys = KeyWords([field])
    words = keys.encode(layout, columns, 1, 4)
    assert words.shape == (3, 1)
    (back,) = keys.decode(words)
    assert back.dtype == columns[0].dtype
    assert back.tolist() == columns[0][1:4].tolist()


def test_floats_that_are_equal_have_one_word() -> None:
    layout = Layout([Field("x", DataType.FLOAT64)])
    other_nan = np.array([0x7FF8000000000123], np.int64).view(np.float64)[0]
    words = KeyWords(layout.fields).encode(
        layout, (np.array([0.0, -0.0, np.nan, -np.nan, other_nan, 1.5]),), 0, 6
    )
    assert words[0] == words[1]
    assert len({int(word) for word in words[2:5, 0]}) == 1
    assert words[5, 0] == word_of(1.5, DataType.FLOAT64) == float_word(1.5)
    assert float_word(-0.0) == 0
    assert float_word(other_nan) == words[2, 0] == float_word(np.float32(np.nan))


def test_null_keys_have_a_word_of_their_own_that_hides_the_data() -> None:
    fields = [
        Field("a", DataType.INT64, nullable=True),
        Field("b", DataType.INT32),
        Field("c", DataType.STRING, True),
    ]
    layout = Layout(fields)
    columns = columns_of(layout, a=[None, 0, 5], b=[7, 7, 7], c=[None, 0, 3])
    columns[0][0] = 99  # under the mask
    keys = KeyWords(fields)
    assert keys.width == 4
    words = keys.encode(layout, columns, 0, 3)
    assert words.tolist() == [[0, 7, 0, 0b101], [0, 7, 0, 0], [5, 7, 3, 0]]
    assert keys.null_rows(words).tolist() == [True, False, False]
    a, a_null, b, c, c_null = keys.decode(words)
    assert a_null.tolist() == c_null.tolist() == [True, False, False]
    assert (a.tolist(), b.tolist(), c.tolist()) == ([0, 0, 5], [7, 7, 7], [0, 0, 3])


def test_rows_and_other_names_can_be_given() -> None:
    layout = Layout([Field("other", DataType.INT64)])
    keys = KeyWords([Field("id", DataType.INT64, nullable=True)])
    words = keys.encode(layout, (np.arange(10),), 2, 9, ["other"], np.array([0, 3]))
    assert words.tolist() == [[2, 0], [5, 0]]


def test_no_key_is_one_group() -> None:
    keys = KeyWords([])
    words = keys.encode(Layout([Field("x", DataType.INT64)]), (np.arange(3),), 0, 3)
    assert words.tolist() == [[0], [0], [0]]
    assert keys.decode(words) == ()
    assert keys.lines([]) == (["word0 = np.int64(0)"], ["word0"])


def test_lines_name_every_word() -> None:
    keys = KeyWords([Field("a", DataType.INT32), Field("b", DataType.FLOAT32, nullable=True)])
    lines, names = keys.lines([("va", None), ("vb", "nb")])
    assert names == ["word0", "word1", "word2"]
    scope = {"np": np, "float_word": float_word, "va": 3, "vb": 1.5, "nb": True}
    exec("\n".join(lines), scope)
    assert [int(scope[name]) for name in names] == [3, 0, 2]
