"""Interval join: pairs whose times lie close enough, and state that ends when no partner can come."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.memory.layout import LATE, ORDER, TIME
from penstock.operators.joins.interval_join import IntervalJoin
from penstock.query.steps import IntervalJoinSpec
from penstock.query.types import DataType
from tests.harness import Harness, Row, layout
from tests.reference_aggregates import xxhash64
from tests.replay import replay

LEFT = {"t": "timestamp", "k": "string?", "a": "int64"}
RIGHT = {"t": "timestamp", "k": "string?", "b": "int32?"}
PAIR = {"t": "timestamp", "a": "int64", "b": "int32?"}


def join(lower: int, upper: int, **settings: Any) -> Harness:
    columns = (("t", 1, "t"), ("a", 0, "a"), ("b", 1, "b"))
    return Harness(
        IntervalJoin,
        IntervalJoinSpec((("k", "k"),), lower, upper, columns),
        inputs=[layout(LEFT, "t", [ORDER]), layout(RIGHT, "t", [ORDER, LATE])],
        output=layout(PAIR, TIME, [TIME, ORDER]),
        **settings,
    )


def stored(harness: Harness) -> list[int]:
    return [len(side) for side in harness.operator.sides]  # type: ignore[attr-defined]


def test_both_bounds_are_part_of_the_interval() -> None:
    harness = join(-2, 5)
    harness.feed([{"t": 10, "k": "x", "a": 1}])
    harness.feed([{"t": t, "k": "x", "b": t} for t in (7, 8, 10, 15, 16)], 1)
    assert sorted(row["b"] for row in harness.rows()) == [8, 10, 15]


def test_a_pair_has_the_time_of_its_later_event_and_an_order_of_both() -> None:
    harness = join(-5, 5)
    harness.feed([{"t": 10, "k": "x", "a": 1, "$order": 3}])
    harness.feed([{"t": 8, "k": "x", "b": None, "$order": 4}, {"t": 12, "k": "x", "b": 2, "$order": 5}], 1)
    pairs = [(10, 3, 0, 8, 4, 0), (10, 3, 0, 12, 5, 0)]
    orders = [xxhash64((place, DataType.INT64) for place in pair) for pair in pairs]
    assert harness.rows() == [
        {"t": 8, "a": 1, "b": None, TIME: 10, ORDER: orders[0]},
        {"t": 12, "a": 1, "b": 2, TIME: 12, ORDER: orders[1]},
    ]


def test_null_keys_match_nothing_even_each_other() -> None:
    harness = join(-5, 5)
    harness.feed([{"t": 1, "k": None, "a": 1}, {"t": 1, "k": "", "a": 2}])
    harness.feed([{"t": 1, "k": None, "b": 1}, {"t": 1, "k": "", "b": 2}], 1)
    assert [(row["a"], row["b"]) for row in harness.rows()] == [(2, 2)]


def test_times_before_1970_and_an_interval_of_one_moment() -> None:
    harness = join(-3, -3)
    harness.feed([{"t": t, "k": "x", "a": t} for t in (-10, -1, 0, 2)])
    harness.feed([{"t": t, "k": "x", "b": t} for t in (-13, -5, -4, -3, -1)], 1)
    assert sorted((row["a"], row["b"]) for row in harness.rows()) == [(-10, -13), (-1, -4), (0, -3), (2, -1)]


def test_a_hot_key_gives_far_more_pairs_than_blocks_hold() -> None:
    harness = join(0, 1000, block_events=4)
    harness.feed([{"t": 5, "k": "x", "a": n} for n in range(5000)], cut=False)
    harness.feed([{"t": 5 + n, "k": "x", "b": n} for n in range(3)], 1, cut=False)
    assert Counter((row["a"], row["b"]) for row in harness.rows()) == Counter(
        (a, b) for a in range(5000) for b in range(3)
    )


def test_each_side_keeps_events_only_as_long_as_a_partner_can_come() -> None:
    harness = join(0, 80)  # a left event waits for 80 µs, a right one for nobody
    harness.feed([{"t": t, "k": str(t), "a": t} for t in range(100)])
    harness.feed([{"t": t, "k": str(t), "b": t} for t in range(100)], 1)
    assert stored(harness) == [100, 100]
    harness.watermark(90)  # left from 10 on, right from 90 on; a bucket is 21 µs long
    left, right = stored(harness)
    assert 90 <= left <= 100
    assert 10 <= right <= 10 + 21
    harness.feed([{"t": 90, "k": "10", "b": 7}], 1)
    assert [(row["a"], row["b"]) for row in harness.rows()][-1] == (10, 7)
    harness.end()
    assert stored(harness) == [0, 0]


def test_state_does_not_grow_with_the_stream() -> None:
    harness = join(-20, 20, block_events=64)
    most = 0
    for turn in range(100):
        start = turn * 50
        harness.feed([{"t": start + n, "k": str(n), "a": n} for n in range(50)], cut=False)
        harness.feed([{"t": start + n, "k": str(n), "b": n} for n in range(50)], 1, cut=False)
        harness.watermark(start + 50)
        most = max(most, *(side.store.count for side in harness.operator.sides))  # type: ignore[attr-defined]
    assert most <= 1024
    assert len(harness.rows()) == 5000


def test_one_input_may_run_far_ahead_of_the_other() -> None:
    harness = join(0, 10, block_events=64)
    harness.feed([{"t": t, "k": "x", "a": t} for t in range(0, 20_000, 10)])
    harness.feed([{"t": t, "k": "x", "b": t} for t in range(5, 20_000, 1000)], 1)
    assert sorted(row["a"] for row in harness.rows()) == list(range(0, 20_000, 1000))


def test_late_events_are_counted_and_left_out() -> None:
    harness = join(-5, 5)
    harness.feed([{"t": 1, "k": "x", "a": 1}])
    harness.feed([{"t": 1, "k": "x", "b": 1, "$late": True}, {"t": 1, "k": "x", "b": 2}], 1)
    assert [row["b"] for row in harness.rows()] == [2]
    assert harness.operator.late_events == 1


def events(name: str) -> st.SearchStrategy[list[Row]]:
    keys = st.none() | st.sampled_from(["x", "y", ""])
    rows = st.lists(st.tuples(st.integers(-60, 60), keys), max_size=50)
    return rows.map(lambda found: [{"t": t, "k": k, name: n, "$order": n} for n, (t, k) in enumerate(found)])


@given(
    events("a"),
    events("b"),
    st.tuples(st.integers(-30, 30), st.integers(0, 60)),
    st.integers(0, 1000),
    st.integers(0, 10),
)
def test_any_order_and_cut_gives_the_pairs_of_the_naive_join(
    left: list[Row], right: list[Row], interval: tuple[int, int], seed: int, slack: int
) -> None:
    lower, upper = interval[0], sum(interval)
    harness = join(lower, upper, seed=seed, block_events=3)
    replay(harness, left, right, seed=seed, slack=slack)
    expected = Counter(
        (one["a"], other["b"], max(one["t"], other["t"]))
        for one in left
        for other in right
        if one["k"] is not None and one["k"] == other["k"] and lower <= other["t"] - one["t"] <= upper
    )
    assert Counter((row["a"], row["b"], row[TIME]) for row in harness.rows()) == expected
