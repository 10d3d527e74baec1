"""The matcher gives what the oracle gives, in every mode, wherever the watermark cuts."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.cep.patterns.matcher import Matcher
from penstock.memory.edges import END_OF_TIME
from penstock.memory.layout import ORDER, SUB, TIME, Layout
from penstock.memory.strings import StringPool
from penstock.query.patterns.matching import PatternWarning
from penstock.query.steps import MatchSpec
from penstock.query.types import Schema
from tests.cep.patterns.consumption import enumerate_consumed
from tests.cep.patterns.oracle import Key, Report, enumerate_matches, simulate
from tests.cep.patterns.strategies import SCHEMA, specs, streams
from tests.harness import columns_of, layout, rows_of

INPUT = layout(SCHEMA, "ts", [ORDER, SUB])


def expected(spec: MatchSpec, schema: Schema, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of all keys by the oracle, in their order."""
    made = []
    for key in keys_of(spec, rows):
        for report in simulate(key):
            time, order, sub = report.place
            for index, (bound, output) in enumerate(key.output(report)):
                row = {name: key.rows[bound[-1][1]][name] for name in spec.keys}
                row |= {"match_start": report.start, "match_end": report.end}
                row |= {"event": bound[-1][0]} if spec.all_rows else {}
                made.append({**row, **output, TIME: time, ORDER: order, SUB: sub + 2 * index})
    return sorted(made, key=lambda row: (row[TIME], row[ORDER], row[SUB]))


def keys_of(spec: MatchSpec, rows: list[dict[str, Any]]) -> Iterator[Key]:
    for value in sorted({row["k"] for row in rows}) if spec.keys else [None]:
        chosen = [(n, row) for n, row in enumerate(rows) if value is None or row["k"] == value]
        yield Key(spec, SCHEMA, [row for _, row in chosen], [(row["ts"], n, 0) for n, row in chosen])


def brute_force(key: Key) -> list[dict[str, Any]]:
    """The output columns of all matches of one key that a search through everything finds."""
    found = enumerate_consumed(key) if key.spec.consumed else enumerate_matches(key)
    outputs = [next(key.output(Report((0, 0, 0), bound, 0, 0))) for bound in found]
    return [{"k": key.rows[0]["k"], **output} for _, output in outputs]


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


def check(one: Any, rows: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    assume(one is not None)
    spec, schema = one
    made, matcher = run(spec, schema, rows, seed)
    assert made == expected(spec, schema, rows), spec.pattern
    assert matcher.open_runs == 0
    assert matcher.events.count == 0
    return made


MODES = [
    (contiguity, after, consumption)
    for contiguity in ("strict", "next", "any")
    for after in ("no_skip", "to_next", "past_last")
    for consumption in ("unrestricted", "consumed")
]


_FEW = 7  # events of one key that can be searched through


@pytest.mark.parametrize(("contiguity", "after", "consumption"), MODES)
def test_every_mode_matches_as_both_oracles_say(contiguity: str, after: str, consumption: str) -> None:
    simulated: list[int] = []
    searched: list[int] = []

    @settings(max_examples=40)
    @given(specs(("k",), False, (contiguity,), (after,), (consumption,)), streams(16), st.integers(0, 5))
    def compare(one: Any, rows: Any, seed: int) -> None:
        made = check(one, rows, seed)
        simulated.append(len(made))
        searched.extend(check_by_brute_force(one[0], rows, made))

    compare()
    assert sum(simulated) > 10, "too few matches to mean anything"
    assert sum(searched) > 3, "too few matches to mean anything"


def check_by_brute_force(
    spec: MatchSpec, rows: list[dict[str, Any]], made: list[dict[str, Any]]
) -> Iterator[int]:
    """Compares the keys with few events; says how many matches these have."""
    names = ["k", *(name for name, _ in spec.columns)]
    for key in keys_of(spec, rows):
        if len(key.rows) <= _FEW:
            mine = [{name: row[name] for name in names} for row in made if row["k"] == key.rows[0]["k"]]
            assert sorted(mine, key=repr) == sorted(brute_force(key), key=repr), spec.pattern
            yield len(mine)


@settings(max_examples=12)
@given(specs(rows=("one", "all")), streams(14), st.integers(0, 99))
def test_conditions_on_earlier_events_match_as_the_oracle_says(one: Any, rows: Any, seed: int) -> None:
    check(one, rows, seed)


@settings(max_examples=40)
@given(specs(("k",), False), streams(20), st.integers(0, 5), st.integers(6, 11))
def test_a_limit_of_runs_leaves_out_the_same_wherever_batches_end(
    one: Any, rows: Any, seed: int, other: int
) -> None:
    assume(one is not None)
    limited = replace(one[0], max_runs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)
        first, second = (run(limited, one[1], rows, number) for number in (seed, other))
    assert first[0] == second[0]
    assert first[1].dropped_runs == second[1].dropped_runs


@pytest.mark.slow
@settings(settings.get_profile("thorough"), max_examples=120)
@given(specs(("k",), rows=("one", "all")) | specs(rows=("one", "all")), streams(14), st.integers(0, 99))
def test_random_patterns_match_as_the_oracle_says(one: Any, rows: Any, seed: int) -> None:
    check(one, rows, seed)
