"""Patterns read like what they match, and a wrong one fails while it is written."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from penstock.query.errors import QueryError
from penstock.query.explain import describe
from penstock.query.expr import col
from penstock.query.patterns.bound import bound
from penstock.query.patterns.matching import PatternWarning
from penstock.query.patterns.patterns import Pattern, aperiodic, event, periodic
from tests.query.stream.streams import Traffic

A, B, C, N = (event(name) for name in "abcn")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (A >> B >> C, "a >> b >> c"),
        (A & B | C, "a & b | c"),
        (A >> (B | C), "a >> (b | c)"),
        (A >> ~N >> B, "a >> ~n >> b"),
        (A.one_or_more() >> B.zero_or_more().reluctant(), "a+ >> b*?"),
        ((A >> B).times(2, 4), "(a >> b){2,4}"),
        (A.optional() >> B.at_least(3) >> C.times(2), "a? >> b{3,} >> c{2}"),
        (aperiodic(A, B, until=C), "aperiodic(a, b, until c)"),
        (periodic(A, every="90s", until=C), "periodic(a, every 1m30s, until c)"),
    ],
)
def test_a_pattern_shows_what_it_matches(pattern: Pattern, text: str) -> None:
    assert repr(pattern) == text


def match(pattern: Any, *arguments: Any, **options: Any) -> Any:
    options.setdefault("within", "10s")
    return Traffic().cars.key_by("lane").match(pattern, *arguments, **options)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda: event("not a name"), "needs a name: .*letters, digits"),
        (lambda: event("a", "speed > 3"), r"must be an expression.*col\('speed'\)"),
        (lambda: A >> col("speed"), "not a pattern"),
        (lambda: ~(A >> B), "only a single event can be negated"),
        (lambda: bool(A), "no truth value"),
        (lambda: A.times(3, 2), "the smaller first"),
        (lambda: (~A).times(2), "a negation cannot be repeated"),
        (lambda: A & B & C & N & event("e") & event("f") & event("g"), "at most 6 parts"),
        (lambda: periodic(A, every="0s", until=B), "every must be positive"),
        (lambda: aperiodic(A, B, until=B >> C), "must be a single event"),
        (lambda: match("a b"), "not a pattern: .*step 'match'"),
        (lambda: match(A >> A), "event 'a' stands twice.*times"),
        (lambda: match(~A >> B), "cannot begin with a negation"),
        (lambda: match(A.optional()), "must bind at least one event"),
        (lambda: match(A | ~N), "each part of & and |"),
        (lambda: match(A.optional().one_or_more() >> B), "what is repeated must bind an event"),
        (lambda: match(A.times(1, 2).times(1, 2)), "bound in two ways at once"),
        (lambda: match(A.times(2000)), "at most 1000 places"),
        (lambda: match(A >> B, within=None), "needs within.*remember every start for ever"),
        (lambda: match(A >> ~B, within=None, contiguity="strict"), "a negation at the end needs within"),
        (lambda: match(A >> periodic(B, every="1s", until=C)), "are whole patterns"),
        (lambda: match(periodic(A, every="1s", until=C), within=None, within_events=9), "needs within"),
        (lambda: match(periodic(A, every="1s", until=C), contiguity="any"), "contiguity of its own"),
        (lambda: match(A >> B, contiguity="loose"), "unknown contiguity.*'strict', 'next', 'any'"),
        (lambda: match(A >> B, after_match="skip"), "unknown after_match"),
        (lambda: match(A >> B, consumption="once"), "consumption is 'unrestricted' or 'consumed'"),
        (lambda: match(A >> B, rows="some"), "rows is 'one' or 'all'"),
        (lambda: match(A >> B, within_events=0), "within_events is a whole number"),
        (lambda: match(A >> B, within="-1s"), "within must not be negative"),
        (lambda: match(event("a", col("sped") > 1)), "unknown column 'sped'.*event 'a'.*'speed'"),
        (lambda: match(event("a", col("speed"))), "must be true or false.*event 'a'"),
        (lambda: match(A >> event("b", col("id") > bound("x")["id"])), "'x' is not in the pattern.*a, b"),
        (lambda: match(A >> ~N >> event("b", col("id") > N["id"])), "'n' is negated"),
        (lambda: match(A >> B, {"x": A["sped"]}), "unknown column 'sped'"),
        (lambda: match(A >> B, {"x": col("speed")}), r"column 'speed' of which event.*a\['speed'\]"),
        (lambda: match(A >> B, {"lane": A["id"]}), "column 'lane' is there twice"),
        (lambda: match(A >> B, {"x": "speed"}), "could be a column or a constant"),
        (lambda: match(A >> B, {"x": A.sum("ts")}), "sum needs a number"),
        (lambda: Traffic().cars.filter(A["speed"] > 1), "in its conditions and output only"),
    ],
)  # fmt: skip
def test_a_wrong_pattern_is_refused_and_says_what_would_fit(write: Callable[[], Any], message: str) -> None:
    with pytest.raises(QueryError, match=f"(?s){message}"):
        write()


def test_the_result_has_keys_bounds_and_output_with_the_types_of_what_is_bound() -> None:
    found = match(
        A >> B.zero_or_more() >> C,
        {"id": A["id"], "last": B["id"], "n": B.count(), "mean": B.avg("lane"), "both": A["id"] + C["lane"]},
    )
    assert str(found.schema) == (
        "Schema(lane: int32, match_start: timestamp, match_end: timestamp, id: int64, last: int64?, "
        "n: int64, mean: float64?, both: int64)"
    )
    assert found.time_column is None


def test_without_output_every_event_gives_its_columns() -> None:
    assert match(A >> (B | C)).schema.names[3:6] == ("a_ts", "a_id", "a_speed")
    fields = {field.name: field.nullable for field in match(A >> (B | C)).schema}
    assert (fields["a_id"], fields["b_id"]) == (False, True)


def test_all_rows_have_the_columns_of_the_events_and_which_they_are() -> None:
    found = match(A >> B, rows="all")
    assert found.schema.names == ("lane", "match_start", "match_end", "event", "ts", "id", "speed")


def test_a_pattern_that_can_explode_is_warned_of_unless_a_limit_is_chosen() -> None:
    with pytest.warns(PatternWarning, match="can double with every event.*max_runs"):
        match(A.one_or_more() >> B, contiguity="any")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        match(A.one_or_more() >> B, contiguity="any", max_runs=100)
        match(A.one_or_more() >> B)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "contiguity next, within 10s"),
        ({"consumption": "consumed"}, "consumed"),
        ({"after_match": "past_last"}, "after match past_last"),
    ],
)
def test_explain_says_what_can_run_in_parallel(options: dict[str, Any], told: str) -> None:
    text = describe(match(A >> B, **options)._feed.step.spec)
    assert text.startswith("match by lane: a >> b, contiguity next, within 10s")
    assert text.endswith(told)
    unkeyed = describe(Traffic().cars.match(A >> B, within="1s", **options)._feed.step.spec)
    assert unkeyed.startswith("match at degree 1 because ")
    assert ("neither key nor degree" in unkeyed) == (not options)
