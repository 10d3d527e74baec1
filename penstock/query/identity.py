"""Structural identity of steps: which are the same operator, and ids that other queries do not change."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

from penstock.query.aggregates import Aggregate
from penstock.query.connectors import Sink, Source
from penstock.query.expr import Expr
from penstock.query.failures import OnError
from penstock.query.patterns.degree import Degree
from penstock.query.patterns.sets import PatternSet
from penstock.query.step import Step
from penstock.query.steps import (
    SourceSpec,
)
from penstock.query.steps.spec import Spec
from penstock.query.steps.texts import function_name
from penstock.query.stream.lookup import table_digest
from penstock.query.types import Schema
from penstock.query.user_functions import ProcessFunction


@dataclass(frozen=True)
class Identity:
    """``same`` is equal for steps that can be one operator; ``digest`` is the same in every run."""

    same: int
    digest: str


def identities(steps: Iterable[Step]) -> dict[Step, Identity]:
    """The identities of all steps; inputs must stand before those who read them.

    A function is itself in ``same`` and its name in ``digest``: two lambdas of one line are two operators,
    and their ids are kept apart by a number.
    """
    result: dict[Step, Identity] = {}
    classes: dict[Hashable, int] = {}
    for step in steps:
        feeds = [(result[feed.step], feed.port.value) for feed in step.inputs]
        exact = (_content(step, _function_object), tuple((identity.same, port) for identity, port in feeds))
        stable = (_content(step, function_name), tuple((identity.digest, port) for identity, port in feeds))
        same = classes.setdefault(exact, len(classes))
        result[step] = Identity(same, hashlib.sha256(repr(stable).encode()).hexdigest())
    return result


def stable_content(spec: Spec, schema: Schema) -> Hashable:
    """All that a step says, the same in every run; of a function, its name."""
    return _said(spec, schema, function_name)


def _content(step: Step, function: Callable[[Any], Hashable]) -> Hashable:
    if isinstance(step.spec, SourceSpec):  # an app has one source of a name
        return ("source", step.name)
    return _said(step.spec, step.schema, function)


def _said(spec: Spec, schema: Schema, function: Callable[[Any], Hashable]) -> Hashable:
    said = tuple((name, _value(value, function)) for name, value in _parts(spec))
    return (spec.name, said, _value(schema, function))


def _parts(said: Any) -> list[tuple[str, Any]]:
    """The fields of a dataclass, without those that came later and are at their default."""
    parts = [(field, getattr(said, field.name)) for field in fields(said)]
    return [(f.name, value) for f, value in parts if not ("later" in f.metadata and value == f.default)]


def _value(value: Any, function: Callable[[Any], Hashable]) -> Hashable:
    if isinstance(value, Expr | Aggregate):
        return value.key()
    if isinstance(value, Schema):
        return tuple(str(field) for field in value)
    if isinstance(value, Degree):  # it changes no result: what a step has kept fits whatever the degree
        return "degree" if function is function_name else value
    if isinstance(value, OnError):  # nor does it: what a function did for other events stays as it was
        return "on_error" if function is function_name else str(value)
    if isinstance(value, tuple):
        return tuple(_value(item, function) for item in value)
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, bool | int | float | str | None):
        return (type(value).__name__, repr(value))
    if isinstance(value, ProcessFunction | PatternSet | Source | Sink) or callable(value):
        return function(value)
    if is_dataclass(value):
        parts = ((name, _value(part, function)) for name, part in _parts(value))
        return (type(value).__name__, *parts)
    return table_digest(value)


def _function_object(function: Any) -> Hashable:
    bound_to = getattr(function, "__self__", None)  # ``a.method`` is a new object each time it is written
    if bound_to is not None and hasattr(function, "__func__"):
        return (id(bound_to), id(function.__func__))
    return id(function)
