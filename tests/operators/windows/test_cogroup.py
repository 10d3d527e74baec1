"""Co-group: one call per key and window, both sides in order, and clear errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.memory.layout import LATE, ORDER, SUB, TIME
from penstock.operators.windows.cogroup import CoGroup
from penstock.query.errors import RunError
from penstock.query.graph import Port
from penstock.query.steps import CoGroupSpec
from penstock.query.types import DataType
from penstock.query.user_functions import Group
from penstock.query.windows import Sliding
from tests.harness import Harness, Row, layout
from tests.reference_aggregates import xxhash64
from tests.replay import replay

LEFT = {"t": "timestamp", "k": "string?", "a": "int64"}
RIGHT = {"t": "timestamp", "key": "string?", "b": "int64"}
RESULT = {"k": "string?", "start": "int64", "lefts": "string", "rights": "string"}


def summary(group: Group) -> list[dict[str, Any]]:
    lefts = ",".join(str(row["a"]) for row in group.left)
    rights = ",".join(str(row["b"]) for row in group.right)
    return [{"k": group.key[0], "start": group.window_start, "lefts": lefts, "rights": rights}]


def cogroup(
    function: Callable[[Group], Any] = summary, size: int = 10, slide: int | None = None, **settings: Any
) -> Harness:
    return Harness(
        CoGroup,
        CoGroupSpec((("k", "key"),), Sliding(size, slide or size), function),
        inputs=[layout(LEFT, "t", [ORDER, LATE]), layout(RIGHT, "t", [ORDER, SUB])],
        output=layout(RESULT, TIME, [TIME, ORDER, SUB]),
        **settings,
    )


def seen(harness: Harness) -> list[tuple[Any, ...]]:
    return [(row["start"], row["k"], row["lefts"], row["rights"]) for row in harness.rows()]


def test_groups_both_sides_by_key_and_window_in_event_order() -> None:
    harness = cogroup()
    harness.feed([{"t": 5, "k": "x", "a": 1}, {"t": 3, "k": "x", "a": 2}, {"t": 13, "k": "x", "a": 3}])
    harness.feed([{"t": 4, "key": "x", "b": 1, "$sub": 1}, {"t": 4, "key": "x", "b": 2}], 1)
    harness.watermark(9)
    assert harness.rows() == []
    harness.watermark(10)
    assert seen(harness) == [(0, "x", "2,1", "2,1")]
    harness.end()
    assert seen(harness)[1:] == [(10, "x", "3", "")]


def test_null_is_a_key_that_both_sides_share_and_one_side_may_be_empty() -> None:
    harness = cogroup()
    harness.feed([{"t": -1, "k": None, "a": 1}])
    harness.feed([{"t": -10, "key": None, "b": 2}, {"t": -10, "key": "y", "b": 3}], 1)
    harness.end()
    assert sorted(seen(harness), key=str) == [(-10, "y", "", "3"), (-10, None, "1", "2")]


def test_rows_get_the_windows_last_moment_the_keys_hash_and_their_number() -> None:
    harness = cogroup(lambda group: summary(group) * 2)
    harness.feed([{"t": 1, "k": "x", "a": 1}])
    harness.end()
    order = xxhash64([("x", DataType.STRING)])
    assert [(row[TIME], row[ORDER], row[SUB]) for row in harness.rows()] == [(9, order, 0), (9, order, 1)]


def test_groups_come_by_window_end_then_hash_of_the_key() -> None:
    harness = cogroup()
    harness.feed([{"t": t, "k": k, "a": t} for k in "abcde" for t in (25, 5, 15)])
    harness.end()
    by_hash = sorted("abcde", key=lambda k: xxhash64([(k, DataType.STRING)]))
    assert [row[:2] for row in seen(harness)] == [(start, k) for start in (0, 10, 20) for k in by_hash]


def test_sliding_windows_hand_an_event_to_each_of_its_windows() -> None:
    harness = cogroup(size=10, slide=4)
    harness.feed([{"t": 9, "k": "x", "a": 1}])
    harness.feed([{"t": 5, "key": "x", "b": 2}], 1)
    harness.watermark(10)
    assert seen(harness) == [(-4, "x", "", "2"), (0, "x", "1", "2")]
    assert harness.operator.open_windows == 2
    harness.end()
    assert seen(harness)[2:] == [(4, "x", "1", "2"), (8, "x", "1", "")]
    assert harness.operator.open_windows == 0
    assert harness.operator.state_bytes == 0


def test_a_function_may_change_the_rows_it_gets_without_spoiling_other_windows() -> None:
    def function(group: Group) -> list[dict[str, Any]]:
        rows = summary(group)
        for row in group.left:
            row["a"] = -1
        return rows

    harness = cogroup(function, size=10, slide=5)
    harness.feed([{"t": 7, "k": "x", "a": 1}])
    harness.end()
    assert [row[2] for row in seen(harness)] == ["1", "1"]


def test_late_events_are_left_out_and_diverted_by_side() -> None:
    harness = cogroup(late=layout({"a": "int64"}))
    harness.feed([{"t": 1, "k": "x", "a": 1, "$late": True}, {"t": 2, "k": "x", "a": 2}])
    harness.end()
    assert seen(harness) == [(0, "x", "2", "")]
    assert harness.rows(Port.LATE) == [{"a": 1}]
    assert harness.operator.late_events == 1


def test_an_exception_names_step_function_and_group() -> None:
    def divide(group: Group) -> list[dict[str, Any]]:
        raise ZeroDivisionError("no rights")

    harness = cogroup(divide, node_id="pairs")
    harness.feed([{"t": 1, "k": "x", "a": 41}])
    with pytest.raises(RunError) as caught:
        harness.end()
    for part in ("ZeroDivisionError: no rights", "step 'pairs'", "divide", "('x',)", "[0, 10)", "'a': 41"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ([{"k": "x", "start": 1, "lefts": "", "rights": "", "more": 1}], "unknown column 'more'"),
        ([{"k": "x", "start": 1, "lefts": ""}], "without column 'rights'"),
        ([{"k": 5, "start": 1, "lefts": "", "rights": ""}], "int 5 for column 'k'"),
        ([{"k": "x", "start": 1.5, "lefts": "", "rights": ""}], "float 1.5 for column 'start'"),
        ([{"k": "x", "start": True, "lefts": "", "rights": ""}], "bool True for column 'start'"),
        ([{"k": "x", "start": 1 << 63, "lefts": "", "rights": ""}], "beyond 64 bits"),
        ([{"k": "x", "start": None, "lefts": "", "rights": ""}], "None for column 'start'"),
        (["row"], "a row that is str 'row'"),
        ({"k": "x"}, "returned dict"),
        (7, "returned int 7"),
    ],
)
def test_rows_that_do_not_fit_are_refused(returned: Any, said: str) -> None:
    harness = cogroup(lambda group: returned)
    harness.feed([{"t": 1, "k": "x", "a": 1}])
    with pytest.raises(RunError) as caught:
        harness.end()
    assert said in str(caught.value)


def test_rows_may_lack_nullable_columns_and_nothing_returned_is_no_rows() -> None:
    def function(group: Group) -> list[dict[str, Any]] | None:
        return None if group.key == ("y",) else [{"start": 1, "lefts": "l", "rights": "r"}]

    harness = cogroup(function)
    harness.feed([{"t": 1, "k": "x", "a": 1}, {"t": 1, "k": "y", "a": 1}])
    harness.end()
    assert seen(harness) == [(1, None, "l", "r")]


def events(key: str, value: str) -> st.SearchStrategy[list[Row]]:
    rows = st.lists(st.tuples(st.integers(-40, 40), st.none() | st.sampled_from("xyz")), max_size=40)
    return rows.map(
        lambda found: [{"t": t, key: k, value: n, "$order": n * 7 % 41} for n, (t, k) in enumerate(found)]
    )


@given(
    events("k", "a"),
    events("key", "b"),
    st.sampled_from([(1, 1), (7, 7), (100, 100), (10, 3), (10, 9)]),
    st.integers(0, 1000),
    st.integers(0, 10),
)
def test_any_order_and_cut_gives_the_groups_of_the_naive_one(
    left: list[Row], right: list[Row], window: tuple[int, int], seed: int, slack: int
) -> None:
    size, slide = window
    groups: dict[tuple[Any, ...], tuple[list[Row], list[Row]]] = {}
    for side, rows, key in ((0, left, "k"), (1, right, "key")):
        for row in sorted(rows, key=lambda row: (row["t"], row["$order"])):
            for number in range((row["t"] - size) // slide + 1, row["t"] // slide + 1):
                groups.setdefault((number * slide, row[key]), ([], []))[side].append(row)
    expected = [
        (start, k, ",".join(str(row["a"]) for row in lefts), ",".join(str(row["b"]) for row in rights))
        for (start, k), (lefts, rights) in groups.items()
    ]
    expected.sort(key=lambda group: (group[0], xxhash64([(group[1], DataType.STRING)])))
    harness = cogroup(size=size, slide=slide, seed=seed, block_events=3)
    replay(harness, left, right, seed=seed, slack=slack)
    assert seen(harness) == expected
