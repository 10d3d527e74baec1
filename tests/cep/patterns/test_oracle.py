"""The two oracles agree, and say what the design note says."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings

from penstock.query.expr import col
from penstock.query.patterns.matching import matched
from penstock.query.patterns.patterns import Pattern, aperiodic, event, periodic
from penstock.query.steps import MatchSpec
from penstock.query.types import Schema
from tests.cep.patterns.consumption import enumerate_consumed
from tests.cep.patterns.oracle import Key, enumerate_matches, simulate
from tests.cep.patterns.strategies import SCHEMA, specs, streams

LETTERS = Schema(ts="timestamp", letter="string")
A, B, C, N, Z = (event(letter, col("letter") == letter) for letter in "abcnz")
D, E, F = (event(name, col("letter") == name[1]) for name in ("da", "eb", "fa"))  # want what A and B want


def key_of(spec: Any, schema: Schema, rows: list[dict[str, Any]]) -> Key:
    return Key(spec, schema, rows, [(row["ts"], number, 0) for number, row in enumerate(rows)])


def found(pattern: Pattern, letters: str, **options: Any) -> list[str]:
    """The matches over one letter per microsecond (a dot is any other), as 'a0b2', in the order of rows."""
    reports = simulate(key_of(spec_of(pattern, **options), LETTERS, lettered(letters)))
    return ["".join(f"{name}{index}" for name, index in report.bound) for report in reports]


def spec_of(pattern: Pattern, **options: Any) -> MatchSpec:
    given = {
        "within": "100us", "within_events": None, "contiguity": None, "after_match": "no_skip",
        "consumption": "unrestricted", "rows": "one", "max_runs": 1000,
    } | options  # fmt: skip
    return matched(LETTERS, (), pattern, {}, **given)[0]


def lettered(letters: Iterable[str]) -> list[dict[str, Any]]:
    return [{"ts": number, "letter": letter} for number, letter in enumerate(letters)]


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
        (A >> (B >> C).optional() >> Z, "abz", {}, ["a0z2"]),
        (A >> (B >> C).optional() >> Z, "abzcz", {}, ["a0b1c3z4"]),  # what is preferred may still come
        (A >> (B >> C).optional() >> Z, "abz", {"contiguity": "strict"}, []),
        (A >> (B >> C).optional() >> ~N >> Z, "abnz", {}, []),
        (A >> (B >> C).optional() >> ~N >> Z, "anbcz", {}, ["a0b2c3z4"]),
        (A >> ((B >> C) | Z), "abz", {}, ["a0z2"]),
        (A >> ((B >> C) | Z), "abczz", {}, ["a0b1c2"]),
        (A >> B.times(2).optional() >> Z, "abz", {}, ["a0z2"]),
        (A >> B.optional() >> Z, "azbz", {}, ["a0z1"]),  # the next event that can continue it
        (A >> (B & C) >> Z, "acbcz", {}, ["a0c1b2z4"]),
        (A >> (B >> C).one_or_more() >> Z, "abcbz", {}, ["a0b1c2z4"]),
        (A >> (B >> C).one_or_more(), "abcb", {}, ["a0b1c2"]),
        (A >> (B >> C).one_or_more() >> ~N, "abcb", {}, ["a0b1c2"]),
        (A >> (B >> C).one_or_more() >> ~N, "abcbn", {}, []),
        (A >> B.one_or_more().reluctant() >> C, "abbc", {}, ["a0b1b2c3"]),
        (A >> B.optional().reluctant() >> C, "abc", {}, ["a0b1c2"]),
        (A >> B.one_or_more(), "abb", {"within": None, "within_events": 9}, ["a0b1b2"]),
        (A >> B.one_or_more(), "abb", {"within": None, "contiguity": "strict"}, ["a0b1b2"]),
        (A >> ~N, "a.", {"within": None, "within_events": 3}, ["a0"]),
        (A >> ~N, "a.n", {"within": None, "within_events": 3}, []),
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


#: Patterns whose matches want the same events: greedy, reluctant, waiting, with choices and with a way round.
COVETOUS = [
    A >> B,
    A & B,
    (A | B) >> C,
    A.one_or_more() >> B,
    A >> B.one_or_more(),
    A >> B.one_or_more().reluctant() >> C,
    A >> B.optional() >> C,
    (A | B).times(1, 2) >> C.optional(),
    (A >> B >> C) | (D >> E) | F,
    A >> ~N >> B,
    A >> (B | C).one_or_more() >> ~N,
    (A >> B.one_or_more()).times(1, 2) >> C.times(0, 2),
    A >> (B >> C).optional() >> Z,
    A >> ((B >> C) | N),
    A >> B.times(2).optional() >> C,
]


@pytest.mark.parametrize("contiguity", ["strict", "next", "any"])
def test_what_one_match_takes_is_gone_for_the_others(contiguity: str) -> None:
    chance = random.Random(contiguity)
    fought_over = 0
    for pattern in COVETOUS:
        for _ in range(20):
            within, after = f"{chance.randint(3, 7)}us", chance.choice(["no_skip", "to_next", "past_last"])
            how = {"contiguity": contiguity, "after_match": after, "within": within}
            spec = spec_of(pattern, consumption="consumed", **how)
            fought_over += check_consumed(spec, LETTERS, lettered(chance.choices("aabbccn.", k=8)))
    assert fought_over > 8, "too few events that two matches want"


@pytest.mark.parametrize("after", ["no_skip", "to_next", "past_last"])
@pytest.mark.parametrize("contiguity", ["strict", "next", "any"])
def test_runs_consume_what_trying_everything_anew_consumes(contiguity: str, after: str) -> None:
    @settings(max_examples=20)
    @given(specs((), True, (contiguity,), (after,), ("consumed",)), streams(7))
    def compare(one: Any, rows: list[dict[str, Any]]) -> None:
        assume(one is not None)
        check_consumed(one[0], SCHEMA, rows)

    compare()


@pytest.mark.slow
@settings(settings.get_profile("thorough"), max_examples=300)
@given(specs(consumption=("unrestricted",)), streams(7))
def test_more_runs_find_what_the_definition_allows(one: Any, rows: list[dict[str, Any]]) -> None:
    check(one, rows)


@pytest.mark.slow
@settings(settings.get_profile("thorough"), max_examples=1000)
@given(specs(consumption=("consumed",)), streams(8))
def test_more_runs_consume_what_trying_everything_anew_consumes(one: Any, rows: list[dict[str, Any]]) -> None:
    assume(one is not None)
    check_consumed(one[0], SCHEMA, rows)


def check(one: Any, rows: list[dict[str, Any]]) -> None:
    assume(one is not None)
    spec, _ = one
    key = key_of(spec, SCHEMA, rows)
    assert sorted(report.bound for report in simulate(key)) == sorted(enumerate_matches(key))


def check_consumed(spec: MatchSpec, schema: Schema, rows: list[dict[str, Any]]) -> bool:
    """Compares, and says whether consumption made a difference."""
    key, free = (key_of(one, schema, rows) for one in (spec, replace(spec, consumed=False)))
    reported = sorted(enumerate_consumed(key))
    assert sorted(report.bound for report in simulate(key)) == reported, (spec.pattern, rows)
    events = [index for bound in reported for _, index in bound]
    assert len(events) == len(set(events)), "an event is in two matches"
    return reported != sorted(report.bound for report in simulate(free))
