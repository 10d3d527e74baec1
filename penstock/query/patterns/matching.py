"""Matching: a pattern and how it is to be matched, checked against the stream that it reads."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from penstock.query.aggregates import AGGREGATES, Aggregate
from penstock.query.durations import Duration, duration_us
from penstock.query.errors import QueryError
from penstock.query.expr import Expr, col
from penstock.query.inference import resolved
from penstock.query.patterns.bound import Bound, bound_in, rewritten
from penstock.query.patterns.checks import bound_names, check_pattern, explodes
from penstock.query.patterns.degree import Degree, as_degree
from penstock.query.patterns.modes import AfterMatch, Contiguity, chosen_mode, coupling
from penstock.query.patterns.patterns import Aperiodic, Pattern, Periodic
from penstock.query.steps import MatchSpec
from penstock.query.steps.spec import NamedExprs
from penstock.query.stream.projection import computed, condition
from penstock.query.types import DataType, Field, Schema

MATCH_NAMES = ("match_start", "match_end")
EVENT_NAME = "event"  # which event of the pattern a row is, where every row of a match is asked for

#: Runs that one key may have at once, if the query does not say.
MAX_RUNS = 10_000


class PatternWarning(UserWarning):
    """A pattern that may keep far more runs than it finds matches."""


def matched(
    schema: Schema,
    keys: tuple[str, ...],
    pattern: Pattern,
    output: Mapping[str, Any] | None,
    within: Duration | None,
    within_events: int | None,
    contiguity: str | Contiguity | None,
    after_match: str | AfterMatch,
    consumption: str,
    rows: str,
    max_runs: int | None,
    degree: int | Degree | None = None,
) -> tuple[MatchSpec, Schema]:
    """The step that matches, and the columns of what it gives."""
    if not isinstance(pattern, Pattern):
        raise QueryError(
            "not a pattern", detail=f"got {pattern!r}", hint="write e.g. event('a') >> event('b')"
        )
    mode = _contiguity(pattern, contiguity)
    after = chosen_mode(AfterMatch, after_match, "after_match")
    consumed = _choice(consumption, ("unrestricted", "consumed"), "consumption") == "consumed"
    all_rows = _choice(rows, ("one", "all"), "rows") == "all"
    within_us = None if within is None else duration_us(within, "within")
    if within_us is not None and within_us < 0:
        raise QueryError("within must not be negative", detail=f"got '{within}'", hint="write e.g. '10m'")
    _check_count(within_events, "within_events")
    _check_count(max_runs, "max_runs")
    check_pattern(pattern, mode, within_us, within_events)
    if isinstance(pattern, Periodic) and (after is not AfterMatch.NO_SKIP or consumed or within_us is None):
        raise QueryError(
            "a periodic pattern needs within, and neither skips nor consumes",
            detail=f"got {pattern!r}",
            hint="write match(periodic(...), within='1h')",
        )
    _check_conditions(pattern, schema)
    columns = _columns(pattern, output, schema, keys, all_rows)
    fields = [*(schema[key] for key in keys), *(Field(name, DataType.TIMESTAMP) for name in MATCH_NAMES)]
    fields += [Field(EVENT_NAME, DataType.STRING)] if all_rows else []
    fields += _output_fields(columns, pattern, schema, all_rows)
    _check_names(fields)
    if max_runs is None and explodes(pattern, mode):
        warnings.warn(
            f"with contiguity 'any' the matches of {pattern!r} can double with every event; a key keeps at "
            f"most {MAX_RUNS} runs and leaves out what is beyond: write max_runs=..., or contiguity='next'",
            PatternWarning,
            stacklevel=4,
        )
    spec = MatchSpec(
        keys,
        pattern,
        within_us,
        within_events,
        mode,
        after,
        consumed,
        columns,
        all_rows,
        max_runs or MAX_RUNS,
        _degree(degree, keys, after, consumed),
    )
    return spec, Schema(fields)


def _degree(
    given: int | Degree | None, keys: tuple[str, ...], after: AfterMatch, consumed: bool
) -> Degree | None:
    if given is None:
        return None
    degree = as_degree(given)
    if keys:
        raise QueryError(
            "a pattern with keys has no degree",
            detail=f"got {degree}, but runs by {', '.join(keys)} on as many tasks as there are",
            hint="leave degree out, or leave key_by out to share the first events of matches among instances",
        )
    why = coupling(after, consumed)
    if why is not None and degree.most > 1:
        raise QueryError(
            "matches that depend on each other run at degree 1",
            detail=f"got {degree}, but {why}",
            hint="give the pattern a key with key_by(...) to run it by key, or leave degree out",
        )
    return degree if why is None else None


def bound_type(one: Bound, schema: Schema, missing: bool) -> Field:
    """The column that stands for a reference; ``missing`` says that there may be no such event."""
    if one.function == "count":
        return Field(one.field_name, DataType.INT64)
    assert one.column is not None
    typed = Aggregate(AGGREGATES[one.function](), (col(one.column),)).result_type(schema)
    return Field(one.field_name, typed.dtype, typed.nullable or missing)


def with_fields(expr: Expr, schema: Schema, surely: Iterable[str] = ()) -> tuple[Expr, Schema]:
    """The expression with columns in place of references, and the schema that has these columns too.

    References to events that are not ``surely`` bound may be null.
    """
    always = set(surely)
    found = {one.field_name: one for one in bound_in(expr)}
    fields = [bound_type(one, schema, one.event is None or one.event not in always) for one in found.values()]
    return rewritten(expr, _as_field), Schema([*schema, *fields])


def _as_field(one: Bound) -> Expr:
    return col(one.field_name)


def _columns(
    pattern: Pattern, output: Mapping[str, Any] | None, schema: Schema, keys: tuple[str, ...], all_rows: bool
) -> NamedExprs:
    if output is not None:
        if not isinstance(output, Mapping):
            raise QueryError(
                "output must be a dict of columns", detail=f"got {output!r}", hint="write {'user': a['user']}"
            )
        given = computed(output)
    elif all_rows:
        given = tuple((name, Bound(None, name, "last")) for name in schema.names if name not in keys)
    else:
        given = tuple(
            (f"{name}_{column}", Bound(name, column, "last"))
            for name in bound_names(pattern)
            for column in schema.names
            if column not in keys
        )
    for name, expr in given:
        _check_references(expr, pattern, f"output column '{name}'")
        plain = {column for column in rewritten(expr, _as_field).columns() if not column.startswith("@")}
        if plain and not all_rows:
            column = min(plain)
            raise QueryError(
                f"column '{column}' of which event?",
                detail=f"in output column '{name}'",
                hint=f"write {next(iter(bound_names(pattern)))}['{column}']",
            )
    return given


def _output_fields(columns: NamedExprs, pattern: Pattern, schema: Schema, all_rows: bool) -> list[Field]:
    surely = [] if all_rows else bound_names(pattern, surely=True)
    fields = []
    for name, expr in columns:
        rewriting, typed_over = with_fields(expr, schema, surely)
        typed = resolved(rewriting, typed_over)
        nullable = typed.nullable
        if isinstance(expr, Bound) and expr.event is None and expr.column:  # of the row's own event
            nullable = schema[expr.column].nullable
        fields.append(Field(name, typed.dtype, nullable))
    return fields


def _check_conditions(pattern: Pattern, schema: Schema) -> None:
    for one in pattern.events():
        if one.condition is None:
            continue
        _check_references(one.condition, pattern, f"the condition of event '{one.name}'")
        try:
            condition(*with_fields(one.condition, schema))
        except QueryError as error:
            where = f"in the condition of event '{one.name}'"
            detail = where if error.detail is None else f"{where}, {error.detail}"
            raise QueryError(error.what, detail=detail, hint=error.hint) from None


def _check_references(expr: Expr, pattern: Pattern, where: str) -> None:
    known = bound_names(pattern)
    for one in bound_in(expr):
        if one.event is None or one.event in known:
            continue
        negated = any(event.name == one.event for event in pattern.events())
        close = get_close_matches(one.event, known, n=1)
        raise QueryError(
            f"event '{one.event}' is {'negated: it has no columns' if negated else 'not in the pattern'}",
            detail=f"in {where}",
            hint=(f"did you mean '{close[0]}'? " if close else "") + f"events here: {', '.join(known)}",
        )


def _check_names(fields: Iterable[Field]) -> None:
    seen: set[str] = set()
    for field in fields:
        if field.name in seen:
            raise QueryError(
                f"column '{field.name}' is there twice",
                detail="keys, match_start, match_end and, for all rows, event come first",
                hint="name the output column otherwise",
            )
        seen.add(field.name)


def _contiguity(pattern: Pattern, given: str | Contiguity | None) -> Contiguity:
    aperiodic = isinstance(pattern, Aperiodic) and not pattern.cumulative
    if given is None:
        return Contiguity.ANY if aperiodic else Contiguity.NEXT
    mode = chosen_mode(Contiguity, given, "contiguity")
    if isinstance(pattern, Aperiodic | Periodic) and mode is not (
        Contiguity.ANY if aperiodic else Contiguity.NEXT
    ):
        raise QueryError(
            "an aperiodic or periodic pattern has a contiguity of its own",
            detail=f"got {given!r} for {pattern!r}",
            hint="leave contiguity out",
        )
    return mode


def _choice(value: object, choices: tuple[str, ...], what: str) -> str:
    if value not in choices:
        listed = " or ".join(f"'{choice}'" for choice in choices)
        raise QueryError(f"{what} is {listed}", detail=f"got {value!r}", hint=f"write {what}='{choices[1]}'")
    return str(value)


def _check_count(value: object, what: str) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise QueryError(
            f"{what} is a whole number of at least 1", detail=f"got {value!r}", hint=f"write {what}=100"
        )


__all__ = ["MATCH_NAMES", "MAX_RUNS", "PatternWarning", "bound_type", "matched", "with_fields"]
