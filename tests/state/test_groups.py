"""Tables of equal columns put together and cut apart again."""

from __future__ import annotations

import pyarrow as pa

from penstock.state.groups import grouped


def coded(texts: list[str | None], words: list[str] | None = None) -> pa.Array:
    array = pa.array(texts, pa.string()).dictionary_encode()
    if words is None:
        return array
    codes = [None if text is None else words.index(text) for text in texts]
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(words))


def table(texts: list[str | None], words: list[str] | None = None) -> pa.Table:
    return pa.table({"$hash": pa.array(range(len(texts)), pa.int64()), "town": coded(texts, words)})


def test_tables_of_one_schema_are_one_batch_and_come_back_with_their_own_strings() -> None:
    state = {
        "a": {"left": table(["x", None, "x"]), "right": table(["y"])},
        "b": {"left": table(["z", "x"]), "none": table([]), "other": pa.table({"$hash": [7]})},
        "c": {"left": table([None])},
    }
    groups = grouped(state)
    assert [group.names for group in groups] == [
        (("a", "left"), ("a", "right"), ("b", "left"), ("c", "left")),
        (("b", "other"),),
    ]
    back = {name: rows for group in groups for name, rows in group.tables()}
    for (operator, name), rows in back.items():
        assert rows.equals(state[operator][name])
        if "town" in rows.column_names:
            words = rows["town"].chunk(0).dictionary
            assert words == state[operator][name]["town"].chunk(0).dictionary


def test_names_or_types_or_nullability_that_differ_are_another_group() -> None:
    same = pa.field("x", pa.int64())
    kinds = [same, same.with_name("y"), same.with_type(pa.int32()), same.with_nullable(False), same]
    state = {
        f"step{number}": {"rows": pa.table([pa.array([1]), pa.array([2], kind.type)], schema)}
        for number, kind in enumerate(kinds)
        for schema in [pa.schema([pa.field("$hash", pa.int64()), kind])]
    }
    groups = grouped(state)
    assert [len(group.names) for group in groups] == [2, 1, 1, 1]
    assert len({group.schema_id for group in groups}) == 4


def test_strings_that_no_row_has_are_left_out() -> None:
    words = [f"w{number}" for number in range(50)]
    state = {"a": {"rows": table(["w7", "w3", None], words)}, "b": {"rows": table(["w3"], words)}}
    (group,) = grouped(state)
    assert group.texts[1].tolist() == [2, 1]
    for (operator, _), rows in group.tables():
        assert rows["town"].to_pylist() == state[operator]["rows"]["town"].to_pylist()


def test_tables_in_several_pieces_are_taken_as_they_are() -> None:
    pieces = pa.concat_tables([table(["x", "y"]), table(["z", "x"])])
    (group,) = grouped({"a": {"rows": pieces}, "b": {"rows": table(["q"])}})
    back = dict(group.tables())
    assert back["a", "rows"]["town"].to_pylist() == ["x", "y", "z", "x"]
    assert back["b", "rows"]["town"].to_pylist() == ["q"]


def test_partitions_are_bits() -> None:
    for count in (8, 6):
        hashes = [[0, 5, -1], [3], [count + 3, 2]]
        state = {f"s{number}": {"t": pa.table({"$hash": list(each)})} for number, each in enumerate(hashes)}
        (group,) = grouped(state)
        expected = [sum({1 << (value % count) for value in each}) for each in hashes]
        assert group.held_partitions(count) == expected
        assert group.in_partitions([2, 3], count).tolist() == [
            value % count in (2, 3) for each in hashes for value in each
        ]
