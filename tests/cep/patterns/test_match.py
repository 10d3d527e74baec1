"""Matching as users meet it: disorder, late events, limits, and SQL text, on the node engine."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock import bound, col, event
from penstock.cep.patterns.match import Match
from penstock.memory.layout import LATE, ORDER, SUB, TIME
from penstock.query.graph import Port
from penstock.query.patterns.matching import PatternWarning, matched
from penstock.query.types import Schema
from tests.harness import Harness, layout

TRADES = Schema(ts="timestamp", symbol="string", price="int64")
LOW, HIGH = event("low", col("price") < 10), event("high", col("price") > 20)


def trades(prices: dict[str, list[int]]) -> list[dict[str, Any]]:
    """One trade per symbol and second."""
    rows = [
        {"ts": second * 1_000_000, "symbol": symbol, "price": price}
        for symbol, listed in prices.items()
        for second, price in enumerate(listed)
    ]
    return sorted(rows, key=lambda row: row["ts"])


def run(rows: list[dict[str, Any]], write: Any) -> list[dict[str, Any]]:
    app, sink = ps.App("trades"), ps.sinks.Memory()
    source = ps.sources.Rows(rows, TRADES)
    app.sink("found", write(app.source("trades", source, event_time="ts")), sink)
    app.run(on=ps.Node(workers=1))
    return sink.rows()


#: The fall and rise of each valley by hand: symbol, second it starts, bottom, top, falls, mean of the rises.
VALLEYS = [("A", 0, 5, 8, 2, 7.0), ("A", 5, 6, 9, 2, 9.0)]
V_SHAPES = {"A": [9, 7, 5, 6, 8, 8, 7, 6, 9], "B": [1, 2, 3, 2, 1, 1, 2, 1, 0]}


def test_the_same_in_python_and_in_sql() -> None:
    down = event("DOWN", col("price") < ps.previous("price"))
    up = event("UP", col("price") > ps.previous("price"))
    pattern = event("START_") >> down.one_or_more() >> up.one_or_more()
    output = {"bottom": down["price"], "top": up["price"], "falls": down.count(), "mean": up.avg("price")}

    def in_python(stream: ps.Stream) -> ps.Stream:
        return stream.key_by("symbol").match(
            pattern, output, contiguity="strict", after_match="past_last", within="20s"
        )

    def in_sql(stream: ps.Stream) -> ps.Stream:
        return stream.match_recognize(
            """MATCH_RECOGNIZE (
                PARTITION BY symbol ORDER BY ts
                MEASURES LAST(DOWN.price) AS bottom, UP.price AS top, COUNT(DOWN.*) AS falls,
                         AVG(UP.price) AS mean
                ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
                PATTERN (START_ DOWN+ UP+) WITHIN INTERVAL '20' SECOND
                DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price))"""
        )

    rows = trades(V_SHAPES)
    found = run(rows, in_sql)
    assert found == run(rows, in_python)
    told = [
        (row["symbol"], row["match_start"] // 10**6, row["bottom"], row["top"], row["falls"], row["mean"])
        for row in found
    ]
    assert sorted(told) == VALLEYS


def test_events_out_of_order_within_the_lateness_are_put_in_order_first() -> None:
    rows = trades({"A": [5, 15, 25, 5, 25, 15]})
    shuffled = [rows[index] for index in (1, 0, 3, 2, 5, 4)]
    app, sink, late = ps.App("trades"), ps.sinks.Memory(), ps.sinks.Memory()
    source = ps.sources.Rows([*shuffled, rows[0]], TRADES)  # the last one comes five seconds late
    found = app.source("trades", source, event_time="ts", lateness="1s").match(LOW >> HIGH, within="10s")
    app.sink("found", found.select("low_ts", "high_ts"), sink)
    app.sink("late", found.late(), late)
    app.run(on=ps.Node(workers=1, block_events=2))
    times = [(row["low_ts"] // 10**6, row["high_ts"] // 10**6) for row in sink.rows()]
    assert times == [(0, 2), (3, 4)]
    assert late.rows() == [rows[0]]


def harness(pattern: ps.Pattern, **options: Any) -> Harness:
    given = {
        "within": "100us", "within_events": None, "contiguity": None, "after_match": "no_skip",
        "consumption": "unrestricted", "rows": "one", "max_runs": 10,
    } | options  # fmt: skip
    spec, schema = matched(TRADES, ("symbol",), pattern, {"price": bound("low")["price"]}, **given)
    source = layout(TRADES, "ts", [ORDER, SUB, LATE])
    return Harness(Match, spec, [source], layout(schema, TIME, [TIME, ORDER, SUB]), late=source)


def test_a_key_with_too_many_runs_opens_no_more_and_says_so_once() -> None:
    step = harness(LOW >> HIGH, max_runs=3)
    step.feed([{"ts": time, "symbol": "A", "price": 5, ORDER: time} for time in range(10)])
    step.feed([{"ts": time, "symbol": "B", "price": 5, ORDER: 20 + time} for time in range(2)])
    with pytest.warns(PatternWarning, match="'step' left out runs.*max_runs=3"):
        step.watermark(10)
    assert isinstance(step.operator, Match)
    assert (step.operator.dropped_runs, step.operator.open_windows) == (7, 5)
    step.feed([{"ts": 11, "symbol": symbol, "price": 30, ORDER: ord(symbol)} for symbol in "AB"])
    step.end()
    assert [row["match_start"] for row in step.rows()] == [0, 1, 2, 0, 1]


def test_metrics_tell_of_runs_left_out() -> None:
    app = ps.App("trades")
    stream = app.source("trades", ps.sources.Rows(trades({"A": [5] * 9}), TRADES), event_time="ts")
    app.sink("found", stream.match(LOW >> HIGH, within="9s", max_runs=4, name="swing"), ps.sinks.Discard())
    with pytest.warns(PatternWarning, match="'swing' left out runs"):
        summary = app.run(on=ps.Node(workers=1))
    (swing,) = [operator for operator in summary.metrics.operators if operator.id == "swing"]
    assert swing.dropped_runs == 5
    assert swing.state_bytes > 0


def test_runs_and_events_beyond_the_deadline_are_given_up() -> None:
    step = harness(LOW >> HIGH, max_runs=10_000)
    assert isinstance(step.operator, Match)
    largest = 0
    for start in range(0, 50_000, 500):
        step.feed(
            [
                {"ts": time, "symbol": f"s{time % 7}", "price": 5, ORDER: time}
                for time in range(start, start + 500)
            ],
            cut=False,
        )
        step.watermark(start + 500)
        assert step.operator.open_windows <= 101
        largest = max(largest, step.operator.state_bytes)
    assert largest < 700_000
    step.end()
    assert step.operator.open_windows == 0
    assert step.operator.export_state() == {}


def test_conditions_on_earlier_strings() -> None:
    one = event("one", col("price") == 1)
    same = event("same", (col("symbol").lower() == one["symbol"]) & one["symbol"].is_in(["a", "c"]))

    def write(stream: ps.Stream) -> ps.Stream:
        return stream.match(one >> same, {"symbol": same["symbol"]}, within="9s", contiguity="any")

    rows = trades({"a": [1, 2], "B": [3, 3], "b": [1, 5], "A": [6, 6], "c": [1, 7]})
    for row in run(rows, write):
        assert row["symbol"].lower() in ("a", "c")
    assert sorted(row["symbol"] for row in run(rows, write)) == ["A", "A", "a", "c"]


def test_late_events_are_counted_and_handed_on() -> None:
    step = harness(LOW >> HIGH)
    step.feed([{"ts": 1, "symbol": "A", "price": 5}, {"ts": 0, "symbol": "A", "price": 30, LATE: True}])
    step.end()
    assert step.rows() == []
    assert [row["price"] for row in step.rows(Port.LATE)] == [30]
    assert step.operator.late_events == 1


def test_all_rows_tell_what_was_known_at_each_event() -> None:
    rising = event("rising", col("price") > ps.previous("price"))
    output = {"price": col("price"), "so_far": rising.count(), "highest": rising.max("price")}

    def write(stream: ps.Stream) -> ps.Stream:
        return stream.match(
            event("first") >> rising.times(2),
            output,
            contiguity="strict",
            rows="all",
            after_match="past_last",
        )

    found = run(trades({"A": [3, 1, 2, 4, 0]}), write)
    assert [(row["event"], row["price"], row["so_far"], row["highest"]) for row in found] == [
        ("first", 1, 0, None),
        ("rising", 2, 1, 2),
        ("rising", 4, 2, 4),
    ]
