"""Deduplicate: the first event per key by event time, whatever the order of arrival."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.memory.layout import LATE, ORDER, SUB
from penstock.operators.keyed.deduplicate import Deduplicate
from penstock.query.graph import Port
from penstock.query.steps import DeduplicateSpec
from tests.harness import Harness, Row, layout
from tests.replay import replay

EVENT = {"t": "timestamp", "k": "int64?", "v": "string?"}


def dedup(within: int | None = None, **settings: Any) -> Harness:
    return Harness(
        Deduplicate,
        DeduplicateSpec(("k",), within),
        inputs=[layout(EVENT, "t", [ORDER, SUB, LATE])],
        output=layout(EVENT, "t", [ORDER, SUB]),
        **settings,
    )


def expected(rows: list[Row], within: int | None) -> list[Row]:
    kept, last = [], {}
    for row in sorted(rows, key=lambda row: (row["t"], row["$order"], row["$sub"])):
        before = last.get(row["k"])
        if before is None or (within is not None and row["t"] - before >= within):
            last[row["k"]] = row["t"]
            kept.append(row)
    return kept


def test_keeps_the_earliest_event_of_each_key_not_the_first_to_arrive() -> None:
    harness = dedup()
    harness.feed([{"t": 5, "k": 1, "v": "b"}, {"t": 3, "k": 1, "v": "a"}, {"t": 4, "k": 2, "v": None}])
    assert harness.rows() == []
    harness.watermark(5)
    assert [(row["t"], row["k"], row["v"]) for row in harness.rows()] == [(3, 1, "a"), (4, 2, None)]
    harness.end()
    assert len(harness.rows()) == 2


def test_equal_times_go_by_order_then_sub() -> None:
    harness = dedup()
    places = [(2, 0), (1, 5), (1, 4), (3, 0)]
    harness.feed([{"t": -7, "k": 1, "$order": order, "$sub": sub} for order, sub in places])
    harness.end()
    assert [(row["$order"], row["$sub"]) for row in harness.rows()] == [(1, 4)]


def test_null_is_a_key_of_its_own() -> None:
    harness = dedup()
    harness.feed([{"t": t, "k": k} for t, k in enumerate([None, 0, None, 0])])
    harness.end()
    assert [(row["t"], row["k"]) for row in harness.rows()] == [(0, None), (1, 0)]


def test_within_counts_from_the_last_kept_event() -> None:
    harness = dedup(within=10)
    harness.feed([{"t": t, "k": 1} for t in (-5, 0, 4, 5, 14, 15, 40)])
    harness.end()
    assert [row["t"] for row in harness.rows()] == [-5, 5, 15, 40]


def test_expired_keys_are_forgotten() -> None:
    harness = dedup(within=50)
    for start in range(0, 10_000, 100):
        harness.feed([{"t": start + n, "k": start + n} for n in range(100)], cut=False)
        harness.watermark(start + 100)
        assert harness.operator.keys <= 50  # type: ignore[attr-defined]
    assert len(harness.rows()) == 10_000
    assert harness.operator.state_bytes < 20_000


def test_a_key_kept_again_is_not_forgotten_early() -> None:
    harness = dedup(within=10)
    harness.feed([{"t": 0, "k": 1}, {"t": 10, "k": 1}])
    harness.watermark(15)  # the first is out of reach, the second is not
    harness.feed([{"t": 19, "k": 1}, {"t": 20, "k": 1}])
    harness.end()
    assert [row["t"] for row in harness.rows()] == [0, 10, 20]


def test_late_events_go_to_the_late_output() -> None:
    harness = Harness(
        Deduplicate,
        DeduplicateSpec(("k",), None),
        inputs=[layout(EVENT, "t", [ORDER, LATE])],
        output=layout(EVENT, "t"),
        late=layout({"k": "int64?"}),
    )
    harness.feed([{"t": 1, "k": 1, "$late": True}, {"t": 2, "k": 1}])
    harness.end()
    assert [row["t"] for row in harness.rows()] == [2]
    assert harness.rows(Port.LATE) == [{"k": 1}]
    assert harness.operator.late_events == 1


def test_without_keys_the_first_event_of_all_is_kept() -> None:
    harness = Harness(
        Deduplicate,
        DeduplicateSpec((), None),
        inputs=[layout(EVENT, "t", [ORDER])],
        output=layout({"t": "timestamp"}, "t"),
    )
    harness.feed([{"t": 3}, {"t": 1}, {"t": 2}])
    harness.end()
    assert harness.rows() == [{"t": 1}]


@given(
    st.lists(st.tuples(st.integers(-50, 50), st.none() | st.integers(0, 4), st.integers(0, 2)), max_size=80),
    st.none() | st.integers(1, 40),
    st.integers(0, 1000),
    st.integers(0, 10),
)
def test_any_order_and_cut_keeps_the_same_events(
    found: list[tuple[int, int | None, int]], within: int | None, seed: int, slack: int
) -> None:
    rows = [
        {"t": t, "k": k, "v": str(n), "$order": n // 2, "$sub": n % 2} for n, (t, k, _) in enumerate(found)
    ]
    harness = dedup(within, seed=seed, block_events=3)
    replay(harness, rows, seed=seed, slack=slack)
    assert harness.rows() == expected(rows, within)
