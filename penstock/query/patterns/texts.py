"""Patterns as text and back: how a checkpoint keeps those that were added while an app ran.

The text is JSON and says what a pattern is, never what to run. Reading it makes only the classes, operators
and functions that are named here, so that a checkpoint from somebody else can be wrong, but can do nothing.
"""

from __future__ import annotations

import json
import math
from dataclasses import fields
from enum import Enum
from functools import lru_cache
from typing import Any

from penstock.query import expr
from penstock.query.errors import QueryError
from penstock.query.expr import Expr
from penstock.query.functions import FUNCTIONS, Function
from penstock.query.patterns import patterns
from penstock.query.patterns.bound import FUNCTIONS as BOUND_FUNCTIONS
from penstock.query.patterns.bound import Bound
from penstock.query.patterns.modes import AfterMatch, Contiguity
from penstock.query.patterns.patterns import Event, Pattern
from penstock.query.steps import MatchSpec
from penstock.query.types import DataType

_EXPRESSIONS: tuple[type[Expr], ...] = (
    expr.Column,
    expr.Literal,
    expr.Arithmetic,
    expr.Comparison,
    expr.Logic,
    expr.Not,
    expr.IsNull,
    expr.InList,
    expr.Call,
    expr.Cast,
    expr.When,
    Bound,
)
_PATTERNS: tuple[type[Pattern], ...] = (
    Event,
    patterns.Sequence,
    patterns.Conjunction,
    patterns.Disjunction,
    patterns.Negation,
    patterns.Repetition,
    patterns.Aperiodic,
    patterns.Periodic,
)
_ENUMS: tuple[type[Enum], ...] = (DataType, Contiguity, AfterMatch)
_ALL: tuple[type[Any], ...] = (*_EXPRESSIONS, *_PATTERNS, MatchSpec)
_CLASSES = {one.__name__: one for one in _ALL}
_VALUES: dict[str, type[Enum]] = {one.__name__: one for one in _ENUMS}

#: Words that become code when an expression is compiled: all that there are, by class and field.
_WORDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("Arithmetic", "op"): ("+", "-", "*", "/", "//", "%"),
    ("Comparison", "op"): ("==", "!=", "<", "<=", ">", ">="),
    ("Logic", "op"): ("and", "or"),
    ("Bound", "function"): BOUND_FUNCTIONS,
}
#: What is counted or measured; None where there may be none.
_NUMBERS = frozenset(("least", "most", "every_us", "within_us", "within_events", "max_runs"))
_IS, _FLOAT, _FUNCTION = "is", "float", "function"
_KEPT_TEXTS = 1024


def pattern_text(spec: MatchSpec) -> str:
    """The pattern and how it is matched, as one line of JSON; equal for equal ones."""
    return json.dumps(_plain(spec), sort_keys=True, separators=(",", ":"), allow_nan=False)


@lru_cache(_KEPT_TEXTS)  # every batch asks again
def pattern_of(text: str) -> MatchSpec:
    """What ``pattern_text`` has written; the same object for the same text."""
    try:
        found = _read(json.loads(text))
    except (ValueError, TypeError, KeyError, RecursionError, QueryError) as error:
        raise _unreadable(f"{type(error).__name__}: {error}") from None
    if not isinstance(found, MatchSpec):
        raise _unreadable(f"it is a {type(found).__name__}")
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return {_IS: type(value).__name__, "value": value.value}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {_IS: _FLOAT, "value": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Function):
        constants = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}  # type: ignore[arg-type]
        return {_IS: _FUNCTION, "name": value.name, "constants": constants}
    name = type(value).__name__
    if _CLASSES.get(name) is not type(value):
        raise QueryError(
            f"a {name} cannot be part of a pattern that a checkpoint keeps", detail=f"got {value!r}"
        )
    return {_IS: name} | {field.name: _plain(getattr(value, field.name)) for field in fields(value)}


def _read(body: Any) -> Any:
    if isinstance(body, list):
        return tuple(_read(item) for item in body)
    if not isinstance(body, dict):
        return body
    values = dict(body)
    name = values.pop(_IS)
    if name == _FLOAT:
        return float(values["value"])
    if name == _FUNCTION:
        constants = {field: _read(value) for field, value in values["constants"].items()}
        return FUNCTIONS[values["name"]](**constants)
    if name in _VALUES:
        return _VALUES[name](values["value"])
    made = _CLASSES[name](**{field: _read(value) for field, value in values.items()})
    for field in fields(made):
        known = _WORDS.get((name, field.name))
        value = getattr(made, field.name)
        if known is not None and value not in known:
            raise ValueError(f"{value!r} is no {field.name} of {name}")
        if field.name in _NUMBERS and not (value is None or type(value) is int):
            raise ValueError(f"{field.name} is {value!r}")
    if isinstance(made, expr.Call) and not isinstance(made.function, Function):
        raise ValueError(f"{made.function!r} is no function")
    if isinstance(made, Event) and not str(made.name).isidentifier():
        raise ValueError(f"{made.name!r} is no name of an event")
    return made


def _unreadable(why: str) -> QueryError:
    return QueryError(
        "a pattern of the checkpoint cannot be read",
        detail=why,
        hint="the checkpoint was damaged, or written by another version of Penstock: start from an empty one",
    )
