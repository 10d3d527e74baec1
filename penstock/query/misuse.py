"""Misuse of the language, told in its own words: names that are not there, arguments that do not fit."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from types import FunctionType
from typing import NoReturn, ParamSpec, TypeVar

from penstock.query.errors import QueryError

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

_WINDOW_FIRST = "window the events first: .window(tumbling('10s')).agg(n=count())"
_KEY_FIRST = "name the keys first: .key_by('lane')"
_EVENTS_FIRST = "call it before .window(...), or on the stream that .agg(...) gives"
_SINK = "results go into a sink: app.sink('name', stream, ps.sinks.Memory()), then app.run()"
_AGGREGATE = "aggregates are functions, of windows: .window(tumbling('10s')).agg(speed=avg('speed'))"
_ON_ITSELF = "what there is stands on the expression itself: col('name').upper(), col('ts').hour()"

#: What users of other libraries look for, and what it is here; by class, then by name.
_ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "Stream": {
        **dict.fromkeys(("agg", "aggregate", "count", "sum", "avg", "mean", "top", "per"), _WINDOW_FIRST),
        **dict.fromkeys(("group_by", "groupby", "groupBy", "keyBy", "partition_by"), "write key_by('lane')"),
        **dict.fromkeys(("where", "query"), "write filter(col('speed') > 30)"),
        **dict.fromkeys(
            ("withColumn", "withColumns", "with_column", "assign", "mutate"),
            "write with_columns(kmh=col('speed') * 3.6)",
        ),
        **dict.fromkeys(
            ("map", "apply", "transform", "foreach", "for_each"),
            "write with_columns(...) or select(...) with expressions, or flat_map(function, output={...})",
        ),
        **dict.fromkeys(("orderBy", "order_by", "sort", "limit"), "write .window(...).top(10, by='speed')"),
        **dict.fromkeys(("distinct", "dropDuplicates", "drop_duplicates"), "write deduplicate('id')"),
        **dict.fromkeys(
            ("show", "print", "collect", "head", "write", "writeStream", "sink", "to_pandas", "to", "run"),
            _SINK,
        ),
        "withWatermark": "lateness is said where the source is: app.source(..., lateness='2s')",
        "process": f"a process function is per key; {_KEY_FIRST}",
        "columns": "write stream.schema.names",
    },
    "WindowedStream": {
        **dict.fromkeys(("filter", "select", "with_columns", "key_by", "drop", "rename"), _EVENTS_FIRST),
        **dict.fromkeys(("count", "sum", "avg", "mean", "min", "max"), "write agg(n=count())"),
        "process": "process takes events: .key_by('lane').process(...) without a window",
    },
    "App": {"stream": "write app.source(name, source, event_time='ts')", "start": "write app.run()"},
    "Expr": {
        "split": "write split_part(',', 1) for one part; flat_map makes several events of one",
        **dict.fromkeys(("str", "dt"), _ON_ITSELF),
        **dict.fromkeys(
            ("sum", "avg", "mean", "min", "max", "count", "first", "last", "over", "agg"), _AGGREGATE
        ),
        **dict.fromkeys(("alias", "name", "as_"), "name it by keyword: select(kmh=col('speed') * 3.6)"),
        **dict.fromkeys(("isin", "isIn"), "write is_in([1, 2])"),
        **dict.fromkeys(("isNull", "isnull", "isna"), "write is_null()"),
        **dict.fromkeys(("isNotNull", "notnull", "notna"), "write is_not_null()"),
        **dict.fromkeys(("fillna", "fill_na"), "write fill_null(0)"),
        **dict.fromkeys(("startswith", "startsWith"), "write starts_with('a')"),
        **dict.fromkeys(("endswith", "endsWith"), "write ends_with('a')"),
        **dict.fromkeys(("astype", "to"), "write cast('int64')"),
        **dict.fromkeys(("strip", "lstrip", "rstrip"), "write trim()"),
        **dict.fromkeys(("strftime", "isoformat"), "write format_time('%Y-%m-%d')"),
        **dict.fromkeys(("otherwise", "when"), "begin with when(condition, value)"),
    },
}

_PAIRS_ONLY = (
    "a join gives pairs alone; group_join gives every event of this stream, with aggregates over its "
    "partners; lookup(..., how='left') adds the columns of a table"
)
_EVENT_TIME = "name the column that holds each event's time, a timestamp: event_time='ts'"
_OUTPUT = "say which columns come out: output={'word': 'string', 'n': 'int64'}"

#: What helps with an argument that is missing, unknown or one too many; by method, then by argument.
_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "agg": {"": "name each: agg(n=count(), speed=avg('speed'))"},
    "join": {
        "window": "pairs are made within a window: join(other, on='id', window=tumbling('1m')); "
        "interval_join takes bounds instead",
        "on": "name the key: on='id', or on={'id': 'car'}",
        "how": _PAIRS_ONLY,
    },
    "interval_join": {
        "how": _PAIRS_ONLY,
        "lower": "how far apart pairs may be: lower='-5s', upper='10s'",
        "upper": "how far apart pairs may be: lower='-5s', upper='10s'",
        "window": "it takes bounds: lower='-5s', upper='10s'; join takes a window",
    },
    "cogroup": {"how": "one side may be empty: the function is told both", "output": _OUTPUT},
    "group_join": {"how": "events without a partner come too: their counts are 0"},
    "source": {"event_time": _EVENT_TIME},
    "flat_map": {"output": _OUTPUT},
    "batch": {"output": _OUTPUT},
    "process": {"output": _OUTPUT},
    "filter": {"": "write filter(col('lane') == 1)"},
    "window": {"": "write window(tumbling('10s'))"},
    "sink": {"": "write app.sink('name', stream, ps.sinks.Memory())"},
    "tumbling": {"": "write tumbling('10s'); windows that overlap are sliding('10s', every='5s')"},
    "Node": {
        "policy": "write scheduling='congestion'",
        "threads": "write workers=2",
        "cores": "write workers=2",
    },
}

_MISSING = re.compile(r"missing a required (?:keyword-only |positional-only )?argument: '(\w+)'")
_UNKNOWN = re.compile(r"unexpected keyword argument '(\w+)'")
_TWICE = re.compile(r"multiple values for argument '(\w+)'")


class UnknownNameError(QueryError, AttributeError):
    """Something that an object of the language does not have."""


class WrongCallError(QueryError, TypeError):
    """A call whose arguments do not fit."""


def unknown_name(kind: str, things: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """The error for a name that is not there: what stands for it here, or what there is."""
    elsewhere = _ELSEWHERE.get(kind, {}).get(name)
    if elsewhere is not None:
        return UnknownNameError(f"{things} no '{name}'", hint=elsewhere)
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    meant = f"did you mean '{close[0]}'? " if close else ""
    return UnknownNameError(f"{things} no '{name}'", hint=f"{meant}there are {', '.join(names)}")


def public_names(kind: type) -> list[str]:
    """What a user can call of a class."""
    return [name for name in dir(kind) if not name.startswith("_")]


def told(kind: C) -> C:
    """A class whose public methods, and whose making, tell of arguments that do not fit."""
    for name, function in list(vars(kind).items()):
        if isinstance(function, FunctionType) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, told_call(function, kind.__name__ if name == "__init__" else name))
    return kind


def told_call(function: Callable[P, R], name: str = "") -> Callable[P, R]:
    """The function, but that arguments that do not fit are told in Penstock's words."""
    signature = inspect.signature(function)
    called = name or function.__name__

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise _wrong_call(called, signature, str(error)) from None
        return function(*args, **kwargs)

    return call


def refused(what: str, hint: str) -> Callable[..., NoReturn]:
    """A method of Python's own that expressions do not take part in."""

    def refuse(self: object, *operands: object) -> NoReturn:
        raise WrongCallError(what, detail=f"got {self!r}", hint=hint)

    return refuse


def _wrong_call(called: str, signature: inspect.Signature, said: str) -> WrongCallError:
    hints = _ARGUMENTS.get(called, {})
    for pattern, what in (
        (_MISSING, "{} needs '{}'"),
        (_UNKNOWN, "{} takes no '{}'"),
        (_TWICE, "{} got '{}' twice"),
    ):
        found = pattern.search(said)
        if found is not None:
            hint = hints.get(found[1]) or hints.get("") or f"write {called}{_bare(signature)}"
            return WrongCallError(what.format(called, found[1]), step=called, hint=hint)
    hint = hints.get("") or f"write {called}{_bare(signature)}"
    return WrongCallError(f"{called} got too many values without a name", step=called, hint=hint)


def _bare(signature: inspect.Signature) -> str:
    """The signature without types and without the object itself."""
    empty = inspect.Parameter.empty
    parameters = [
        parameter.replace(annotation=empty)
        for name, parameter in signature.parameters.items()
        if name != "self"
    ]
    return str(inspect.Signature(parameters))
