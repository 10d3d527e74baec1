"""Structural identity of steps: which are the same operator, and ids that other queries do not change."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

from penstock.query.aggregates import Aggregate
from penstock.query.expr import Expr
from penstock.query.patterns.degree import Degree
from penstock.query.patterns.sets import PatternSet
from penstock.query.step import Step
from penstock.query.steps import SourceSpec
from penstock.query.steps.columns.lookup import table_digest
from penstock.query.steps.spec import Spec
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
        exact = (_content(step), tuple((identity.same, port) for identity, port in feeds))
        stable = (_stable(step), tuple((identity.digest, port) for identity, port in feeds))
        same = classes.setdefault(exact, len(classes))
        result[step] = Identity(same, hashlib.sha256(repr(stable).encode()).hexdigest())
    return result


def stable_content(spec: Spec, schema: Schema) -> Hashable:
    """All that a step says to checkpoints, and the columns that it gives."""
    return (spec.said(), tuple(map(str, schema)))


def _stable(step: Step) -> Hashable:
    if isinstance(step.spec, SourceSpec):  # an app has one source of a name
        return (*step.spec.said(), step.name)
    return stable_content(step.spec, step.schema)


def _content(step: Step) -> Hashable:
    """All by which one step of an app differs from another: its fields, also those that change no result."""
    if isinstance(step.spec, SourceSpec):
        return ("source", step.name)
    return (step.spec.name, _value(step.spec), _value(step.schema))


def _value(value: Any) -> Hashable:
    if isinstance(value, Expr | Aggregate):
        return value.key()
    if isinstance(value, Schema):
        return tuple(map(str, value))
    if isinstance(value, tuple):
        return tuple(map(_value, value))
    if isinstance(value, Enum | Degree):
        return value
    if isinstance(value, bool | int | float | str | None):
        return (type(value).__name__, repr(value))
    if isinstance(value, ProcessFunction | PatternSet) or callable(value):
        return _function_object(value)
    if is_dataclass(value):
        return (type(value).__name__, *(_value(getattr(value, one.name)) for one in fields(value)))
    return table_digest(value)


def _function_object(function: Any) -> Hashable:
    bound_to = getattr(function, "__self__", None)  # ``a.method`` is a new object each time it is written
    if bound_to is not None and hasattr(function, "__func__"):
        return (id(bound_to), id(function.__func__))
    return id(function)
