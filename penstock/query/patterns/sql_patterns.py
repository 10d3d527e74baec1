"""``MATCH_RECOGNIZE`` as patterns: what the SQL parser read, in the words of ``match``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from penstock.query.errors import QueryError
from penstock.query.expr import Expr
from penstock.query.patterns.automaton import automaton
from penstock.query.patterns.bound import Bound, bound_in
from penstock.query.patterns.patterns import Pattern
from penstock.query.patterns.row_patterns import row_pattern
from penstock.query.patterns.sql_expressions import ExpressionScope, Reading
from penstock.query.types import Schema

_DIALECT = "snowflake"  # of sqlglot's, one that has MATCH_RECOGNIZE
_SKIPS = {
    None: "past_last",
    "AFTER MATCH SKIP PAST LAST ROW": "past_last",
    "AFTER MATCH SKIP TO NEXT ROW": "to_next",
}
_ROWS = {None: "one", "ONE ROW PER MATCH": "one", "ALL ROWS PER MATCH": "all"}
_UNITS = {"SECOND": "s", "MINUTE": "m", "HOUR": "h", "DAY": "d", "MILLISECOND": "ms", "MICROSECOND": "us"}


@dataclass(frozen=True)
class SqlMatch:
    """What a ``MATCH_RECOGNIZE`` clause says."""

    keys: tuple[str, ...]
    pattern: Pattern
    output: dict[str, Expr] | None
    within: str | None
    within_events: int | None
    after_match: str
    rows: str


def parse_match_recognize(text: str, schema: Schema, time_column: str | None) -> SqlMatch:
    """Reads a clause over events of ``schema``; raises ``QueryError`` for what cannot be matched."""
    clause, within, within_events = _parsed(text)
    _check_order(clause, time_column)
    keys = tuple(_column(one, "PARTITION BY", schema) for one in clause.args.get("partition_by") or ())
    if clause.args.get("pattern") is None:
        raise QueryError("MATCH_RECOGNIZE needs a PATTERN", hint="write PATTERN (A B+)")
    names = row_pattern(clause.args["pattern"].name, {})
    variables = [one.name for one in names.events()]
    defined: dict[str, Expr] = {}
    for one in clause.args.get("define") or ():
        if one.alias not in variables:
            raise QueryError(
                f"DEFINE names '{one.alias}', which is not in the PATTERN",
                hint=f"variables here: {', '.join(variables)}",
            )
        defined[one.alias] = Reading(schema, variables, ExpressionScope.DEFINE, one.alias).expr(one.this)
    pattern = row_pattern(clause.args["pattern"].name, defined)
    _check_previous(pattern, defined)
    rows = _known(clause.args.get("rows"), _ROWS, "rows per match")
    output = _measures(clause, Reading(schema, variables, ExpressionScope.MEASURES), rows, schema, keys)
    after = _known(clause.args.get("after"), _SKIPS, "AFTER MATCH SKIP")
    return SqlMatch(keys, pattern, output, within, within_events, after, rows)


def _parsed(text: str) -> tuple[exp.MatchRecognize, str | None, int | None]:
    """The clause and its WITHIN, which the SQL parser does not know: its tokens are taken out first."""
    if not isinstance(text, str):
        raise QueryError("not SQL text", detail=f"got {text!r}", hint="write 'MATCH_RECOGNIZE (...)'")
    whole = text.strip().removesuffix(";")
    if not whole.upper().startswith("SELECT"):
        whole = f"SELECT * FROM events {whole}"  # parsed only: nothing is ever run as SQL
    try:
        whole, within, within_events = _without_within(whole)
        tree = sqlglot.parse_one(whole, read=_DIALECT)
    except SqlglotError as error:
        first = str(error).splitlines()[0]
        raise QueryError(
            "cannot read MATCH_RECOGNIZE",
            detail=first,
            hint="its parts are PARTITION BY, ORDER BY, MEASURES, ONE ROW | ALL ROWS PER MATCH, AFTER MATCH "
            "SKIP, PATTERN, WITHIN, DEFINE, in this order",
        ) from None
    clauses = list(tree.find_all(exp.MatchRecognize))
    plain = isinstance(tree, exp.Select) and len(tree.expressions) == 1
    if len(clauses) != 1 or not plain or not isinstance(tree.expressions[0], exp.Star):
        raise QueryError(
            "exactly one MATCH_RECOGNIZE over the stream is needed",
            detail=f"got {text.strip()[:80]!r}",
            hint="write 'MATCH_RECOGNIZE (...)'; select and filter the result with its methods",
        )
    if any(tree.args.get(part) for part in ("where", "group", "having", "joins", "order", "limit")):
        raise QueryError(
            "only SELECT * FROM ... MATCH_RECOGNIZE (...) is read",
            hint="filter and select with the methods of the stream",
        )
    return clauses[0], within, within_events


def _without_within(text: str) -> tuple[str, str | None, int | None]:
    tokens = sqlglot.tokenize(text, read=_DIALECT)
    depth, start = 0, None
    for number, token in enumerate(tokens):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth == 1 and token.text.upper() == "WITHIN":
            start = number
        ends = token.text.upper() == "DEFINE" and depth == 1
        if start is not None and (ends or depth == 0):
            said = text[tokens[start + 1].start : token.start].strip()
            cut = text[: tokens[start].start] + text[token.start :]
            return cut, *_within(said)
    return text, None, None


def _within(said: str) -> tuple[str | None, int | None]:
    words = said.split()
    if len(words) == 2 and words[0].isdigit() and words[1].upper() in ("ROWS", "EVENTS"):
        return None, int(words[0])
    interval = sqlglot.parse_one(said, read=_DIALECT)
    unit = interval.args.get("unit")
    unit_name = "" if unit is None else str(unit.name).upper().removesuffix("S")
    number = interval.this
    if isinstance(interval, exp.Interval) and isinstance(number, exp.Literal) and unit_name in _UNITS:
        return f"{number.name}{_UNITS[unit_name]}", None
    raise QueryError(
        "WITHIN is an interval or a number of rows",
        detail=f"got {said!r}",
        hint="write WITHIN INTERVAL '10' MINUTE or WITHIN 100 ROWS",
    )


def _check_order(clause: exp.MatchRecognize, time_column: str | None) -> None:
    order = clause.args.get("order")
    ordered = [] if order is None else order.expressions
    names = [one.this.name for one in ordered]
    if len(names) != 1 or names[0] != time_column or ordered[0].args.get("desc"):
        raise QueryError(
            "events are matched in the order of event time",
            detail=f"got ORDER BY {', '.join(names) or 'nothing'}",
            hint=f"write ORDER BY {time_column}" if time_column else "match before the event time is dropped",
        )


def _check_previous(pattern: Pattern, defined: dict[str, Expr]) -> None:
    """PREV in what may come first would look at a row before the match."""
    found = automaton(pattern, cut=False)
    for follow in found.follows[0]:
        name = found.events[found.binds[follow.target]].name
        condition = defined.get(name)
        looks_back = condition is not None and any(one.event is None for one in bound_in(condition))
        if looks_back:
            raise QueryError(
                f"PREV in '{name}' would look at a row before the match",
                hint=f"begin the pattern with a variable without PREV: PATTERN (START {name} ...)",
            )


def _measures(
    clause: exp.MatchRecognize, reading: Reading, rows: str, schema: Schema, keys: tuple[str, ...]
) -> dict[str, Expr] | None:
    output: dict[str, Expr] = {}
    for measure in clause.args.get("measures") or ():
        if measure.args.get("window_frame") == "FINAL" and rows == "all":
            raise QueryError("FINAL is not supported with ALL ROWS PER MATCH", hint="leave it out")
        if not isinstance(measure.this, exp.Alias):
            raise QueryError(
                "a measure needs a name", detail=f"got {measure.this.sql()}", hint="write ... AS name"
            )
        output[measure.this.alias] = reading.expr(measure.this.this)
    if rows == "all":  # the row itself, then the measures
        own = {
            name: Bound(None, name, "last")
            for name in schema.names
            if name not in keys and name not in output
        }
        return {**own, **output}
    return output


def _column(one: Any, where: str, schema: Schema) -> str:
    if not isinstance(one, exp.Column) or one.table:
        raise QueryError(f"{where} names columns", detail=f"got {one.sql()}", hint="compute it first")
    return schema[one.name].name


def _known(value: Any, choices: dict[str | None, str], what: str) -> str:
    text = None if value is None else str(value.name).upper()
    if text not in choices:
        listed = ", ".join(filter(None, choices))
        raise QueryError(f"{what} is not supported", detail=f"got {text}", hint=f"supported: {listed}")
    return choices[text]
