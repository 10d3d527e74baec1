"""Keyed and windowed streams: events by key, and what becomes of them by window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self

from penstock.query.aggregates import Aggregate
from penstock.query.durations import Duration, positive_us
from penstock.query.errors import QueryError, Writing
from penstock.query.expr import Expr, as_expr, col
from penstock.query.failures import OnError
from penstock.query.function_versions import checked_version
from penstock.query.inference import check_known, infer
from penstock.query.misuse import public_names, told, unknown_name
from penstock.query.patterns.modes import chosen_mode
from penstock.query.step import Feed, Step, check_columns, check_timed
from penstock.query.steps import ProcessSpec, WindowAggregateSpec, WindowTopSpec
from penstock.query.steps.spec import Version
from penstock.query.stream.joins import WINDOW_FIELDS, WINDOW_NAMES, check_aligned, check_window
from penstock.query.stream.stream import Output, Stream
from penstock.query.types import DataType, Field, Schema
from penstock.query.user_functions import ProcessFunction, returns_nothing
from penstock.query.windows import Window

if TYPE_CHECKING:
    from penstock.query.stream.nested import GroupedWindow


@told
class KeyedStream(Stream):
    """A stream whose events are grouped by key columns.

    Steps that hand the keys on (``filter``, ``with_columns``, ``lookup``, ...) give a keyed stream again.
    Those that make new events (``flat_map``, ``batch``, ``union``, joins) give a plain one: ``key_by``
    comes after them.
    """

    __slots__ = ("_keys",)

    def __init__(self, feed: Feed, keys: tuple[str, ...]) -> None:
        super().__init__(feed)
        self._keys = keys

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the key columns."""
        return self._keys

    def window(self, window: Window) -> WindowedStream:
        """The events by key and window of event time."""
        with Writing("window"):
            check_timed(self._feed)
            return WindowedStream(self, self._keys, check_window(window))

    def process(
        self,
        function: ProcessFunction,
        output: Output,
        state: Output | None = None,
        *,
        ttl: Duration | None = None,
        on_error: str = "stop",
        version: Version = None,
        name: str | None = None,
    ) -> Stream:
        """A function per key, with state and timers; see :class:`penstock.ProcessFunction`.

        ``state`` declares the fields that ``context.state`` holds for each key. With ``ttl``, a key that had
        no event for that long, by event time, is forgotten: its next event finds the state as it starts, and
        timers that it set for later never fire.

        With ``on_error="set_aside"`` an event or timer for which it raises does not end the run: state and
        timers are as before it, and the event goes to ``failed``. Of a timer that has the keys alone.

        ``version`` says of which version the function is: if it changes, the step and those behind it start
        without state; as long as it stays, changed code is taken for the same.
        """
        with Writing("process", name) as writing:
            check_timed(self._feed)
            _check_process_function(function)
            fields = Schema() if state is None else Schema.of(state)
            if len(fields):
                check_columns(fields)
            handling = chosen_mode(OnError, on_error, "on_error")
            forgotten_us, said = positive_us(ttl, "ttl"), checked_version(version)
            spec = ProcessSpec(self._keys, function, fields, forgotten_us, handling, said)
            return Stream(Feed(self._step(writing, name, spec, Schema.of(output), None)))

    @property
    def _match_keys(self) -> tuple[str, ...]:
        return self._keys

    def _dedup_keys(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        return self._keys + tuple(name for name in columns if name not in self._keys)

    def _handed_on(self, step: Step, passed: Mapping[str, str]) -> Self:
        lost = [key for key in self._keys if key not in passed]
        if lost:
            raise QueryError(
                f"the stream is keyed by '{lost[0]}', which this step drops or changes",
                hint="call key_by after it",
            )
        return type(self)(Feed(step), tuple(passed[key] for key in self._keys))


@told
class WindowedStream:
    """Events by window, and by key if the stream has keys. ``agg`` or ``top`` makes a stream of it."""

    __slots__ = ("_keys", "_stream", "_window")

    def __init__(self, stream: Stream, keys: tuple[str, ...], window: Window) -> None:
        self._stream = stream
        self._keys = keys
        self._window = window

    def agg(
        self,
        aggregates: Mapping[str, Aggregate] | None = None,
        /,
        *,
        name: str | None = None,
        **more: Aggregate,
    ) -> Stream:
        """One event per key and window, when it closes: keys, window_start, window_end and the aggregates.

        >>> cars.key_by("lane").window(tumbling("1s")).agg(cars=count(), speed=avg("speed")).schema
        Schema(lane: int32, window_start: timestamp, window_end: timestamp, cars: int64, speed: float64?)
        """
        with Writing("agg", name) as writing:
            schema = self._stream.schema
            if isinstance(aggregates, Aggregate):
                raise QueryError(
                    "an aggregate needs a name",
                    detail=f"got {aggregates!r}",
                    hint=f"write agg(x={aggregates!r}), the name of its column",
                )
            computed = {**(aggregates or {}), **more}
            if not computed:
                raise QueryError(
                    "agg needs an aggregate", hint="write e.g. agg(n=count(), speed=avg('speed'))"
                )
            check_keys(self._keys)
            fields = [*(schema[key] for key in self._keys), *WINDOW_FIELDS]
            fields += aggregated_fields(computed, schema, self._keys)
            spec = WindowAggregateSpec(self._keys, self._window, tuple(computed.items()))
            return Stream(Feed(self._stream._step(writing, name, spec, Schema(fields), None)))

    def per(
        self,
        *columns: str,
        where: Expr | bool | None = None,
        having: Expr | bool | None = None,
        aggregates: Mapping[str, Aggregate] | None = None,
        **more: Aggregate,
    ) -> GroupedWindow:
        """One row per value of these columns inside of each key and window; ``agg`` then aggregates the rows.

        ``where`` chooses the events, ``having`` the rows. The mean speed of cars, not of their reports:

        >>> one_per_car = cars.key_by("lane").window(tumbling("1m")).per("id", speed=avg("speed"))
        >>> one_per_car.agg(speed=avg("speed"), cars=count()).schema.names
        ('lane', 'window_start', 'window_end', 'speed', 'cars')
        """
        from penstock.query.stream.nested import GroupedWindow

        with Writing("per"):
            window = check_aligned(self._window, "per")
            named = {**(aggregates or {}), **more}
            return GroupedWindow(self._stream, self._keys, window, columns, named, where, having)

    def top(
        self,
        k: int,
        by: str | Expr | Sequence[str | Expr],
        descending: bool | Sequence[bool] = True,
        *,
        ties: bool = False,
        name: str | None = None,
    ) -> Stream:
        """The ``k`` events with the largest ``by`` (smallest, if not ``descending``), per key and window.

        ``by`` are numbers, timestamps or strings (by code points); of several the later ones decide among
        equal events, each with its own ``descending``. Nulls rank last. Of events that are equal in all of
        them the earlier ranks first; with ``ties`` they have the same rank, and all whose rank is at most
        ``k`` come.

        >>> cars.window(tumbling("1s")).top(10, by="speed").schema.names
        ('window_start', 'window_end', 'rank', 'ts', 'id', 'lane', 'speed')
        """
        with Writing("top", name) as writing:
            schema = self._stream.schema
            if not _is_count(k):
                raise QueryError(
                    "top needs a whole number of at least 1", detail=f"got {k!r}", hint="write top(10, ...)"
                )
            window = check_aligned(self._window, "top")
            (expr, largest), *then = _ranking(by, descending, schema)
            added = [*WINDOW_FIELDS, Field("rank", DataType.INT32)]
            for field in added:
                if field.name in schema:
                    raise QueryError(
                        f"column '{field.name}' is taken by the ranking",
                        hint=f"rename or drop it first: .rename({field.name}='{field.name}_before')",
                    )
            spec = WindowTopSpec(self._keys, window, k, expr, largest, tuple(then), bool(ties))
            return Stream(Feed(self._stream._step(writing, name, spec, Schema([*added, *schema]), None)))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            raise unknown_name("WindowedStream", "a window has", name, public_names(type(self)))

    def __repr__(self) -> str:
        by = f" by {', '.join(self._keys)}" if self._keys else ""
        return f"<WindowedStream {self._window}{by}>"


def check_keys(keys: tuple[str, ...]) -> None:
    """Refuses keys that the bounds of a window would hide."""
    for key in keys:
        if key in WINDOW_NAMES:
            raise QueryError(
                f"key '{key}' is taken by the window",
                hint=f"rename it first: .rename({key}='{key}_before')",
            )


def aggregated_fields(
    aggregates: Mapping[str, Aggregate], schema: Schema, keys: tuple[str, ...]
) -> list[Field]:
    """The columns of aggregates over events of ``schema``, beside keys and the bounds of windows."""
    fields = []
    for column, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregate):
            raise QueryError(
                "not an aggregate",
                detail=f"got {aggregate!r} for '{column}'",
                hint="write e.g. avg('speed')",
            )
        if column in keys or column in WINDOW_NAMES:
            taken = "a key" if column in keys else "the window"
            raise QueryError(f"column '{column}' is taken by {taken}", hint="name the aggregate otherwise")
        typed = aggregate.result_type(schema)
        fields.append(Field(column, typed.dtype, typed.nullable))
    return fields


def _check_process_function(function: object) -> None:
    if not isinstance(function, ProcessFunction):
        made = isinstance(function, type) and issubclass(function, ProcessFunction)
        raise QueryError(
            "process needs a ProcessFunction",
            detail=f"got {function!r}",
            hint="pass an instance: call the class" if made else "subclass penstock.ProcessFunction",
        )
    if returns_nothing(type(function).on_event) and type(function).on_timer is ProcessFunction.on_timer:
        raise QueryError(
            "the process function returns nothing",
            detail=f"'{type(function).__qualname__}.on_event' has no return with a value and no yield",
            hint="write return [{...}], one dict per row, and return [] for none",
        )


def _ranking(by: Any, descending: Any, schema: Schema) -> list[tuple[Expr, bool]]:
    """What ``top`` ranks by, and whether the largest comes first."""
    listed = [by] if isinstance(by, str | Expr) or not isinstance(by, Sequence) else list(by)
    is_one = not isinstance(descending, Sequence)
    directions = [bool(descending)] * len(listed) if is_one else [bool(one) for one in descending]
    if not listed or len(directions) != len(listed):
        raise QueryError(
            "top needs one direction for each of what it ranks by",
            detail=f"got by={by!r}, descending={descending!r}",
            hint="write e.g. top(10, by=['speed', 'id'], descending=[True, False])",
        )
    exprs = [col(one) if isinstance(one, str) else as_expr(one) for one in listed]
    for expr in exprs:
        typed = infer(expr, schema)
        check_known(expr, schema, expr)
        if typed.dtype is DataType.BOOL:
            raise QueryError(
                "top ranks by a number, a timestamp or a string",
                detail=f"got {expr!r} of type {typed.dtype}",
                hint=_ranked_columns(schema),
            )
    return list(zip(exprs, directions, strict=True))


def _is_count(k: object) -> bool:
    return isinstance(k, int) and not isinstance(k, bool) and k >= 1


def _ranked_columns(schema: Schema) -> str:
    names = [field.name for field in schema if field.dtype is not DataType.BOOL]
    return f"columns that would fit: {', '.join(names)}" if names else "compute a number first"
