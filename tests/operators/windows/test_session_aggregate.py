from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.memory.layout import LATE, ORDER, TIME
from penstock.operators.windows.session_aggregate import SessionAggregate
from penstock.query.aggregates import Aggregate, avg, count, count_distinct, first, last, max_, median, sum_
from penstock.query.graph import Port
from penstock.query.steps import WindowAggregateSpec
from penstock.query.windows import Session
from tests.harness import Harness, layout
from tests.window_cases import (
    EVENT,
    EVERYTHING,
    INPUT,
    aggregate_types,
    assert_same_rows,
    expected_rows,
    run_in_pieces,
    values,
)


def step(
    gap_us: int, aggregates: dict[str, Aggregate], keys: Sequence[str] = ("town",), **options: Any
) -> Harness:
    spec = WindowAggregateSpec(tuple(keys), Session(gap_us), tuple(aggregates.items()))
    output = layout(aggregate_types(keys, aggregates), TIME, [TIME, ORDER])
    return Harness(SessionAggregate, spec, [INPUT], output, late=INPUT, **options)


COUNTED = {"n": count()}
BRIDGED = {
    "n": count(),
    "loads": sum_("load"),
    "town_first": first("town"),
    "town_last": last("town"),
    "speed_max": max_("speed"),
    "speed_avg": avg("speed"),
    "towns": count_distinct("town"),
    "half": median("speed"),
}


def test_a_session_ends_a_gap_after_its_last_event() -> None:
    harness = step(10, COUNTED)
    harness.feed(
        [{"ts": 0, "town": "a"}, {"ts": 9, "town": "a"}, {"ts": 19, "town": "a"}, {"ts": 5, "town": "b"}]
    )
    assert harness.operator.open_windows == 3  # 9 and 19 are a whole gap apart
    harness.watermark(14)
    assert harness.rows() == []
    harness.watermark(15)
    assert values(harness.rows(), "town", "window_start", "window_end", "n", TIME) == [("b", 5, 15, 1, 14)]
    harness.watermark(19)
    harness.end()
    assert values(harness.rows()[1:], "town", "window_start", "window_end", "n") == [
        ("a", 0, 19, 2),
        ("a", 19, 29, 1),
    ]


def test_an_event_between_two_sessions_makes_them_one() -> None:
    harness = step(10, BRIDGED, keys=())
    harness.feed(
        [
            {"ts": 30, "town": "late", "load": 1, "speed": 3.0},
            {"ts": 12, "town": "mid", "load": 2, "speed": 1.0},
            {"ts": -3, "town": "early", "load": 4, "speed": None},
            {"ts": 5, "town": "low", "load": 8, "speed": 9.0},
        ]
    )
    assert harness.operator.open_windows == 2
    harness.feed([{"ts": 21, "town": "bridge", "load": 16, "speed": 2.0}])
    assert harness.operator.open_windows == 1
    harness.end()
    (row,) = harness.rows()
    assert row == {
        "window_start": -3,
        "window_end": 40,
        "n": 5,
        "loads": 31,
        "town_first": "early",
        "town_last": "late",
        "speed_max": 9.0,
        "speed_avg": 3.75,
        "towns": 5,
        "half": 2.5,
        TIME: 39,
        ORDER: 42,
    }


def test_late_events_are_left_out_and_handed_on() -> None:
    harness = step(10, COUNTED, keys=("lane", "town"))
    harness.feed([{"ts": 1, "lane": 1}, {"ts": 5, "lane": 1, LATE: True}, {"ts": 12, "lane": 1}])
    harness.end()
    assert values(harness.rows(), "town", "lane", "window_start", "n") == [(None, 1, 1, 1), (None, 1, 12, 1)]
    assert values(harness.rows(Port.LATE), "ts") == [(5,)]


def test_keys_and_sessions_grow_while_events_come_in() -> None:
    harness = step(2, COUNTED, keys=("load",), block_events=512)
    harness.feed([{"ts": 5 * (index // 300), "load": index % 300} for index in range(1500)], cut=False)
    assert harness.operator.open_windows == 1500
    harness.end()
    assert harness.operator.open_windows == 0
    assert len(harness.rows()) == 1500
    assert {row["n"] for row in harness.rows()} == {1}


@pytest.mark.parametrize("aggregates", [COUNTED, BRIDGED])
def test_state_stays_bounded_over_many_sessions(aggregates: dict[str, Aggregate]) -> None:
    harness = step(4, aggregates, keys=(), block_events=64)
    largest = 0
    for start in range(0, 4000, 10):
        # the third event bridges the first two
        harness.feed([{"ts": start + offset, "speed": 1.0, "town": "x"} for offset in (0, 6, 3)], cut=False)
        harness.watermark(start)
        if start == 500:
            largest = harness.operator.state_bytes
    assert harness.operator.state_bytes <= largest
    harness.end()
    assert len(harness.rows()) == 400
    assert {row["n"] for row in harness.rows()} == {3}


@settings(max_examples=40)
@given(
    st.lists(EVENT, max_size=40),
    st.booleans(),
    st.sampled_from([1, 5, 12, 200]),
    st.sampled_from([(), ("town", "seen")]),
    st.lists(st.integers(0, 40), max_size=4),
    st.integers(0, 99),
)
def test_agrees_with_plain_python(
    events: list[dict[str, Any]],
    in_order: bool,
    gap_us: int,
    keys: tuple[str, ...],
    cuts: list[int],
    seed: int,
) -> None:
    for order, event in enumerate(events):
        event[ORDER] = order
    if in_order:
        events.sort(key=lambda event: event["ts"])
    harness = step(gap_us, EVERYTHING, keys, seed=seed)
    run_in_pieces(harness, events, cuts)
    assert_same_rows(harness.rows(), keys, expected_rows(Session(gap_us), keys, EVERYTHING, events))
    assert harness.operator.open_windows == 0
