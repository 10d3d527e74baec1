"""Every step says all of itself, and has an operator: what is forgotten is told at import."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any

import pyarrow as pa
import pytest

from penstock.query import steps
from penstock.query.aggregates import Aggregate, avg, sum_
from penstock.query.expr import Column, Expr, col, lit, when
from penstock.query.failures import OnError
from penstock.query.patterns.degree import Degree
from penstock.query.patterns.modes import AfterMatch, Contiguity
from penstock.query.patterns.patterns import Pattern, aperiodic, event, periodic
from penstock.query.steps.columns.lookup import table_digest
from penstock.query.steps.spec import (
    STEPS,
    Keyed,
    Means,
    Names,
    Order,
    PartialStep,
    Spec,
    Stateless,
    complete,
    declared,
)
from penstock.query.types import Schema
from penstock.query.windows import Sliding


def test_the_room_has_every_step() -> None:
    assert {one for one in vars(steps).values() if isinstance(one, type)} == set(STEPS.values())


def test_a_step_that_does_not_say_all_of_itself_is_told_at_import() -> None:
    with pytest.raises(
        TypeError,
        match="step Nothing does not say all of itself: name, inputs, timed, order, names_columns, "
        "details, means, merges, reads, routed_by missing",
    ):

        @declared
        @dataclass(frozen=True)
        class Nothing(Spec):
            """Nothing."""

    assert "nothing" not in STEPS


def test_a_family_does_not_answer_for_its_steps() -> None:
    with pytest.raises(TypeError, match="name, order, names_columns, details, means, reads missing"):

        @declared
        @dataclass(frozen=True)
        class Stateful(Keyed):
            """Nothing."""

    with pytest.raises(TypeError, match="name missing"):

        @complete
        @dataclass(frozen=True)
        class Whole(PartialStep):
            """Nothing."""


def test_the_name_of_a_step_is_its_own() -> None:
    with pytest.raises(TypeError, match="step Again takes the name 'filter', which is taken already"):

        @declared
        @dataclass(frozen=True)
        class Again(Stateless):
            """Nothing."""

            name = "filter"
            order = Order.KEPT
            names_columns = True

            def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
                return wanted

            def means(self) -> Means:
                return ()

            def details(self) -> str:
                return ""

    assert STEPS["filter"] is steps.FilterSpec


# -- what steps say to checkpoints -----------------------------------------------------------------


def noted(event: Any) -> Any:
    """A function of a user."""


MINUTE = Sliding(60, 60)
SUM = (("total", sum_("x")),)
BIG, NAMES = (col("x") > 1), (("y", col("x")),)
PATTERN = event("a", BIG) >> event("b").one_or_more()
MATCH = steps.MatchSpec(
    ("k",), PATTERN, 9, 5, Contiguity.ANY, AfterMatch.TO_NEXT, True, NAMES, True, 7, Degree(2)
)
TABLE = pa.table({"id": [1], "name": ["a"]})
EXAMPLES: list[Spec] = [
    steps.SourceSpec("source", "ts", 5, 1),  # type: ignore[arg-type]
    steps.SinkSpec("sink"),  # type: ignore[arg-type]
    steps.FilterSpec(BIG),
    steps.SelectSpec(NAMES),
    steps.ExplodeSpec((NAMES, NAMES), (None, BIG)),
    steps.FlatMapSpec(noted, OnError.STOP, 3),
    steps.BatchSpec(noted, True, OnError.STOP, 3),
    steps.UnionSpec(),
    steps.LookupSpec(TABLE, (("k", "id"),), (("n", "name"),), True),
    steps.WindowAggregateSpec(("k",), MINUTE, SUM),
    steps.NestedAggregateSpec(("k",), MINUTE, ("p",), SUM, SUM, BIG, BIG, BIG),
    steps.WindowTopSpec(("k",), MINUTE, 3, col("x"), True, ((col("y"), False),), True),
    steps.WindowJoinSpec((("k", "l"),), MINUTE, (("x", 0, "x"),)),
    steps.IntervalJoinSpec((("k", "l"),), -5, 5, (("x", 0, "x"),)),
    steps.CoGroupSpec((("k", "l"),), MINUTE, noted),
    steps.GroupJoinSpec((("k", "l"),), MINUTE, (("x", 1, "x"),), BIG, SUM, NAMES),
    steps.DeduplicateSpec(("k",), 5),
    steps.ProcessSpec(("k",), noted, Schema(n="int64"), 5, OnError.STOP, 3),
    MATCH,
    steps.MatchSplitSpec(MATCH, Degree(2)),
    steps.MatchMergeSpec(),
    steps.MatchSetSpec(("k",), "patterns"),
    steps.DetectSpec(noted, noted, (("x", 0, "x"),), Degree(2), "round_robin", 3),
]
"""One of each, every field with a value of its own."""


_X, _Y, _NOTED = ("Column", ("str", "'x'")), ("Column", ("str", "'y'")), "tests.query.test_steps.noted"
_BIG = ("Comparison", ("str", "'>'"), _X, ("Literal", ("int", "1"), ("NoneType", "None")))
_SUM, _NAMES, _MINUTE = (("total", ("sum", 1, (_X,), None)),), (("y", _X),), ("sliding", 1, 60, 60)
_PATTERN = ("Sequence", (("Event", "a", _BIG), ("Repetition", ("Event", "b", None), 1, None, True)))
_MATCH = (("k",), False, _PATTERN, (9, 5, 7), ("any", "to_next", True), (_NAMES, True))
#: What checkpoints know steps by. A change here drops the state of users: count ``version`` up instead.
SAID: dict[str, tuple[Any, ...]] = {
    "source": ("source", 1, "ts"),
    "sink": ("sink", 1),
    "filter": ("filter", 1, _BIG),
    "select": ("select", 1, _NAMES),
    "explode": ("explode", 1, (_NAMES, _NAMES), (None, _BIG)),
    "flat_map": ("flat_map", 1, _NOTED, 3),
    "batch": ("batch", 1, _NOTED, True, 3),
    "union": ("union", 1),
    "lookup": ("lookup", 1, table_digest(TABLE), (("k", "id"),), (("n", "name"),), True),
    "agg": ("agg", 1, ("k",), _MINUTE, _SUM),
    "nested": ("nested", 1, ("k",), _MINUTE, (("p",), _SUM, _BIG), (_SUM, _BIG, _BIG)),
    "top": ("top", 1, ("k",), _MINUTE, 3, ((_X, True), (_Y, False)), True),
    "join": ("join", 1, (("k", "l"),), _MINUTE, (("x", 0, "x"),)),
    "interval_join": ("interval_join", 1, (("k", "l"),), -5, 5, (("x", 0, "x"),)),
    "cogroup": ("cogroup", 1, (("k", "l"),), _MINUTE, _NOTED),
    "group_join": ("group_join", 1, (("k", "l"),), _MINUTE, (("x", 1, "x"),), _BIG, _SUM, _NAMES),
    "deduplicate": ("deduplicate", 1, ("k",), 5),
    "process": ("process", 1, ("k",), _NOTED, ("n: int64",), 5, 3),
    "match": ("match", 1, *_MATCH),
    "match_splitter": ("match_splitter", 1, *_MATCH),
    "match_merger": ("match_merger", 1),
    "match_set": ("match_set", 1, ("k",)),
    "detect": ("detect", 1, _NOTED, _NOTED, (("x", 0, "x"),), "round_robin", 3),
}


def test_there_is_an_example_of_every_step() -> None:
    assert {spec.name for spec in EXAMPLES} == set(STEPS)


def test_every_step_says_to_checkpoints_what_it_always_said() -> None:
    assert {spec.name: spec.said() for spec in EXAMPLES} == SAID


A = event("a")
EXPRESSIONS: list[Expr] = [
    lit(1.5, "float32"),
    col("x") + 1,
    (col("x") > 1) & ~col("b"),
    col("x").is_null(),
    col("x").is_in([1, 2]),
    col("x").cast("string"),
    col("s").substr(1, 2),
    when(col("b"), 1).otherwise(2),
    A["x"],
    A.count(),
]
PATTERNS = [A & A, A | A, A >> ~event("b") >> A, aperiodic(A, A, until=A), periodic(A, every="1s", until=A)]


def test_expressions_and_patterns_say_to_checkpoints_what_they_always_said() -> None:
    one, two = (
        ("Literal", ("int", "1"), ("NoneType", "None")),
        ("Literal", ("int", "2"), ("NoneType", "None")),
    )
    b = ("Column", ("str", "'b'"))
    assert [expr.key() for expr in EXPRESSIONS] == [
        ("Literal", ("float", "1.5"), ("DataType", "float32")),
        ("Arithmetic", ("str", "'+'"), _X, one),
        ("Logic", ("str", "'and'"), _BIG, ("Not", b)),
        ("IsNull", _X),
        ("InList", _X, (("int", "1"), ("int", "2"))),
        ("Cast", _X, ("DataType", "string")),
        ("Call", ("substr", 1, ("int", "1"), ("int", "2")), (("Column", ("str", "'s'")),)),
        ("When", ((b, one),), two),
        ("Bound", ("str", "'a'"), ("str", "'x'"), ("str", "'last'")),
        ("Bound", ("str", "'a'"), ("NoneType", "None"), ("str", "'count'")),
    ]
    a = ("Event", "a", None)
    assert [pattern.said() for pattern in PATTERNS] == [
        ("Conjunction", (a, a)),
        ("Disjunction", (a, a)),
        ("Sequence", (a, ("Negation", ("Event", "b", None)), a)),
        ("Aperiodic", a, a, a, False),
        ("Periodic", a, 1_000_000, a),
    ]


#: What may change and leave state as it is: it changes no result, or is looked at elsewhere.
FREE = {
    "source": {"source", "lateness_us", "number"},
    "sink": {"sink"},
    "match": {"degree"},
    "match_splitter": {"degree"},
    "match_set": {"patterns"},  # each is in the version's own list
    "detect": {"degree"},
    **{name: {"on_error"} for name in ("flat_map", "batch", "process")},
}
FIELDS = [(spec, field.name) for spec in EXAMPLES for field in fields(spec)]  # type: ignore[arg-type]


@pytest.mark.parametrize(("spec", "name"), FIELDS, ids=[f"{spec.name}-{name}" for spec, name in FIELDS])
def test_no_field_is_forgotten(spec: Spec, name: str) -> None:
    changed = replace(spec, **{name: other(getattr(spec, name))})  # type: ignore[type-var]
    is_free = name in FREE.get(spec.name, ())
    assert (changed.said() == spec.said()) is is_free


def test_functions_of_users_are_told() -> None:
    for spec in EXAMPLES:
        given = [getattr(spec, field.name) for field in fields(spec)]  # type: ignore[arg-type]
        assert list(spec.functions()) == [value for value in given if value is noted], spec.name


def test_a_version_of_the_user_tells_steps_apart_and_what_people_read_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = steps.FilterSpec(BIG)
    said = spec.said()
    monkeypatch.setattr(steps.FilterSpec, "details", lambda self: "reworded")
    assert (spec.text(), spec.said()) == ("filter reworded", said)
    monkeypatch.setattr(steps.FilterSpec, "version", 2)
    assert spec.said() != said


def other(value: Any) -> Any:
    """Another value of the same kind."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return value + "_"
        case tuple():
            return (*value[:-1], other(value[-1]))
        case Enum():
            return next(one for one in type(value) if one is not value)
        case None:
            return BIG
        case Column():
            return col("z")
        case Expr():
            return value & BIG
        case Aggregate():
            return avg("x")
        case Sliding():
            return Sliding(120, 60)
        case Schema():
            return Schema(m="int64")
        case Pattern():
            return value >> event("c")
        case Degree():
            return Degree(3)
        case steps.MatchSpec():
            return replace(value, max_runs=8)
        case pa.Table():
            return value.slice(1)
    return print  # of the functions
