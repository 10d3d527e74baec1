"""The two oracles agree, and say what the design note says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings

from penstock.query.expr import col
from penstock.query.matching import matched
from penstock.query.patterns import Pattern, aperiodic, event, periodic
from penstock.query.types import Schema
from tests.cep.oracle import Key, enumerate_matches, simulate
from tests.cep.strategies import SCHEMA, specs, streams

LETTERS = Schema(ts="timestamp", letter="string")
A, B, C, N = (event(letter, col("letter") == letter) for letter in "abcn")


def key_of(spec: Any, schema: Schema, rows: list[dict[str, Any]]) -> Key:
    return Key(spec, schema, rows, [(row["ts"], number, 0) for number, row in enumerate(rows)])


def found(pattern: Pattern, letters: str, **options: Any) -> list[str]:
    """The matches over one letter per microsecond (a dot is any other), as 'a0b2', in the order of rows."""
    given = {
        "within": "100us", "within_events": None, "contiguity": None, "after_match": "no_skip",
        "consumption": "unrestricted", "rows": "one", "max_runs": 1000,
    } | options  # fmt: skip
    spec, _ = matched(LETTERS, (), pattern, {}, **given)
    rows = [{"ts": number, "letter": letter} for number, letter in enumerate(letters)]
    reports = simulate(key_of(spec, LETTERS, rows))
    return ["".join(f"{name}{index}" for name, index in report.bound) for report in reports]


@pytest.mark.parametrize(
    ("pattern", "letters", "options", "expected"),
    [
        (A >> B, "acb", {}, ["a0b2"]),
        (A >> B, "acb", {"contiguity": "strict"}, []),
        (A >> B, "abb", {"contiguity": "any"}, ["a0b1", "a0b2"]),
        (A >> B, "abb", {"contiguity": "any", "after_match": "to_next"}, ["a0b1"]),
        (A >> B, "aabb", {}, ["a0b2", "a1b2"]),
        (A >> B, "aabb", {"consumption": "consumed"}, ["a0b2", "a1b3"]),
        (A >> B, "aabb", {"after_match": "past_last"}, ["a0b2"]),
        (A >> B, "a....b", {"within": "4us"}, []),
        (A >> B, "a....b", {"within": "5us"}, ["a0b5"]),
        (A >> B, "a..b", {"within": None, "within_events": 3}, []),
        (A >> B, "a..b", {"within": None, "within_events": 4}, ["a0b3"]),
        (A & B, "ba", {}, ["b0a1"]),
        (A | B, "ba", {}, ["b0", "a1"]),
        (A >> ~N >> B, "anb", {}, []),
        (A >> ~N >> B, "abn", {}, ["a0b1"]),
        (A >> ~N, "a.n", {"within": "1us"}, ["a0"]),
        (A >> ~N, "a.n", {"within": "2us"}, []),
        (A.one_or_more() >> B, "aab", {}, ["a0a1b2", "a1b2"]),
        (A.one_or_more() >> B, "aab", {"after_match": "past_last"}, ["a0a1b2"]),
        (A >> B.one_or_more(), "abb", {"within": "5us"}, ["a0b1b2"]),
        (A >> B.one_or_more().reluctant(), "abb", {}, ["a0b1"]),
        (A >> B.times(2), "a.b.b", {}, ["a0b2b4"]),
        (A >> B.optional() >> C, "ac", {}, ["a0c1"]),
        (aperiodic(A, B, until=C), "aabbcb", {}, ["a0b2", "a1b2", "a0b3", "a1b3"]),
        (aperiodic(A, B, until=C, cumulative=True), "abbcb", {}, ["a0b1b2c3"]),
        (periodic(A, every="2us", until=C), "a....c", {"within": "9us"}, ["a0", "a0"]),
        (periodic(A, every="3us", until=C), "a", {"within": "9us"}, ["a0", "a0", "a0"]),
    ],
)  # fmt: skip
def test_every_construct_matches_what_the_design_says(
    pattern: Pattern, letters: str, options: dict[str, Any], expected: list[str]
) -> None:
    assert found(pattern, letters, **options) == expected


@pytest.mark.parametrize("after", ["no_skip", "to_next", "past_last"])
@pytest.mark.parametrize("contiguity", ["strict", "next", "any"])
def test_runs_find_what_the_definition_allows(contiguity: str, after: str) -> None:
    @settings(max_examples=20)
    @given(specs((), True, (contiguity,), (after,), ("unrestricted",)), streams(6))
    def compare(one: Any, rows: list[dict[str, Any]]) -> None:
        check(one, rows)

    compare()


@pytest.mark.slow
@settings(settings.get_profile("thorough"), max_examples=300)
@given(specs(consumption=("unrestricted",)), streams(7))
def test_more_runs_find_what_the_definition_allows(one: Any, rows: list[dict[str, Any]]) -> None:
    check(one, rows)


def check(one: Any, rows: list[dict[str, Any]]) -> None:
    assume(one is not None)
    spec, _ = one
    assume(spec.within_us is not None)  # else what the end of the input leaves undecided is not reported
    key = key_of(spec, SCHEMA, rows)
    assert sorted(report.bound for report in simulate(key)) == sorted(enumerate_matches(key))
