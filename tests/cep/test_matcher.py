"""The matcher gives what the oracle gives, in every mode, wherever the watermark cuts."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.cep.matcher import Matcher
from penstock.memory.edges import END_OF_TIME
from penstock.memory.layout import ORDER, SUB, TIME, Layout
from penstock.memory.strings import StringPool
from penstock.query.graph import MatchSpec
from penstock.query.types import Schema
from tests.cep.oracle import Key, simulate
from tests.cep.strategies import SCHEMA, specs, streams
from tests.harness import columns_of, layout, rows_of

INPUT = layout(SCHEMA, "ts", [ORDER, SUB])


def expected(spec: MatchSpec, schema: Schema, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of all keys by the oracle, in their order."""
    made = []
    for value in sorted({row["k"] for row in rows}) if spec.keys else [None]:
        chosen = [(n, row) for n, row in enumerate(rows) if value is None or row["k"] == value]
        key = Key(spec, SCHEMA, [row for _, row in chosen], [(row["ts"], n, 0) for n, row in chosen])
        for report in simulate(key):
            time, order, sub = report.place
            for index, (bound, output) in enumerate(key.output(report)):
                row = {name: key.rows[bound[-1][1]][name] for name in spec.keys}
                row |= {"match_start": report.start, "match_end": report.end}
                row |= {"event": bound[-1][0]} if spec.all_rows else {}
                made.append({**row, **output, TIME: time, ORDER: order, SUB: sub + 2 * index})
    return sorted(made, key=lambda row: (row[TIME], row[ORDER], row[SUB]))


def output_of(schema: Schema) -> Layout:
    return layout(schema, TIME, [TIME, ORDER, SUB])


def run(
    spec: MatchSpec, schema: Schema, rows: list[dict[str, Any]], seed: int
) -> tuple[list[dict[str, Any]], Matcher]:
    """The matcher's rows, with watermarks at random places between the events."""
    chance, strings, output = random.Random(seed), StringPool(), output_of(schema)
    matcher = Matcher(spec, INPUT, output, strings, "step")
    numbered = [{**row, ORDER: number, SUB: 0} for number, row in enumerate(rows)]
    made: list[dict[str, Any]] = []
    while True:
        watermark = END_OF_TIME
        if numbered and chance.random() < 0.7:
            watermark = numbered[0]["ts"] + chance.randint(0, 6)
        ready = [row for row in numbered if row["ts"] < watermark]
        numbered = numbered[len(ready) :]
        columns, count = matcher.take(columns_of(ready, INPUT, strings), len(ready), watermark)
        made += rows_of(columns, output, strings, 0, count)
        if watermark == END_OF_TIME:
            return made, matcher


def check(one: Any, rows: list[dict[str, Any]], seed: int) -> None:
    assume(one is not None)
    spec, schema = one
    made, matcher = run(spec, schema, rows, seed)
    assert made == expected(spec, schema, rows)
    if spec.within_us is not None:
        assert matcher.open_runs == 0
        assert len(matcher.rows) == 0


@settings(max_examples=150)
@given(specs(references=False), streams(), st.integers(0, 5))
def test_patterns_without_references_match_as_the_oracle_says(one: Any, rows: Any, seed: int) -> None:
    check(one, rows, seed)


@pytest.mark.slow
@settings(settings.get_profile("thorough"), max_examples=300)
@given(specs(keys=("k",), rows=("one", "all")) | specs(rows=("one", "all")), streams(14), st.integers(0, 99))
def test_random_patterns_match_as_the_oracle_says(one: Any, rows: Any, seed: int) -> None:
    check(one, rows, seed)
