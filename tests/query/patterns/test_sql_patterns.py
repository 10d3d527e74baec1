"""MATCH_RECOGNIZE gives the pattern that one would write in Python, and names what it does not read."""

from __future__ import annotations

import pytest
import sqlglot

from penstock.query.errors import QueryError
from penstock.query.patterns.modes import AfterMatch, Contiguity
from penstock.query.patterns.row_patterns import row_pattern
from penstock.query.patterns.sql_expressions import ExpressionScope, Reading
from penstock.query.steps import MatchSpec
from penstock.query.stream.stream import Stream
from penstock.query.types import Schema
from tests.query.stream.streams import Traffic
from tests.reference_expressions import evaluate


@pytest.fixture
def cars() -> Stream:
    return Traffic().cars


def spec_of(stream: Stream) -> MatchSpec:
    spec = stream._feed.step.spec
    assert isinstance(spec, MatchSpec)
    return spec


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A B C", "A >> B >> C"),
        ("A B+ C*", "A >> B+ >> C*"),
        ("A?? B+? C{2}", "A?? >> B+? >> C{2}"),
        ("A{2,} B{,3} C{2,3}?", "A{2,} >> B{0,3} >> C{2,3}?"),
        ("(A | B C)+ D", "(A | B >> C)+ >> D"),
        ("PERMUTE(A, B C) D", "(A & B >> C) >> D"),
    ],
)
def test_row_patterns_are_read(text: str, expected: str) -> None:
    assert repr(row_pattern(text, {})) == expected


@pytest.mark.parametrize("text", ["", "A |", "(A", "A)", "A{}", "A{x}", "^A", "A {- B -}", "A,B"])
def test_what_is_no_row_pattern_is_refused(text: str) -> None:
    with pytest.raises(QueryError, match="cannot read PATTERN"):
        row_pattern(text, {})


def test_all_parts_of_the_clause_are_read(cars: Stream) -> None:
    stream = cars.match_recognize(
        """
        SELECT * FROM cars MATCH_RECOGNIZE (
            PARTITION BY id
            ORDER BY ts
            MEASURES A.speed AS first_speed, LAST(B.speed) AS last_speed, COUNT(B.*) AS n,
                     AVG(B.speed) AS mean, lane + 1 AS next_lane,
                     CASE WHEN A.speed > 3 THEN 1 ELSE 0 END AS fast
            ONE ROW PER MATCH
            AFTER MATCH SKIP TO NEXT ROW
            PATTERN (A B{2,} C)
            WITHIN INTERVAL '10' MINUTE
            DEFINE
                B AS B.speed > PREV(B.speed) AND speed BETWEEN 1 AND A.speed * 2,
                C AS C.lane IN (1, 2) AND SUM(B.speed) > 100 AND NOT C.speed IS NULL
        )
        """
    )
    spec = spec_of(stream)
    assert repr(spec.pattern) == "A >> B{2,} >> C"
    conditions = {one.name: one.condition for one in spec.pattern.events()}
    assert conditions["A"] is None
    assert repr(conditions["B"]) == (
        "((speed > previous(speed)) and ((speed >= 1) and (speed <= (A.speed * 2))))"
    )
    assert repr(conditions["C"]) == (
        "(((lane in (1, 2)) and (sum(B.speed) > 100)) and (not (speed is null)))"
    )
    assert (spec.keys, spec.within_us, spec.contiguity) == (("id",), 600_000_000, Contiguity.STRICT)
    assert (spec.after, spec.all_rows, spec.consumed) == (AfterMatch.TO_NEXT, False, False)
    names = ("id", "match_start", "match_end", "first_speed", "last_speed", "n", "mean", "next_lane", "fast")
    assert stream.schema.names == names


def test_without_more_words_matches_do_not_overlap_and_give_one_row(cars: Stream) -> None:
    spec = spec_of(cars.match_recognize("MATCH_RECOGNIZE (ORDER BY ts PATTERN (A B) DEFINE B AS speed > 3)"))
    assert (spec.after, spec.all_rows, spec.keys) == (AfterMatch.PAST_LAST, False, ())


def test_all_rows_have_the_events_and_then_the_measures(cars: Stream) -> None:
    stream = cars.match_recognize(
        "MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(B.*) AS n ALL ROWS PER MATCH "
        "PATTERN (A B+) WITHIN 10 ROWS DEFINE B AS speed > 3)"
    )
    assert stream.schema.names == ("match_start", "match_end", "event", "ts", "id", "lane", "speed", "n")
    assert spec_of(stream).within_events == 10


@pytest.mark.parametrize(
    ("define", "expected"),
    [
        ("SUM(B.lane) < 9", "((coalesce(sum(B.lane), 0) + lane) < 9)"),
        ("COUNT(B.*) < 9", "((count(B) + 1) < 9)"),
        ("AVG(B.lane) < 9", "((cast((coalesce(sum(B.lane), 0) + lane) as float64) / (count(B) + 1)) < 9)"),
        ("MAX(B.speed) < 9", "(greatest(max(B.speed), speed) < 9)"),
        ("LAST(B.speed, 1) < 9", "(B.speed < 9)"),
        ("LAST(B.speed) < LAST(A.speed)", "(speed < A.speed)"),
        ("FIRST(B.id) = 9", "((when (count(B) == 0) then id otherwise first(B.id)) == 9)"),
    ],
)
def test_in_its_own_definition_a_variable_has_the_row_that_is_tested(
    cars: Stream, define: str, expected: str
) -> None:
    text = f"MATCH_RECOGNIZE (ORDER BY ts PATTERN (A B+ C) DEFINE B AS {define}, C AS lane = 1)"
    conditions = {one.name: one.condition for one in spec_of(cars.match_recognize(text)).pattern.events()}
    assert repr(conditions["B"]) == expected


@pytest.mark.parametrize("a", [-(2**63), -7, -6, -1, 0, 5, 7, 2**63 - 1])
@pytest.mark.parametrize("b", [-(2**63), -3, -1, 1, 3, 2**63 - 1])
def test_a_remainder_has_the_sign_of_the_left_side(a: int, b: int) -> None:
    schema = Schema(a="int64", b="int64")
    for text in ("a % b", "MOD(a, b)"):
        expr = Reading(schema, ["A"], ExpressionScope.DEFINE, "A").expr(
            sqlglot.parse_one(text, read="snowflake")
        )
        assert evaluate(expr, {"a": a, "b": b}, schema) == (abs(a) % abs(b)) * (-1 if a < 0 else 1)


def test_a_remainder_of_constants_is_what_sql_says(cars: Stream) -> None:
    """-7 % 3 is -1, where Python has 2."""
    stream = cars.match_recognize(
        "MATCH_RECOGNIZE (ORDER BY ts MEASURES -7 % 3 AS r, 7 % 0 AS n PATTERN (A))"
    )
    assert [evaluate(one, {}, Schema()) for _, one in spec_of(stream).columns] == [-1, None]


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("PATTERN (A B)", "order of event time: .*ORDER BY nothing.*write ORDER BY ts"),
        ("ORDER BY id PATTERN (A B)", "got ORDER BY id"),
        ("ORDER BY ts DESC PATTERN (A B)", "order of event time"),
        ("ORDER BY ts", "needs a PATTERN"),
        ("ORDER BY ts PATTERN (A B A)", "event 'A' stands twice"),
        ("ORDER BY ts PATTERN (A B) DEFINE C AS lane = 1", "DEFINE names 'C'.*variables here: A, B"),
        ("ORDER BY ts PATTERN (A B) DEFINE B AS sped > 1", "unknown column 'sped'.*did you mean 'speed'"),
        ("ORDER BY ts PATTERN (A B) DEFINE B AS X.speed > 1", "'X' is not a variable"),
        ("ORDER BY ts PATTERN (A B) DEFINE A AS speed > PREV(speed)", "PREV in 'A' would look"),
        ("ORDER BY ts PATTERN (A B) DEFINE B AS NEXT(speed) > 1", "NEXT.* is not supported in DEFINE of B"),
        ("ORDER BY ts MEASURES MATCH_NUMBER() AS n PATTERN (A B)", "match_start tells matches apart"),
        ("ORDER BY ts AFTER MATCH SKIP TO LAST B PATTERN (A B)", "AFTER MATCH SKIP is not supported"),
        ("ORDER BY ts PATTERN (A B) WITHIN 'soon' DEFINE B AS lane = 1", "WITHIN is an interval"),
        ("ORDER BY ts PATTERN (A B) DEFINE B AS lane", "must be true or false"),
        ("ORDER BY ts PATTERN (A B) DEFINE B AS lane = = 1", "cannot read MATCH_RECOGNIZE"),
        ("PARTITION BY id ORDER BY ts PATTERN (A+)", None),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_named(cars: Stream, clause: str, message: str | None) -> None:
    text = f"MATCH_RECOGNIZE ({clause})"
    if message is None:
        cars.match_recognize(text)
        return
    with pytest.raises(QueryError, match=f"(?s){message}"):
        cars.match_recognize(text)


def test_other_queries_around_it_are_refused(cars: Stream) -> None:
    with pytest.raises(QueryError, match="exactly one MATCH_RECOGNIZE"):
        cars.match_recognize("SELECT 1")
    with pytest.raises(QueryError, match="only SELECT"):
        cars.match_recognize("SELECT * FROM c MATCH_RECOGNIZE (ORDER BY ts PATTERN (A B)) WHERE x > 1")
    with pytest.raises(QueryError, match="other keys than PARTITION BY"):
        cars.key_by("lane").match_recognize("MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts PATTERN (A B))")
