"""Patterns as text: whatever can be written comes back as it was, and nothing else comes back at all."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.query.errors import QueryError
from penstock.query.expr import Expr, col, greatest, hash_of, lit, when
from penstock.query.identity import stable_content
from penstock.query.patterns.matching import matched
from penstock.query.patterns.patterns import aperiodic, event, periodic
from penstock.query.patterns.texts import pattern_of, pattern_text
from penstock.query.steps import MatchSpec
from penstock.query.types import Schema
from tests.cep.patterns.strategies import specs

TYPES = Schema(ts="timestamp", k="int32", x="float64?", s="string")


def spec_of(pattern: Any, **how: Any) -> MatchSpec:
    given = {
        "within": "5s", "within_events": None, "contiguity": None, "after_match": "no_skip",
        "consumption": "unrestricted", "rows": "one", "max_runs": 10, **how,
    }  # fmt: skip
    return matched(TYPES, ("k",), pattern, {"x": ps.bound("a")["x"]}, **given)[0]


def same(one: MatchSpec, other: MatchSpec) -> bool:
    return stable_content(one, TYPES) == stable_content(other, TYPES)


@settings(max_examples=100)
@given(specs(("k",)))
def test_random_patterns_come_back_as_they_were(one: tuple[MatchSpec, Schema] | None) -> None:
    if one is not None:
        assert same(pattern_of(pattern_text(one[0])), one[0])


@pytest.mark.parametrize(
    "condition",
    [
        col("x").is_in([1, 2.5]),
        when(col("k") > 1, col("x")).otherwise(2.0) > 1,
        hash_of(col("s"), 3) % 7 == 2,
        greatest(col("x"), -0.0) <= math.inf,
        (col("s").lower().starts_with('a"\\\n☃')) | (col("s").length() == 3),
        col("ts").truncate("1m") == col("ts"),
        col("x").fill_null(lit(None, "float64")).cast("int64") // 2 == -(2**62),
        ~(col("x") == math.nan) & (col("x").round() != 1e300),
    ],
)
def test_every_kind_of_expression_comes_back_as_it_was(condition: Expr) -> None:
    spec = spec_of(event("a", condition) >> event("b"))
    found = pattern_of(pattern_text(spec))
    assert same(found, spec)
    assert repr([one.condition for one in found.pattern.events()]) == repr(
        [one.condition for one in spec.pattern.events()]
    )


def test_snoop_s_operators_and_all_modes_come_back_as_they_were() -> None:
    a, b, c = event("a"), event("b", col("k") > 2), event("c", col("s") == "end")
    for spec in (
        spec_of(aperiodic(a, b, until=c)),
        spec_of(periodic(a, every="1s", until=c)),
        spec_of(a >> b, contiguity="strict", within=None, after_match="past_last", consumption="consumed"),
        spec_of((a | b) >> c.times(2, 3).reluctant(), within=None, within_events=7),
    ):
        assert same(pattern_of(pattern_text(spec)), spec)


@settings(max_examples=50)
@given(
    st.sampled_from(("op", "is", "name", "value", "event")), st.sampled_from(("+ f() +", "os", 3, None, []))
)
def test_a_text_that_was_tampered_with_makes_nothing_new(field: str, value: Any) -> None:
    text = pattern_text(spec_of(event("a", col("x") + 1 > 2) >> event("b")))

    def tampered(body: Any) -> Any:
        if isinstance(body, list):
            return [tampered(item) for item in body]
        if isinstance(body, dict):
            return {name: value if name == field else tampered(item) for name, item in body.items()}
        return body

    changed = json.dumps(tampered(json.loads(text)))
    if field in ("op", "is"):
        with pytest.raises(QueryError, match="cannot be read"):
            pattern_of(changed)
    else:  # whatever is made of it is a pattern, to be checked against the stream
        with suppress(QueryError):
            assert isinstance(pattern_of(changed), MatchSpec)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"is": "Column", "name": "x"}', '{"is": "eval"}'])
def test_what_is_no_pattern_is_refused_by_name(text: str) -> None:
    with pytest.raises(QueryError, match="a pattern of the checkpoint cannot be read"):
        pattern_of(text)
