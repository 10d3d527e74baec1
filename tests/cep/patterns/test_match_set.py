"""Patterns that come and go: each sees the events between its addition and its removal."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.cep.patterns.match_set import MatchSet
from penstock.memory.layout import ORDER, SUB, TIME
from penstock.query.errors import QueryError
from penstock.query.expr import col
from penstock.query.patterns.patterns import Pattern, event
from penstock.query.patterns.sets import PatternSet
from penstock.query.steps import MatchSetSpec
from tests.cep.patterns.oracle import Key, simulate
from tests.cep.patterns.strategies import SCHEMA, streams
from tests.cep.patterns.test_matcher import INPUT
from tests.harness import Harness, layout

LOW, HIGH = event("low", col("y") <= 1), event("high", col("y") >= 2)
PATTERNS: dict[str, Pattern] = {
    "rise": LOW >> HIGH,
    "quiet": LOW >> ~event("any_high", col("y") >= 2),
    "fall": event("before", col("y") >= 2).one_or_more() >> event("after", col("y") <= 1),
}
BOUND = {"rise": "high", "quiet": "low", "fall": "after"}


def change(patterns: PatternSet, kind: str, name: str, at: int | None) -> None:
    if kind == "remove":
        if name in patterns.names:
            patterns.remove(name, at=at)
    else:
        output = {"x": ps.bound(BOUND[name])["y"]}
        patterns.add(name, PATTERNS[name], output, within="5us", at=at)


def expected(patterns: PatternSet, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    changes = sorted(patterns.changes, key=lambda one: one.at_us or 0)
    found = []
    for number, one in enumerate(changes):
        if one.spec is None:
            continue
        ends = [other.at_us for other in changes[number + 1 :] if other.name == one.name]
        end = ends[0] if ends else None
        for k in {row["k"] for row in rows}:
            chosen = [
                (n, row)
                for n, row in enumerate(rows)
                if row["k"] == k and row["ts"] >= one.at_us and (end is None or row["ts"] < end)
            ]
            places = [(row["ts"], n, 0) for n, row in chosen]
            key = Key(one.spec, SCHEMA, [row for _, row in chosen], places)
            for report in simulate(key):
                if end is None or report.place[0] < end:
                    ((_, output),) = key.output(report)
                    found.append((report.place[0], one.name, k, report.start, report.end, output["x"]))
    return sorted(found)


@settings(max_examples=60)
@given(
    streams(24),
    st.lists(
        st.tuples(
            st.sampled_from(("add", "add", "remove")), st.sampled_from(sorted(PATTERNS)), st.booleans()
        ),
        max_size=8,
    ),
    st.integers(0, 1000),
)
def test_a_pattern_sees_the_events_between_its_addition_and_its_removal(
    rows: list[dict[str, Any]], changes: list[tuple[str, str, bool]], seed: int
) -> None:
    chance, patterns = random.Random(seed), PatternSet({"x": "int64"})
    schema = patterns.bind(SCHEMA, ("k",))
    output = layout(schema, TIME, [TIME, ORDER, SUB])
    harness = Harness(MatchSet, MatchSetSpec(("k",), patterns), [INPUT], output, seed=seed)
    numbered = [{**row, ORDER: number, SUB: 0} for number, row in enumerate(rows)]
    passed = -(2**62)
    while numbered:
        ready = numbered[: chance.randint(1, 6)]
        numbered = numbered[len(ready) :]
        harness.feed(ready)
        for kind, name, timed in changes[:2]:
            change(
                patterns, kind, name, max(passed, ready[0]["ts"]) + chance.randint(0, 9) if timed else None
            )
        changes = changes[2:]
        passed = numbered[0]["ts"] if numbered else ready[-1]["ts"]
        harness.watermark(passed)
    harness.end()
    made = [
        (row[TIME], row["pattern"], row["k"], row["match_start"], row["match_end"], row["x"])
        for row in harness.rows()
    ]
    assert [row[0] for row in made] == sorted(row[0] for row in made)
    settled = PatternSet({"x": "int64"})
    settled._changes = [one for one in patterns.changes if one.at_us is not None]
    assert sorted(made) == expected(settled, rows)


def test_patterns_are_added_and_removed_while_an_app_runs() -> None:
    rows = [{"ts": number, "k": 0, "x": None, "y": number % 4} for number in range(400)]
    app, patterns, seen = ps.App("live"), PatternSet({"x": "int64"}), []
    source = ps.sources.Rows(rows, SCHEMA)
    found = app.source("events", source, event_time="ts").match_set(patterns)
    change(patterns, "add", "rise", 0)

    def react(rows: list[dict[str, Any]]) -> None:
        first = not seen
        seen.extend((row["pattern"], row["match_start"]) for row in rows)
        if first:
            change(patterns, "add", "fall", None)
            patterns.remove("rise")

    app.sink("found", found, ps.sinks.Callback(react))
    app.run(on=ps.Node(workers=1, block_events=8, source_batch=8))
    added, removed = patterns.changes[1].at_us, patterns.changes[2].at_us
    assert added is not None
    assert removed is not None
    assert 0 < added <= removed < 400
    assert max(start for name, start in seen if name == "rise") < removed
    assert min(start for name, start in seen if name == "fall") >= added
    assert len([name for name, _ in seen if name == "fall"]) > 10


def test_tasks_whose_keys_move_make_every_change_at_its_time() -> None:
    """Several operators share a set on one node: none may be past the time of a change."""
    choose = random.Random(5)
    rows = [
        {"ts": number // 3, "k": choose.randrange(9), "x": None, "y": number % 4} for number in range(900)
    ]
    app, patterns, seen = ps.App("shared"), PatternSet({"x": "int64"}), []
    events = app.source("events", ps.sources.Rows(rows, SCHEMA), event_time="ts")
    found = events.key_by("k").match_set(patterns)
    change(patterns, "add", "rise", 0)

    def react(made: list[dict[str, Any]]) -> None:
        seen.extend(made)
        if len(patterns.changes) < 6:
            name = ("fall", "quiet", "rise")[len(patterns.changes) % 3]
            change(patterns, "remove" if name in patterns.names else "add", name, None)

    app.sink("found", found, ps.sinks.Callback(react))
    moving = ps.Node(
        workers=2, tasks=3, virtual_partitions=8, block_events=8, source_batch=8, rebalance_every_s=0.0,
        force_route=lambda route: (*route[1:], route[0]),
    )  # fmt: skip
    app.run(on=moving)
    assert len(patterns.changes) == 6
    made = [(row["pattern"], row["k"], row["match_start"], row["match_end"], row["x"]) for row in seen]
    assert sorted(made) == sorted(row[1:] for row in expected(patterns, rows))


def test_what_travels_to_a_task_has_no_changes() -> None:
    app, patterns = ps.App("live"), PatternSet({"x": "int64"})
    app.source("events", ps.sources.Rows([], SCHEMA), event_time="ts").key_by("k").match_set(patterns)
    change(patterns, "add", "rise", 5)
    there = pickle.loads(pickle.dumps(patterns))
    assert there.changes == ()
    assert there.output == patterns.output


def test_what_does_not_fit_the_set_is_refused() -> None:
    app, patterns = ps.App("live"), PatternSet({"x": "int64"})
    with pytest.raises(QueryError, match="has no stream yet"):
        change(patterns, "add", "rise", None)
    events = app.source("events", ps.sources.Rows([], SCHEMA), event_time="ts")
    found = events.key_by("k").match_set(patterns)
    assert found.schema.names == ("k", "pattern", "match_start", "match_end", "x")
    with pytest.raises(QueryError, match=r"'x' does not fit the set.*gives x: int64\?"):
        patterns.add("a", LOW >> HIGH, {"x": LOW["x"]}, within="1s")
    with pytest.raises(QueryError, match="'z' is not one of the set"):
        patterns.add("a", LOW >> HIGH, {"x": LOW["y"], "z": LOW["y"]}, within="1s")
    with pytest.raises(QueryError, match="no pattern 'b'"):
        patterns.remove("b")
    with pytest.raises(QueryError, match="belongs to one stream"):
        events.match_set(patterns)
    with pytest.raises(QueryError, match="needs within"):
        patterns.add("a", LOW >> HIGH, {"x": LOW["y"]})
    patterns.settled(0, 100)
    with pytest.raises(QueryError, match="that time has passed"):
        change(patterns, "add", "rise", 50)
