"""Windows with rows per further key in them, and aggregates of those rows."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.query.aggregates import Aggregate
from penstock.query.errors import QueryError, Writing
from penstock.query.expr import Expr
from penstock.query.step import Feed
from penstock.query.steps import NestedAggregateSpec
from penstock.query.stream.joins import WINDOW_FIELDS
from penstock.query.stream.keyed import aggregated_fields, check_keys
from penstock.query.stream.projection import condition, known_columns
from penstock.query.stream.stream import Stream
from penstock.query.types import Schema
from penstock.query.windows import Sliding


class GroupedWindow:
    """One row per key, window and ``per``, made by ``WindowedStream.per``. ``agg`` makes a stream of them."""

    __slots__ = ("_having", "_inner", "_keys", "_per", "_rows", "_stream", "_where", "_window")

    def __init__(
        self,
        stream: Stream,
        keys: tuple[str, ...],
        window: Sliding,
        per: tuple[str, ...],
        inner: Mapping[str, Aggregate],
        where: Expr | bool | None,
        having: Expr | bool | None,
    ) -> None:
        schema = stream.schema
        self._stream, self._keys, self._window = stream, keys, window
        self._per = known_columns(per, schema, "columns of per")
        if not per:
            raise QueryError("per needs a column", hint="write e.g. per('id', speed=avg('speed'))")
        twice = [name for name in per if name in keys]
        if twice:
            raise QueryError(
                f"column '{twice[0]}' is a key already", hint="name in per what tells the rows of a key apart"
            )
        check_keys((*keys, *per))
        self._inner = tuple(inner.items())
        made = aggregated_fields(inner, schema, (*keys, *per))
        self._where = None if where is None else condition(where, schema)
        #: What ``having`` and ``agg`` can read.
        self._rows = Schema([*(schema[name] for name in (*keys, *per)), *made])
        self._having = None if having is None else condition(having, self._rows)

    def agg(
        self,
        aggregates: Mapping[str, Aggregate] | None = None,
        /,
        *,
        having: Expr | bool | None = None,
        bounds: bool = True,
        name: str | None = None,
        **more: Aggregate,
    ) -> Stream:
        """One event per key and window that has rows, when it closes: keys, window_start, window_end and
        the aggregates of the rows.

        ``having`` is a condition on that event; without ``bounds`` it has no window_start and window_end.
        """
        with Writing("agg", name) as writing:
            computed = {**(aggregates or {}), **more}
            if not computed:
                raise QueryError(
                    "agg needs an aggregate", hint="write e.g. agg(cars=count(), speed=avg('speed'))"
                )
            made = aggregated_fields(computed, self._rows, self._keys)
            for column, aggregate in computed.items():
                if aggregate.function.in_order:
                    raise QueryError(
                        f"{aggregate.function.name} needs an order, and the rows of a window have none",
                        detail=f"got {aggregate!r} for '{column}'",
                        hint=f"write it in per: the rows of '{', '.join(self._per)}' are made of events",
                    )
            keys = [self._stream.schema[key] for key in self._keys]
            keep = None if having is None else condition(having, Schema([*keys, *made]))
            spec = NestedAggregateSpec(
                self._keys,
                self._window,
                self._per,
                self._inner,
                tuple(computed.items()),
                self._where,
                self._having,
                keep,
            )
            schema = Schema([*keys, *(WINDOW_FIELDS if bounds else ()), *made])
            return Stream(Feed(self._stream._step(writing, name, spec, schema, None)))

    def __repr__(self) -> str:
        by = f" by {', '.join(self._keys)}" if self._keys else ""
        return f"<GroupedWindow {self._window}{by} per {', '.join(self._per)}>"
