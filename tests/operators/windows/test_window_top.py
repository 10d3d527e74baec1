import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.memory.layout import LATE, ORDER, SUB, TIME
from penstock.operators.windows.window_top import WindowTop
from penstock.query.expr import Expr, col
from penstock.query.graph import Port
from penstock.query.steps import WindowTopSpec
from penstock.query.types import DataType
from penstock.query.windows import Sliding
from tests.harness import Harness, layout
from tests.reference_aggregates import key_of, sorted_by, windows_over, xxhash64
from tests.window_cases import EVENT, INF, INPUT, NAN, TYPES, run_in_pieces, values

OUTPUT = layout(
    {"window_start": "timestamp", "window_end": "timestamp", "rank": "int32", **TYPES},
    TIME,
    [TIME, ORDER, SUB],
)


_ORDERS: list[tuple[tuple[str, bool], ...]] = [
    (("speed", True),),
    (("speed", False),),
    (("town", False),),
    (("town", True), ("speed", False)),
    (("lane", True), ("town", False), ("load", True)),
]


def step(
    k: int,
    by: str | Expr = "speed",
    *,
    then: Sequence[tuple[str, bool]] = (),
    ties: bool = False,
    keys: Sequence[str] = (),
    window: Sliding | None = None,
    descending: bool = True,
    **options: Any,
) -> Harness:
    by = col(by) if isinstance(by, str) else by
    further = tuple((col(name), down) for name, down in then)
    spec = WindowTopSpec(tuple(keys), window or Sliding(10, 10), k, by, descending, further, ties)
    return Harness(WindowTop, spec, [INPUT], OUTPUT, late=INPUT, **options)


def test_ranks_the_largest_with_whole_events() -> None:
    harness = step(2, keys=("lane",))
    harness.feed(
        [
            {"ts": 1, "lane": 1, "speed": 3.0, "town": "a", ORDER: 5},
            {"ts": 2, "lane": 1, "speed": 9.0, "town": None, ORDER: 6, SUB: 3},
            {"ts": 3, "lane": 1, "speed": 5.0, "town": "c"},
            {"ts": 4, "lane": 2, "speed": 1.0, "town": "d"},
            {"ts": 11, "lane": 1, "speed": 99.0, "town": "e"},
        ]
    )
    assert harness.operator.open_windows == 3
    harness.watermark(10)
    names = ("lane", "rank", "window_start", "window_end", "ts", "speed", "town", TIME, ORDER)
    assert sorted(values(harness.rows(), *names)) == [
        (1, 1, 0, 10, 2, 9.0, None, 9, place(2, 6, 3)),
        (1, 2, 0, 10, 3, 5.0, "c", 9, place(3, 0)),
        (2, 1, 0, 10, 4, 1.0, "d", 9, place(4, 0)),
    ]
    assert harness.operator.open_windows == 1


@pytest.mark.parametrize(
    ("descending", "expected"),
    [(True, [NAN, INF, 2.0, 0.0, -0.0, -INF, None]), (False, [-INF, 0.0, -0.0, 2.0, INF, NAN, None])],
)
def test_nan_is_largest_and_null_is_last_either_way(descending: bool, expected: list[float | None]) -> None:
    harness = step(9, descending=descending)
    speeds = [2.0, None, 0.0, NAN, -INF, -0.0, INF]
    harness.feed([{"ts": time, "speed": speed} for time, speed in enumerate(speeds)])
    harness.end()
    assert str([row["speed"] for row in harness.rows()]) == str(expected)
    assert [row["rank"] for row in harness.rows()] == [1, 2, 3, 4, 5, 6, 7]


def test_ties_go_to_the_earlier_event() -> None:
    harness = step(3, col("lane") * 0)
    places = [(2, 1, 0), (1, 9, 0), (1, 2, 2), (1, 2, 1), (3, 0, 0)]
    harness.feed([{"ts": ts, ORDER: order, SUB: sub} for ts, order, sub in places])
    harness.end()
    best = [(1, 2, 1), (1, 2, 2), (1, 9, 0)]
    assert values(harness.rows(), "ts", ORDER) == [(ts, place(ts, order, sub)) for ts, order, sub in best]


def test_the_smallest_integer_still_beats_null() -> None:
    harness = step(2, "load")
    harness.feed([{"ts": 1, "load": None}, {"ts": 2, "load": -(2**63)}, {"ts": 3, "load": None}])
    harness.end()
    assert values(harness.rows(), "load", "ts") == [(-(2**63), 2), (None, 1)]


def test_late_events_are_left_out_and_handed_on() -> None:
    harness = step(2)
    harness.feed([{"ts": 1, "speed": 1.0}, {"ts": 2, "speed": 9.0, LATE: True}])
    harness.end()
    assert values(harness.rows(), "speed") == [(1.0,)]
    assert values(harness.rows(Port.LATE), "speed") == [(9.0,)]


@pytest.mark.parametrize("k", [5, 100])
def test_many_events_are_pruned_to_the_best(k: int) -> None:
    draw = random.Random(3)
    events = [
        {"ts": draw.randrange(20), "lane": draw.randrange(3), "load": draw.randrange(10**6), ORDER: order}
        for order in range(30_000)
    ]
    harness = step(k, "load", keys=("lane",), window=Sliding(20, 10), block_events=64)
    for start in range(0, len(events), 5_000):
        harness.feed(events[start : start + 5_000], cut=False)
        assert harness.operator.state_bytes < 10_000 * INPUT.row_bytes * 2
    harness.end()
    assert values(harness.rows(), "lane", "window_start", "rank", ORDER) == expected_top(
        events, k, [("load", True)], False, ("lane",), Sliding(20, 10), harness.rows()
    )


def test_state_is_given_back() -> None:
    harness = step(3, keys=("lane",), window=Sliding(20, 10), block_events=64)
    largest = 0
    for start in range(0, 3000, 10):
        harness.feed([{"ts": start, "lane": lane, "speed": 1.0} for lane in range(30)], cut=False)
        harness.watermark(start)
        if start == 500:
            largest = harness.operator.state_bytes
    assert harness.operator.state_bytes <= largest
    harness.end()
    assert harness.operator.open_windows == 0


def place(ts: int, order: int, sub: int = 0) -> int:
    """The ``$order`` of a row made from the event at that place."""
    return xxhash64((value, DataType.INT64) for value in (ts, order, sub))


def expected_top(
    events: list[dict[str, Any]],
    k: int,
    order_by: Sequence[tuple[str, bool]],
    ties: bool,
    keys: tuple[str, ...],
    window: Sliding,
    found: list[dict[str, Any]],
) -> list[tuple[Any, ...]]:
    """(keys, window_start, rank, order) of the best; keys come in the order in which ``found`` has them."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for event in events:
        if not event.get(LATE):
            groups.setdefault(key_of(event[key] for key in keys), []).append(event)
    tops: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for key, members in groups.items():
        for start, end in windows_over([event["ts"] for event in members], window):
            inside = [event for event in members if start <= event["ts"] < end]
            inside.sort(key=lambda event: (event["ts"], event[ORDER]))
            ranked = sorted_by(
                [([event[by] for by, _ in order_by], event) for event in inside],
                [down for _, down in order_by],
            )
            values = [key_of(value) for value, _ in ranked]
            ranks = [1 + (values.index(value) if ties else at) for at, value in enumerate(values)]
            tops[(*key, start)] = [
                (*key, start, rank, place(event["ts"], event[ORDER]))
                for rank, (_, event) in zip(ranks, ranked, strict=True)
                if rank <= k
            ]
    order = list(dict.fromkeys((*key_of(row[key] for key in keys), row["window_start"]) for row in found))
    assert set(order) == set(tops)
    return [row for group in order for row in tops[group]]


@settings(max_examples=60)
@given(
    st.lists(EVENT, max_size=40),
    st.booleans(),
    st.sampled_from([Sliding(10, 10), Sliding(20, 5), Sliding(7, 3)]),
    st.sampled_from([(), ("town", "seen")]),
    st.integers(1, 4),
    st.sampled_from(_ORDERS),
    st.booleans(),
    st.lists(st.integers(0, 40), max_size=4),
    st.booleans(),
    st.integers(0, 99),
)
def test_agrees_with_plain_python(
    events: list[dict[str, Any]],
    in_order: bool,
    window: Sliding,
    keys: tuple[str, ...],
    k: int,
    order_by: Sequence[tuple[str, bool]],
    ties: bool,
    cuts: list[int],
    pruned: bool,
    seed: int,
) -> None:
    for order, event in enumerate(events):
        event[ORDER] = order
    if in_order:
        events.sort(key=lambda event: event["ts"])
    (by, down), *then = order_by
    harness = step(k, by, then=then, ties=ties, keys=keys, window=window, descending=down, seed=seed)
    if pruned:
        harness.operator.prune_at = 0  # type: ignore[attr-defined]
    run_in_pieces(harness, events, cuts)
    rows = harness.rows()
    found = [
        (*key_of(row[key] for key in keys), row["window_start"], row["rank"], row[ORDER]) for row in rows
    ]
    assert found == expected_top(events, k, order_by, ties, keys, window, rows)
    assert [row["window_end"] for row in rows] == sorted(row["window_end"] for row in rows)


def test_strings_that_begin_alike_are_ranked_by_the_rest() -> None:
    towns = ["same beginning b", "same beginning a", "same", "", None, "same\0", "ß", "z"]
    harness = step(7, "town", descending=False)
    harness.feed([{"ts": 1, "town": town, ORDER: number} for number, town in enumerate(towns)])
    harness.end()
    assert [row["town"] for row in harness.rows()] == sorted(town for town in towns if town is not None)
