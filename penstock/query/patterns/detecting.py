"""Detecting: selections, a detector and what becomes of its matches, checked against the stream they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.query.errors import QueryError
from penstock.query.patterns.degree import Degree, as_degree
from penstock.query.steps import DetectSpec
from penstock.query.steps.spec import Version
from penstock.query.types import DataType, Field, Schema

#: What every match has, before the columns that were asked for.
DETECTED_FIELDS = (Field("sequence", DataType.INT64), Field("closed_at", DataType.TIMESTAMP))

#: How selections can be dealt out to instances; ``penstock.cep.selections.assignment`` says more.
ASSIGNMENTS = ("round_robin", "fewest_open")

_PREDICATES = ("cut", "finish", "export", "restore", "open_selections")
_WHOLE = (DataType.INT32, DataType.INT64, DataType.BOOL, DataType.TIMESTAMP)


def detected(
    schema: Schema,
    selections: Callable[[], Any],
    detector: Callable[[], Any],
    output: Mapping[str, tuple[int, str]],
    degree: int | Degree,
    assignment: str,
    version: Version = None,
) -> tuple[DetectSpec, Schema]:
    """The step that detects, and the columns of what it gives."""
    _check_selections(selections, schema)
    _made(detector, "detector", ("detect",), "detector=NoPassing")
    wanted = as_degree(degree)
    if wanted.control is not None:
        _made(
            wanted.control, "control", ("observe", "export", "restore"), "control=lambda: DegreeControl(...)"
        )
    if assignment not in ASSIGNMENTS:
        raise QueryError(
            "unknown assignment", detail=f"got {assignment!r}", hint=f"choose one of {', '.join(ASSIGNMENTS)}"
        )
    outputs = _outputs(output, schema)
    fields = list(DETECTED_FIELDS)
    for name, _, column in outputs:
        if any(field.name == name for field in fields):
            raise QueryError(
                f"column '{name}' is there twice",
                detail="sequence and closed_at come first",
                hint="name the output column otherwise",
            )
        fields.append(Field(name, schema[column].dtype, schema[column].nullable))
    return DetectSpec(selections, detector, outputs, wanted, assignment, version), Schema(fields)


def _check_selections(selections: Callable[[], Any], schema: Schema) -> None:
    made = _made(
        selections,
        "selections",
        _PREDICATES,
        "selections=lambda: Sequence(one_of('kind', 0), one_of('kind', 1))",
    )
    for column in sorted(getattr(made, "columns", ())):
        _check_column(column, schema, "selections")
    by = getattr(made, "by", None)
    if by is not None:
        field = schema[by]
        if field.dtype not in _WHOLE or field.nullable:
            fits = [one.name for one in schema if one.dtype in _WHOLE and not one.nullable]
            raise QueryError(
                "selections go by a column of whole numbers that is never null",
                detail=f"got {field}",
                hint=f"columns that would fit: {', '.join(fits) or 'none'}",
            )


def _made(factory: Any, what: str, methods: tuple[str, ...], hint: str) -> Any:
    """What a factory makes: made once here, so that what it lacks is told before anything runs."""
    if not callable(factory):
        given = " itself: every run and every instance needs its own" if hasattr(factory, methods[0]) else ""
        raise QueryError(
            f"{what} must be a function that makes one",
            detail=f"got {factory!r}{given}",
            hint=f"write {hint}",
        )
    made = factory()
    missing = [name for name in methods if not hasattr(made, name)]
    if missing:
        raise QueryError(
            f"what {what} makes lacks '{missing[0]}'",
            detail=f"got a {type(made).__name__}",
            hint=f"it needs {', '.join(methods)}",
        )
    return made


def _outputs(output: Any, schema: Schema) -> tuple[tuple[str, int, str], ...]:
    hint = "write {'first': (0, 'value')}: a column of the match's first event"
    if not isinstance(output, Mapping):
        raise QueryError("output must be a dict of columns", detail=f"got {output!r}", hint=hint)
    found: list[tuple[str, int, str]] = []
    for name, given in output.items():
        pair = given if isinstance(given, tuple | list) and len(given) == 2 else (None, None)
        place, column = pair
        if isinstance(place, bool) or not isinstance(place, int) or place < 0 or not isinstance(column, str):
            raise QueryError(
                "an output column is the number of an event in the match and its column",
                detail=f"'{name}' got {given!r}",
                hint=hint,
            )
        _check_column(column, schema, f"output column '{name}'")
        found.append((name, place, column))
    return tuple(found)


def _check_column(column: str, schema: Schema, where: str) -> None:
    if column not in schema:
        raise QueryError(
            f"unknown column '{column}'", detail=f"in {where}", hint=f"there are {', '.join(schema.names)}"
        )


__all__ = ["ASSIGNMENTS", "DETECTED_FIELDS", "detected"]
