"""Every word of the language says all of itself, and says the same to a checkpoint tomorrow."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from penstock.query import aggregates
from penstock.query.aggregates import AGGREGATES, AggregateFunction
from penstock.query.functions import FUNCTIONS
from penstock.query.windows import WINDOWS, Window, session, sliding, tumbling
from penstock.query.word import declared
from tests.reference_aggregates import AGGREGATE, WINDOW

#: What checkpoints know aggregates by. A change here drops the state of users: count ``version`` up instead.
SAID_OF_AGGREGATES = {
    "arg_max": ("arg_max", 1),
    "arg_min": ("arg_min", 1),
    "avg": ("avg", 1),
    "collect_list": ("collect_list", 1, 9),
    "count": ("count", 1),
    "count_distinct": ("count_distinct", 1),
    "first": ("first", 1),
    "last": ("last", 1),
    "max": ("max", 1),
    "min": ("min", 1),
    "quantile": ("quantile", 1, 0.25),
    "sum": ("sum", 1),
    "variance": ("variance", 1),
    "stddev": ("stddev", 1),
}
SAID_OF_FUNCTIONS = {
    "abs": ("abs", 1),
    "ceil": ("ceil", 1),
    "coalesce": ("coalesce", 1),
    "concat": ("concat", 1),
    "contains": ("contains", 1, "a"),
    "day": ("day", 1),
    "day_of_week": ("day_of_week", 1),
    "ends_with": ("ends_with", 1, "a"),
    "exp": ("exp", 1),
    "floor": ("floor", 1),
    "format_time": ("format_time", 1, "%Y"),
    "greatest": ("greatest", 1),
    "hash_of": ("hash_of", 1),
    "hour": ("hour", 1),
    "least": ("least", 1),
    "length": ("length", 1),
    "log": ("log", 1),
    "lower": ("lower", 1),
    "minute": ("minute", 1),
    "month": ("month", 1),
    "quarter": ("quarter", 1),
    "neg": ("neg", 1),
    "parse_time": ("parse_time", 1, "%Y"),
    "pow": ("pow", 1),
    "regexp_extract": ("regexp_extract", 1, "(a)", 1),
    "regexp_match": ("regexp_match", 1, "a"),
    "replace": ("replace", 1, "a", "b"),
    "round": ("round", 1),
    "second": ("second", 1),
    "sign": ("sign", 1),
    "split_part": ("split_part", 1, ",", 1),
    "sqrt": ("sqrt", 1),
    "starts_with": ("starts_with", 1, "a"),
    "substr": ("substr", 1, 1, 2),
    "trim": ("trim", 1, " \t\r\n"),
    "truncate": ("truncate", 1, "1m"),
    "upper": ("upper", 1),
    "year": ("year", 1),
}
_CONSTANTS = {"quantile": (0.25,), "collect_list": (9,)}


def test_every_function_says_to_checkpoints_what_it_always_said() -> None:
    said = {name: FUNCTIONS[name](*SAID_OF_FUNCTIONS[name][2:]).said() for name in FUNCTIONS}  # type: ignore[misc]
    assert said == SAID_OF_FUNCTIONS


def test_every_aggregate_has_a_meaning_in_the_reference() -> None:
    assert set(AGGREGATE) == set(AGGREGATES)


def test_every_aggregate_says_to_checkpoints_what_it_always_said() -> None:
    said = {name: kind(*_CONSTANTS.get(name, ())).said() for name, kind in AGGREGATES.items()}
    assert said == SAID_OF_AGGREGATES


def test_aggregates_read_as_they_are_written() -> None:
    assert aggregates.quantile("speed", 0.9).text() == "quantile(speed, 0.9)"
    assert aggregates.count().said() == ("count", 1, (), None)


def test_an_aggregate_that_does_not_say_all_of_itself_is_told_at_import() -> None:
    with pytest.raises(
        TypeError, match="aggregate Nothing does not say all of itself: name, in_order, of_no"
    ):

        @declared
        @dataclass(frozen=True)
        class Nothing(AggregateFunction):
            """Nothing."""

    assert "nothing" not in AGGREGATES


# -- windows ---------------------------------------------------------------------------------------


def test_every_window_has_a_meaning_in_the_reference() -> None:
    assert set(WINDOW) == set(WINDOWS.values())


def test_every_window_says_to_checkpoints_what_it_always_said() -> None:
    assert tumbling("1d", tz="UTC", offset="6h").said()[2:] == (86_400_000_000,) * 2 + (21_600_000_000, "UTC")
    windows = [tumbling("2s"), sliding("2s", every="1s"), session("1s")]
    assert [window.said() for window in windows] == [
        ("sliding", 1, 2_000_000, 2_000_000),
        ("sliding", 1, 2_000_000, 1_000_000),
        ("session", 1, 1_000_000),
    ]
    assert {window.name for window in windows} == set(WINDOWS)


def test_a_window_that_does_not_say_all_of_itself_is_told_at_import() -> None:
    with pytest.raises(TypeError, match="window Nothing does not say all of itself: name, mergeable, check"):

        @declared
        @dataclass(frozen=True)
        class Nothing(Window):
            """Nothing."""

    assert len(WINDOWS) == 2
