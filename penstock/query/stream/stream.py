"""Streams: what a user writes queries with. Every method gives a new stream and computes nothing.

The examples use ``cars``, a stream with the columns ts, id, lane and speed, and ``tolls`` with ts, car and
paid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, Self

from penstock.query.aggregates import Aggregate
from penstock.query.durations import Duration, positive_us
from penstock.query.errors import QueryError, Writing
from penstock.query.expr import Expr
from penstock.query.failures import OnError
from penstock.query.function_versions import checked_version
from penstock.query.misuse import UnknownNameError, WrongCallError, public_names, told, unknown_name
from penstock.query.patterns.modes import chosen_mode
from penstock.query.step import BAD_RECORDS, Feed, Step, check_name, check_timed
from penstock.query.steps import (
    BatchSpec,
    CoGroupSpec,
    DeduplicateSpec,
    FilterSpec,
    FlatMapSpec,
    SelectSpec,
    UnionSpec,
)
from penstock.query.steps.spec import NamedExprs, Version
from penstock.query.stream.joins import (
    On,
    check_aligned,
    check_window,
    interval_joined,
    joined_keys,
    union_schema,
    window_joined,
)
from penstock.query.stream.lookup import looked_up
from penstock.query.stream.pattern_steps import PatternSteps
from penstock.query.stream.projection import (
    check_function,
    chosen,
    computed,
    condition,
    exploded,
    exploded_schema,
    known_columns,
    overwritten,
    passed_through,
    projected_schema,
    renamed,
    without,
)
from penstock.query.stream.side_outputs import SideOutputs
from penstock.query.types import DataType, Schema
from penstock.query.windows import Window

if TYPE_CHECKING:
    from penstock.query.stream.keyed import KeyedStream, WindowedStream

Columns = Mapping[str, Any]  # {name: expression or constant}
Output = Schema | Mapping[str, str | DataType]


@told
class Stream(PatternSteps, SideOutputs):
    """Events of one schema, in time. Made by ``App.source`` and by the methods of other streams.

    Every step takes a ``name``, its id in metrics and errors. Columns called "name" are passed in a dict:
    ``with_columns({"name": ...})``.
    """

    __slots__ = ()

    # -- one event in, at most one out ------------------------------------------------------------------

    def filter(self, predicate: Expr | bool, *, name: str | None = None) -> Self:
        """The events for which ``predicate`` is true (not false, not null).

        >>> cars.filter(col("speed") > 30)
        <Stream filter: ts: timestamp, id: int64, lane: int32, speed: float64?>
        """
        with Writing("filter", name) as writing:
            spec = FilterSpec(condition(predicate, self.schema))
            return self._handed_on(
                self._step(writing, name, spec, self.schema, self.time_column), _same(self.schema)
            )

    def select(self, *columns: str | Columns, name: str | None = None, **computed_columns: Any) -> Self:
        """These columns and no others.

        >>> cars.select("lane", kmh=col("speed") * 3.6).schema
        Schema(lane: int32, kmh: float64?)
        """
        with Writing("select", name) as writing:
            return self._project(writing, name, chosen(columns, computed_columns))

    def with_columns(
        self, columns: Columns | None = None, /, *, name: str | None = None, **more: Any
    ) -> Self:
        """All columns, and these besides or instead.

        >>> cars.with_columns(fast=col("speed") > 30).schema
        Schema(ts: timestamp, id: int64, lane: int32, speed: float64?, fast: bool?)
        """
        with Writing("with_columns", name) as writing:
            added = chosen((columns or {},), more)
            if not added:
                raise QueryError(
                    "with_columns needs a column", hint="write e.g. with_columns(kmh=col('speed') * 3.6)"
                )
            return self._project(writing, name, overwritten(self.schema, added))

    def drop(self, *columns: str, name: str | None = None) -> Self:
        """All columns but these."""
        with Writing("drop", name) as writing:
            if not columns:
                raise QueryError("drop needs a column", hint="write e.g. drop('lane')")
            dropped = known_columns(columns, self.schema, "columns")
            return self._project(writing, name, without(self.schema, dropped))

    def rename(
        self, columns: Mapping[str, str] | None = None, /, *, name: str | None = None, **more: str
    ) -> Self:
        """The same columns, some under other names: ``rename(old="new")``."""
        with Writing("rename", name) as writing:
            names = {**(columns or {}), **more}
            if not names:
                raise QueryError("rename needs a column", hint="write rename(old='new')")
            return self._project(writing, name, renamed(self.schema, names))

    def lookup(
        self,
        table: Any,
        on: On,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        how: str = "inner",
        *,
        name: str | None = None,
    ) -> Self:
        """Each event with the columns of the row of a static table that has the same key.

        ``table`` is a pyarrow.Table, a dict of lists or arrays, or a pandas DataFrame, with unique keys;
        ``on`` names the key, or maps the stream's to the table's; ``columns`` lists what to add, or maps
        new names to the table's. ``how="inner"`` drops events without a match, ``"left"`` keeps them with
        nulls.

        >>> cars.lookup({"lane": [1, 2], "road": ["A1", "A2"]}, on="lane", how="left").schema["road"]
        Field(name='road', dtype=string, nullable=True)
        """
        with Writing("lookup", name) as writing:
            spec, added = looked_up(self.schema, table, on, columns, how)
            step = self._step(writing, name, spec, Schema([*self.schema, *added]), self.time_column)
            return self._handed_on(step, _same(self.schema))

    # -- one event in, any number out -------------------------------------------------------------------

    def explode(
        self,
        rows: Iterable[Columns],
        where: Sequence[Expr | None] | None = None,
        keep: Sequence[str] = (),
        *,
        name: str | None = None,
    ) -> Self:
        """One event per row, computed from each event; compiled, unlike ``flat_map``.

        A row whose condition in ``where`` does not hold is left out; columns in ``keep`` are in every row.

        >>> rows = [dict(what=lit("lane"), value=col("lane")), dict(what=lit("speed"), value=col("speed"))]
        >>> cars.explode(rows, where=[None, col("speed").is_not_null()], keep=["ts", "id"]).schema
        Schema(ts: timestamp, id: int64, what: string, value: float64?)
        """
        with Writing("explode", name) as writing:
            spec = exploded(self.schema, rows, where, (keep,) if isinstance(keep, str) else tuple(keep))
            passed = passed_through(spec.rows)
            time = passed.get(self.time_column) if self.time_column else None
            step = self._step(writing, name, spec, exploded_schema(spec.rows, self.schema), time)
            return self._handed_on(step, passed)

    def flat_map(
        self,
        function: Callable[[dict[str, Any]], Iterable[dict[str, Any]]],
        output: Output,
        *,
        on_error: str = "stop",
        version: Version = None,
        name: str | None = None,
    ) -> Stream:
        """``function(event) -> iterable of dicts``: any Python, at its price of microseconds per event.

        With ``on_error="set_aside"`` an event for which it raises does not end the run: see ``failed``.

        ``version`` says of which version the function is: if it changes, the step and those behind it start
        without state; as long as it stays, changed code is taken for the same.
        """
        with Writing("flat_map", name) as writing:
            check_function(function, "flat_map")
            spec = FlatMapSpec(function, chosen_mode(OnError, on_error, "on_error"), checked_version(version))
            return Stream(Feed(self._step(writing, name, spec, Schema.of(output), None)))

    def batch(
        self,
        function: Callable[[Any], Any],
        output: Output,
        arrow: bool = False,
        *,
        on_error: str = "stop",
        version: Version = None,
        name: str | None = None,
    ) -> Stream:
        """``function(columns) -> columns`` over many events at once, each treated by itself.

        ``columns`` is a dict of numpy arrays or, with ``arrow``, a ``pyarrow.RecordBatch``. If the result
        has fewer or more rows than came in, its column ``_row`` says which input row each comes from. Where
        batches are cut depends on the load: a result that mixes the events of a batch is not reproducible.

        With ``on_error="set_aside"`` a batch for which it raises is halved until the events that fail stand
        alone, at the price of up to 2 log2(events) calls for each of them: see ``failed``.

        ``version`` says of which version the function is: if it changes, the step and those behind it start
        without state; as long as it stays, changed code is taken for the same.
        """
        with Writing("batch", name) as writing:
            check_function(function, "batch")
            spec = BatchSpec(
                function, bool(arrow), chosen_mode(OnError, on_error, "on_error"), checked_version(version)
            )
            return Stream(Feed(self._step(writing, name, spec, Schema.of(output), None)))

    # -- several streams --------------------------------------------------------------------------------

    def union(self, *others: Stream, name: str | None = None) -> Stream:
        """The events of all: same column names and types; nullable where one of them is."""
        with Writing("union", name) as writing:
            if not others:
                raise QueryError("union needs another stream", hint="write a.union(b)")
            for other in others:
                self._check_stream(other)
            schema = union_schema([self.schema, *(other.schema for other in others)])
            feeds = [self._feed]
            for other in others:
                same_order = other.schema.names == schema.names
                feeds.append(other._feed if same_order else other.select(*schema.names)._feed)
            time = self.time_column if len({feed.time_column for feed in feeds}) == 1 else None
            reasons = {feed.untimed for feed in feeds}
            untimed = (
                BAD_RECORDS if BAD_RECORDS in reasons else self._feed.untimed if len(reasons) == 1 else None
            )
            step = self._step(writing, name, UnionSpec(), schema, time, feeds[1:])
            return Stream(Feed(replace(step, untimed=untimed)))

    def join(self, other: Stream, on: On, window: Window, *, name: str | None = None) -> Stream:
        """Pairs of events with equal keys in the same window.

        The result has window_start, window_end, all columns of this stream, and those of the other but its
        keys; a name that both have gets ``_right`` for the other's. Null keys match nothing.

        >>> cars.join(tolls, on={"id": "car"}, window=tumbling("1m")).schema.names
        ('window_start', 'window_end', 'ts', 'id', 'lane', 'speed', 'ts_right', 'paid')
        """
        with Writing("join", name) as writing:
            self._check_joinable(other)
            spec, schema = window_joined(self.schema, other.schema, on, window)
            return Stream(Feed(self._step(writing, name, spec, schema, None, [other._feed])))

    def interval_join(
        self, other: Stream, on: On, lower: Duration, upper: Duration, *, name: str | None = None
    ) -> Stream:
        """Pairs with equal keys whose times lie close: ``lower <= other's time - this one's time <= upper``.

        >>> cars.interval_join(tolls, on={"id": "car"}, lower="-5s", upper="10s").schema.names
        ('ts', 'id', 'lane', 'speed', 'ts_right', 'paid')
        """
        with Writing("interval_join", name) as writing:
            self._check_joinable(other)
            spec, schema = interval_joined(self.schema, other.schema, on, lower, upper)
            return Stream(Feed(self._step(writing, name, spec, schema, None, [other._feed])))

    def cogroup(
        self,
        other: Stream,
        on: On,
        window: Window,
        function: Callable[[Any], Iterable[dict[str, Any]]],
        output: Output,
        *,
        name: str | None = None,
    ) -> Stream:
        """``function(group) -> iterable of dicts``, once per key and window with the events of both sides.

        ``group`` is a :class:`penstock.Group`. One side may be empty. A null key is a key like any other.
        """
        with Writing("cogroup", name) as writing:
            self._check_joinable(other)
            check_function(function, "cogroup")
            pairs = joined_keys(on, self.schema, other.schema)
            spec = CoGroupSpec(pairs, check_aligned(window, "a co-group"), function)
            return Stream(Feed(self._step(writing, name, spec, Schema.of(output), None, [other._feed])))

    def group_join(
        self,
        other: Stream,
        on: On,
        window: Window,
        aggregates: Mapping[str, Aggregate],
        *,
        where: Expr | bool | None = None,
        select: Sequence[str | Columns] | None = None,
        name: str | None = None,
    ) -> Stream:
        """Every event of this stream, once per window, with aggregates over the other's events that match it.

        Those have equal keys and lie in the same window, and ``where`` is true of the pair; a name that both
        have gets ``_right`` for the other's. Events without a match come too: their counts are 0, their other
        aggregates null. ``select`` says what to make of window_start, window_end, the columns of this stream
        and the aggregates, as a selection behind would; by default it is all of them.

        >>> paid = cars.group_join(tolls, {"id": "car"}, tumbling("1m"), {"paid": sum_("paid")})
        >>> paid.schema.names
        ('window_start', 'window_end', 'ts', 'id', 'lane', 'speed', 'paid')
        """
        from penstock.query.stream.group_joins import group_joined

        with Writing("group_join", name) as writing:
            self._check_joinable(other)
            spec, schema = group_joined(self.schema, other.schema, on, window, aggregates, where, select)
            return Stream(Feed(self._step(writing, name, spec, schema, None, [other._feed])))

    # -- keys and windows -------------------------------------------------------------------------------

    def key_by(self, *columns: str, name: str | None = None, **computed_columns: Any) -> KeyedStream:
        """The same events, grouped by these columns; computed ones are added to the events.

        >>> cars.key_by("lane", fast=col("speed") > 30).keys
        ('lane', 'fast')
        """
        from penstock.query.stream.keyed import KeyedStream

        with Writing("key_by", name) as writing:
            added = computed(computed_columns)
            for key, _ in added:
                if key in self.schema:
                    raise QueryError(
                        f"column '{key}' is there already", hint="give the computed key another name"
                    )
            keys = known_columns(columns, self.schema, "keys") + tuple(key for key, _ in added)
            if not keys:
                raise QueryError(
                    "key_by needs a key", hint="write e.g. key_by('lane'); without keys leave it out"
                )
            keyed = Stream(self._feed)
            if added:
                keyed = keyed._project(writing, name, overwritten(self.schema, added))
            elif name is not None:
                check_name(name, "a step's name")
            return KeyedStream(keyed._feed, keys)

    def window(self, window: Window) -> WindowedStream:
        """The events by windows of event time; ``agg`` or ``top`` says what becomes of each window."""
        from penstock.query.stream.keyed import WindowedStream

        with Writing("window"):
            check_timed(self._feed)
            return WindowedStream(self, (), check_window(window))

    def deduplicate(self, *columns: str, within: Duration | None = None, name: str | None = None) -> Self:
        """The first event of each key, by event time; with ``within``, another one after that long.

        Without ``within`` every key is remembered for ever.
        """
        with Writing("deduplicate", name) as writing:
            check_timed(self._feed)
            keys = self._dedup_keys(known_columns(columns, self.schema, "keys"))
            spec = DeduplicateSpec(keys, positive_us(within, "within"))
            return self._handed_on(
                self._step(writing, name, spec, self.schema, self.time_column), _same(self.schema)
            )

    # -- how steps are made -----------------------------------------------------------------------------

    def _project(self, writing: Writing, name: str | None, columns: NamedExprs) -> Self:
        passed = passed_through((columns,))
        time = passed.get(self.time_column) if self.time_column else None
        schema = projected_schema(columns, self.schema)
        return self._handed_on(self._step(writing, name, SelectSpec(columns), schema, time), passed)

    def _handed_on(self, step: Step, passed: Mapping[str, str]) -> Self:
        """The stream after a step that hands on the columns ``passed`` (old name → new name) unchanged."""
        return type(self)(Feed(step))

    def _dedup_keys(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        if not columns:
            raise QueryError("deduplicate needs a key", hint="write e.g. deduplicate('id')")
        return columns

    def _check_joinable(self, other: Stream) -> None:
        self._check_stream(other)
        check_timed(self._feed)
        check_timed(other._feed)

    def _check_stream(self, other: object) -> None:
        check_stream(other)
        assert isinstance(other, Stream)
        ours, theirs = self._feed.step.scope, other._feed.step.scope
        if ours is not theirs:
            raise QueryError(
                "streams of two apps cannot be mixed",
                detail=f"got one of app '{ours.name}' and one of app '{theirs.name}'",
                hint="make both sources in one app",
            )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            if name in self.schema:
                raise UnknownNameError(f"a stream has no '{name}'", hint=f"its column is col('{name}')")
            raise unknown_name("Stream", "a stream has", name, public_names(type(self)))

        def __getitem__(self, name: object) -> NoReturn:
            raise WrongCallError(
                "a stream has no parts",
                detail=f"got [{name!r}]",
                hint=f"a column is col({name!r}), in a step",
            )


def check_stream(value: object) -> None:
    """Refuses what is not a stream, and says what it lacks."""
    from penstock.query.stream.keyed import WindowedStream

    if isinstance(value, WindowedStream):
        raise QueryError(
            "a window has no events yet", detail=f"got {value!r}", hint="add .agg(...) or .top(...)"
        )
    if not isinstance(value, Stream):
        raise QueryError(
            "not a stream", detail=f"got {value!r}", hint="pass what app.source or a stream's method gave"
        )


def _same(schema: Schema) -> dict[str, str]:
    return {name: name for name in schema.names}
