"""What is passed over, and what the end of the input decides: as users meet it, on nodes."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock import aperiodic, col, event
from penstock.cep.patterns.match import Match
from penstock.memory.layout import LATE, ORDER, SUB, TIME
from penstock.query.patterns.matching import matched
from penstock.query.types import Schema
from penstock.state.errors import StateError
from tests.harness import Harness, layout

LETTERS = Schema(ts="timestamp", k="int64", letter="string", n="int64")
A, B, C, D, N = (event(letter, col("letter") == letter) for letter in "abcdn")

#: Every alarm stands although what the event b begins is never completed.
ALARMS = {
    "optional sequence": A >> (B >> C).optional() >> D,
    "sequence or": A >> ((B >> C) | D),
    "optional repetition": A >> B.times(2).optional() >> D,
}


def run(letters: str, write: Any, tasks: int = 1) -> list[dict[str, Any]]:
    """The matches over one letter a second, for each of two keys."""
    rows = [
        {"ts": second * 1_000_000, "k": key, "letter": letter, "n": second}
        for second, letter in enumerate(letters)
        for key in (1, 2)
    ]
    app, sink = ps.App("letters"), ps.sinks.Memory()
    stream = app.source("letters", ps.sources.Rows(rows, LETTERS), event_time="ts")
    app.sink("found", write(stream), sink)
    app.run(on=ps.Node(workers=1, tasks=tasks))
    return sorted(sink.rows(), key=lambda row: row.get("k", 0))


@pytest.mark.parametrize("name", ALARMS)
def test_a_part_that_is_begun_and_not_completed_removes_no_match(name: str) -> None:
    pattern = ALARMS[name]
    output = {"at": D["n"]}

    def by_key(stream: ps.Stream) -> ps.Stream:
        return stream.key_by("k").match(pattern, output, within="1m")

    alarms = [{"k": key, "match_start": 0, "match_end": 2_000_000, "at": 2} for key in (1, 2)]
    assert run("abd", by_key) == run("abd", by_key, tasks=2) == alarms
    shared = run("abd", lambda stream: stream.match(pattern, output, within="1m", degree=2))
    assert [row["at"] for row in shared] == [2, 2]


def test_a_cumulative_pattern_passes_over_none_of_its_events() -> None:
    b = event("b", col("letter") == "b")
    enough = event("c", (col("letter") == "c") & (b.count() < 2))
    pattern = aperiodic(A, b, until=enough, cumulative=True)

    def write(stream: ps.Stream) -> ps.Stream:
        return stream.key_by("k").match(pattern, {"count": b.count()}, within="1m")

    assert [row["count"] for row in run("abc", write)] == [1, 1]
    assert run("abbc", write) == []


def test_a_repetition_gives_back_what_the_rest_cannot_use() -> None:
    b = event("b", col("letter") == "b")
    few = event("d", (col("letter") == "d") & (b.count() < 2))

    def write(stream: ps.Stream) -> ps.Stream:
        return stream.key_by("k").match(A >> b.one_or_more() >> few, {"last": b["n"]}, within="1m")

    assert [row["last"] for row in run("abbd", write)] == [1, 1]


def harness(pattern: ps.Pattern, **options: Any) -> Harness:
    given = {
        "within": "100us", "within_events": None, "contiguity": None, "after_match": "no_skip",
        "consumption": "unrestricted", "rows": "one", "max_runs": 1000,
    } | options  # fmt: skip
    spec, schema = matched(LETTERS, ("k",), pattern, {"n": A["n"]}, **given)
    return Harness(
        Match, spec, [layout(LETTERS, "ts", [ORDER, SUB, LATE])], layout(schema, TIME, [TIME, ORDER, SUB])
    )


def feed(step: Harness, letters: str) -> Match:
    step.feed([{"ts": i, "k": 1, "letter": letter, "n": i, ORDER: i} for i, letter in enumerate(letters)])
    step.watermark(len(letters))
    assert isinstance(step.operator, Match)
    return step.operator


@pytest.mark.parametrize(
    "pattern", [A >> (B >> C).one_or_more() >> D, A >> B.one_or_more() >> C.optional() >> D]
)
def test_what_a_preferred_run_can_do_as_well_is_not_kept(pattern: ps.Pattern) -> None:
    assert feed(harness(pattern), "a" + 40 * "bc").open_windows <= 4


def test_runs_of_before_spent_continuations_are_refused() -> None:
    tables = feed(harness(A >> (B >> C).optional() >> D), "ab").export_state()
    tables["runs"] = tables["runs"].drop_columns(["$spent"])
    with pytest.raises(StateError, match="state does not fit its operator"):
        harness(A >> (B >> C).optional() >> D).operator.import_state(tables, 2)


FALLING = """MATCH_RECOGNIZE (
    PARTITION BY k ORDER BY ts MEASURES COUNT(B.*) AS falls
    PATTERN (A B+) DEFINE B AS n < PREV(n))"""


def test_the_end_of_the_input_ends_a_match_that_reaches_it() -> None:
    falls = run("xyz", lambda stream: stream.with_columns(n=-col("n")).match_recognize(FALLING))
    assert falls == [{"k": key, "match_start": 0, "match_end": 2_000_000, "falls": 2} for key in (1, 2)]


@pytest.mark.parametrize("degree", [None, 2])
@pytest.mark.parametrize("bounds", [{"contiguity": "strict"}, {"within_events": 50}, {"within": "1m"}])
def test_the_end_of_the_input_decides_what_waits(bounds: dict[str, Any], degree: int | None) -> None:
    def write(stream: ps.Stream) -> ps.Stream:
        one = stream.filter(col("k") == 1)
        return one.match(A >> B.one_or_more(), {"last": B["n"]}, degree=degree, **bounds)

    assert run("cabb", write) == [{"match_start": 1_000_000, "match_end": 3_000_000, "last": 3}]


def test_a_negation_at_the_end_holds_until_the_end_of_the_input() -> None:
    def write(stream: ps.Stream) -> ps.Stream:
        return stream.key_by("k").match(A >> ~N, {"at": A["n"]}, within_events=50)

    # Without a deadline in time the match ends with its last event.
    assert run("acnac", write) == [
        {"k": key, "match_start": 3_000_000, "match_end": 3_000_000, "at": 3} for key in (1, 2)
    ]


def test_windows_over_matches_that_the_end_decides_have_each_match_once() -> None:
    def write(stream: ps.Stream) -> ps.Stream:
        found = stream.key_by("k").match(A >> B.one_or_more(), {"last": B["n"]}, contiguity="strict")
        return found.window(ps.tumbling("1h")).agg(matches=ps.count()).select("matches")

    assert [row["matches"] for row in run("abbc" + 9 * "c" + "ab", write)] == [2, 2]
