"""Window join: every pair with equal keys once per common window, and state that ends with the windows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.memory.layout import LATE, ORDER, SUB, TIME
from penstock.operators.joins.window_join import WindowJoin
from penstock.query.graph import Port
from penstock.query.steps import WindowJoinSpec
from penstock.query.types import DataType
from penstock.query.windows import Sliding
from tests.harness import Harness, Row, layout
from tests.reference_aggregates import xxhash64
from tests.replay import replay

LEFT = {"t": "timestamp", "k": "int64?", "a": "string?"}
RIGHT = {"t": "timestamp", "k": "int64", "b": "float64"}
PAIR = {"window_start": "timestamp", "window_end": "timestamp", "k": "int64?", "a": "string?", "b": "float64"}
COLUMNS = (("k", 0, "k"), ("a", 0, "a"), ("b", 1, "b"))


def join(size: int, slide: int | None = None, **settings: Any) -> Harness:
    return Harness(
        WindowJoin,
        WindowJoinSpec((("k", "k"),), Sliding(size, slide or size), COLUMNS),
        inputs=[layout(LEFT, "t", [ORDER, SUB, LATE]), layout(RIGHT, "t", [ORDER])],
        output=layout(PAIR, TIME, [TIME, ORDER]),
        **settings,
    )


def expected(left: list[Row], right: list[Row], size: int, slide: int) -> list[Row]:
    def windows(time: int) -> range:
        return range((time - size) // slide + 1, time // slide + 1)

    rows = []
    for one in left:
        for other in right:
            if one["k"] is None or one["k"] != other["k"] or one.get("$late"):
                continue
            places = (one["t"], one["$order"], one.get("$sub", 0), other["t"], other["$order"], 0)
            order = xxhash64((place, DataType.INT64) for place in places)
            for number in set(windows(one["t"])) & set(windows(other["t"])):
                start = number * slide
                window = {"window_start": start, "window_end": start + size, TIME: start + size - 1}
                rows.append({**window, "k": one["k"], "a": one["a"], "b": other["b"], ORDER: order})
    return rows


def counted(rows: list[Row]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(sorted(row.items())) for row in rows)


def test_pairs_events_with_equal_keys_in_the_same_window() -> None:
    harness = join(10)
    harness.feed([{"t": 3, "k": 1, "a": "x"}, {"t": 12, "k": 1, "a": "y"}, {"t": 4, "k": 2, "a": "z"}])
    harness.feed([{"t": 9, "k": 1, "b": 0.5}, {"t": 10, "k": 1, "b": 1.5}, {"t": 5, "k": 3, "b": 2.5}], 1)
    seen = [(row["window_start"], row["window_end"], row["a"], row["b"]) for row in harness.rows()]
    assert sorted(seen) == [(0, 10, "x", 0.5), (10, 20, "y", 1.5)]
    assert [row[TIME] for row in harness.rows()] == [row["window_end"] - 1 for row in harness.rows()]


def test_null_keys_match_nothing_and_are_not_kept() -> None:
    harness = join(10)
    harness.feed([{"t": 1, "k": None, "a": "x"}, {"t": 1, "k": 0, "a": None}])
    harness.feed([{"t": 1, "k": 0, "b": 1.0}], 1)
    assert [(row["k"], row["a"]) for row in harness.rows()] == [(0, None)]
    assert len(harness.operator.sides[0]) == 1  # type: ignore[attr-defined]


def test_windows_before_1970_start_at_multiples_of_the_slide_too() -> None:
    harness = join(10)
    harness.feed([{"t": -1, "k": 1, "a": "x"}, {"t": -11, "k": 1, "a": "y"}])
    harness.feed([{"t": -10, "k": 1, "b": 1.0}, {"t": 0, "k": 1, "b": 2.0}], 1)
    assert [(row["window_start"], row["a"], row["b"]) for row in harness.rows()] == [(-10, "x", 1.0)]


def test_sliding_windows_give_a_pair_once_per_common_window() -> None:
    harness = join(10, 4)
    harness.feed([{"t": 9, "k": 1, "a": "x"}])  # windows 0, 4, 8
    harness.feed([{"t": 5, "k": 1, "b": 1.0}], 1)  # windows -4, 0, 4
    assert sorted(row["window_start"] for row in harness.rows()) == [0, 4]


def test_a_hot_key_gives_far_more_pairs_than_blocks_hold() -> None:
    harness = join(1000, block_events=4)
    harness.feed([{"t": n, "k": 7, "a": str(n), "$order": n} for n in range(60)])
    harness.feed([{"t": n, "k": 7, "b": float(n), "$order": n} for n in range(70)], 1, cut=False)
    harness.end()
    pairs = Counter((row["a"], row["b"]) for row in harness.rows())
    assert pairs == Counter((str(a), float(b)) for a in range(60) for b in range(70))


def test_a_watermark_that_comes_before_all_pairs_are_written_evicts_afterwards() -> None:
    harness = join(10, block_events=2, blocks=1)
    operator = harness.operator
    harness.feed([{"t": 1, "k": 1, "a": str(n)} for n in range(20)])
    harness.feed([{"t": 2, "k": 1, "b": 1.0}], 1, cut=False)
    assert operator.has_ready_rows
    operator.on_watermark(10)
    assert len(operator.sides[0]) == 20  # type: ignore[attr-defined]
    assert sorted(int(row["a"]) for row in harness.rows()) == list(range(20))
    assert not operator.has_ready_rows
    assert [len(side) for side in operator.sides] == [0, 0]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("size", "slide"), [(100, 100), (100, 30)])
def test_state_is_bounded_by_what_open_windows_hold(size: int, slide: int) -> None:
    harness = join(size, slide, block_events=64)
    bytes_after = []
    for turn in range(40):
        start = turn * 100
        harness.feed([{"t": start + n, "k": start + n, "a": "x"} for n in range(100)])
        harness.feed([{"t": start + n, "k": start + n, "b": 1.0} for n in range(0, 100, 2)], 1)
        harness.watermark(start + 100)
        assert sum(len(side) for side in harness.operator.sides) <= 150 * 2  # type: ignore[attr-defined]
        bytes_after.append(harness.operator.state_bytes)
    assert max(bytes_after[20:]) <= 1.05 * max(bytes_after[8:20])
    assert len([row for row in harness.rows() if row["window_start"] == 1200]) == 50
    assert harness.operator.open_windows > 0 or size == slide
    harness.end()
    assert harness.operator.open_windows == 0
    assert [len(side) for side in harness.operator.sides] == [0, 0]  # type: ignore[attr-defined]


def test_late_events_are_counted_and_left_out() -> None:
    harness = Harness(
        WindowJoin,
        WindowJoinSpec((("k", "k"),), Sliding(10, 10), COLUMNS),
        inputs=[layout(LEFT, "t", [LATE]), layout(RIGHT, "t", [LATE])],
        output=layout(PAIR),
        late=layout({"t": "timestamp", "a": "string?"}),
    )
    harness.feed([{"t": 1, "k": 1, "a": "late", "$late": True}, {"t": 1, "k": 1, "a": "x"}])
    harness.feed([{"t": 2, "k": 1, "b": 1.0, "$late": True}, {"t": 2, "k": 1, "b": 2.0}], 1)
    harness.end()
    assert [(row["a"], row["b"]) for row in harness.rows()] == [("x", 2.0)]
    assert harness.rows(Port.LATE) == [{"t": 1, "a": "late"}]
    assert harness.operator.late_events == 2


def test_only_columns_that_someone_reads_are_kept() -> None:
    harness = Harness(
        WindowJoin,
        WindowJoinSpec((("k", "k"),), Sliding(10, 10), COLUMNS),
        inputs=[layout(LEFT, "t"), layout(RIGHT, "t")],
        output=layout({"b": "float64", "window_end": "timestamp"}),
    )
    harness.feed([{"t": 1, "k": 1, "a": "x"}])
    harness.feed([{"t": 2, "k": 1, "b": 2.0}], 1)
    assert harness.rows() == [{"b": 2.0, "window_end": 10}]
    assert harness.operator.sides[0].layout.names == ("t", "$next")  # type: ignore[attr-defined]


def test_keys_of_several_columns_with_nan_and_negative_zero() -> None:
    nan, columns = float("nan"), {"t": "timestamp", "x": "float32", "s": "string"}
    harness = Harness(
        WindowJoin,
        WindowJoinSpec((("x", "x"), ("s", "s")), Sliding(10, 10), (("n", 0, "n"), ("m", 1, "m"))),
        inputs=[layout({**columns, "n": "int32"}, "t"), layout({**columns, "m": "int32"}, "t")],
        output=layout({"n": "int32", "m": "int32"}),
    )
    keys = [(nan, "a"), (0.0, "a"), (0.0, "b"), (1.5, "a")]
    harness.feed([{"x": x, "s": s, "n": n} for n, (x, s) in enumerate(keys)])
    harness.feed(
        [{"x": x, "s": s, "m": m} for m, (x, s) in enumerate([(nan, "a"), (-0.0, "a"), (-0.0, "b")])], 1
    )
    assert sorted((row["n"], row["m"]) for row in harness.rows()) == [(0, 0), (1, 1), (2, 2)]


def events(columns: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[list[Row]]:
    rows = st.lists(st.fixed_dictionaries({"t": st.integers(-40, 40), **columns}), max_size=40)
    return rows.map(lambda found: [{**row, "$order": number} for number, row in enumerate(found)])


@given(
    events(
        {
            "k": st.none() | st.integers(0, 3),
            "a": st.none() | st.sampled_from("xyz"),
            "$sub": st.integers(0, 2),
            "$late": st.booleans(),
        }
    ),
    events({"k": st.integers(0, 3), "b": st.integers(0, 9).map(float)}),
    st.sampled_from([(1, 1), (7, 7), (50, 50), (10, 3), (9, 2), (10, 9), (64, 5)]),
    st.integers(0, 1000),
    st.integers(0, 10),
)
def test_any_order_and_cut_gives_the_pairs_of_the_naive_join(
    left: list[Row], right: list[Row], window: tuple[int, int], seed: int, slack: int
) -> None:
    harness = join(*window, seed=seed, block_events=3)
    replay(harness, left, right, seed=seed, slack=slack)
    assert counted(harness.rows()) == counted(expected(left, right, *window))
    assert harness.operator.late_events == sum(row["$late"] for row in left)
