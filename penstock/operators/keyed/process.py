"""Process: a user's function per key, with state and timers, over events in the order of event time."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from penstock.memory.edges import END_OF_TIME
from penstock.memory.layout import ORDER, SUB, Columns
from penstock.operators.keyed.process_keys import ProcessKeys, Values
from penstock.operators.keyed.timers import Key, TimerQueue, Timers
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.failed import FailedEvents
from penstock.operators.run.ordered_buffer import OrderedBuffer
from penstock.operators.run.registry import runs
from penstock.operators.run.rows import (
    RowReader,
    RowWriter,
    UserFunction,
    converter,
    hash_key,
    start_value,
    sub_of,
    to_columns,
)
from penstock.operators.windows.window_rows import KeyHash
from penstock.query.errors import FunctionError
from penstock.query.graph import Port
from penstock.query.steps import ProcessSpec
from penstock.query.types import DataType, Field, Schema
from penstock.query.user_functions import Context, runs_now
from penstock.state.keys import KeyWords
from penstock.state.tables import StateFormat, StateRows, key_fields

#: Timers that one key may fire while its time stands still, or after the end: more would never stop.
MOST_TIMERS = 100_000

# What the exported state has beside users' columns.
_HANDLED = Field("$handled", DataType.TIMESTAMP)  # the time of the key's last event or timer
_SEEN = Field("$seen", DataType.TIMESTAMP)  # the time of its last event
_FIRED = Field("$fired", DataType.INT64)
_TIED_TIME = Field("$tied_time", DataType.TIMESTAMP)
_TIED = Field("$tied", DataType.INT64)
_OURS = (_HANDLED, _SEEN, _FIRED, _TIED_TIME, _TIED)
_SET_FOR = Field("$set_for", DataType.TIMESTAMP)

_EMITTED_AT_ONCE = 4096  # rows collected as Python values before they become columns


@runs(ProcessSpec)
class Process(Operator):
    """Holds events until the watermark passes them, then calls the function per event and per timer.

    Events and timers of all keys are merged by their times, a timer before the events of its time. Rows from
    events have an even ``$sub`` and rows from timers an odd one: both may stand at the hash of a key.
    What counts as forgotten depends on event time alone, never on when the watermark came by.
    """

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        spec = build.node.spec_as(ProcessSpec)
        layout = build.inputs[0]
        assert layout.time is not None
        self._time = layout.data(layout.time)
        self._order = layout.data(ORDER)
        self._sub = layout.data(SUB) if SUB in layout else None
        self._held = OrderedBuffer(layout)
        self._events = RowReader(layout, self.strings)
        self._key_reader = RowReader(layout, self.strings, spec.keys)
        self._key_names = spec.keys
        self._key_types = [layout.field(name).dtype for name in spec.keys]
        runs_now(spec.function)
        name = type(spec.function).__qualname__
        queries = build.node.queries
        self._on_event = UserFunction(self.id, spec.function.on_event, f"{name}.on_event", queries)
        self._on_timer = UserFunction(self.id, spec.function.on_timer, f"{name}.on_timer", queries)
        output = build.outputs.get(Port.MAIN)
        self._from_events = RowWriter(self._on_event, build.node.schema, output, self.strings)
        self._from_timers = RowWriter(self._on_timer, build.node.schema, output, self.strings)
        self._failed = FailedEvents(self, build, self._on_event) if spec.sets_aside else None
        self._state = _StateCheck(spec.state)
        self._keys = ProcessKeys(self._new_key, spec.ttl_us)
        self._timers = TimerQueue()
        self._words = KeyWords.of(layout, spec.keys)
        self.state_formats = (
            StateFormat("held", layout.fields),
            StateFormat("keys", [*_OURS, *key_fields(self._words), *spec.state.fields]),
            StateFormat("timers", [_SET_FOR, *key_fields(self._words)]),
        )

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        self.divert_late(index, columns, start, stop)
        self._held.add(columns, start, stop)
        return stop - start

    def on_watermark(self, watermark_us: int) -> None:
        columns, count = self._held.release(watermark_us)
        for start in range(0, count, _EMITTED_AT_ONCE):
            self._handle(columns, start, min(start + _EMITTED_AT_ONCE, count))
        self._fire(watermark_us, after_end=watermark_us == END_OF_TIME)
        self._emit(self._from_timers)
        if self._failed is not None:
            self._failed.emit()
        self._keys.forget(watermark_us, self._is_first_state)

    def _handle(self, columns: Columns, start: int, stop: int) -> None:
        rows = slice(start, stop)
        subs = [0] * (stop - start) if self._sub is None else columns[self._sub][rows].tolist()
        for event, key_values, time, order, sub in zip(
            self._events.read(columns, rows),
            self._key_reader.keys(columns, rows),
            columns[self._time][rows].tolist(),
            columns[self._order][rows].tolist(),
            subs,
            strict=True,
        ):
            if self._timers.first <= time:
                self._fire(time)
            key = self._keys.of_event(key_values, time)
            key.context.time = time
            key.fired = 0
            subject = event if self._failed is None else dict(event)  # the function may change the event
            place = (time, order, sub)
            error = self._call(key, self._on_event, self._from_events, subject, event, place, 0)
            if error is None:
                self._keys.note_event(key, time)
            elif self._failed is not None:
                self._failed.add(subject, error, *place)
        self._emit(self._from_events)
        if self._failed is not None:
            self._failed.emit()

    def _call(
        self,
        key: Key,
        function: UserFunction,
        writer: RowWriter,
        subject: dict[str, Any] | str,
        what: dict[str, Any] | int,
        place: tuple[int, int, int],
        odd: int,
    ) -> FunctionError | None:
        """Calls the function for an event or a timer. If it fails, and may, all is as before."""
        context = key.context
        before = None if self._failed is None else key.remembered()
        failed = None
        written: int | None = None
        try:
            rows = function.rows(subject, what, context)
            if rows:
                self._switch_to(writer)
                written = writer.count
                time, order, sub = place
                for number, row in enumerate(rows):
                    writer.add(row, subject, time, order, sub_of(sub, 2 * number + odd))
            self._state.check(context, function, subject)
        except FunctionError as error:
            if before is None:
                raise
            if written is not None:
                writer.cut(written)
            key.go_back(*before)
            failed = error
        if not context.timers and self._is_first_state(key):
            self._keys.note_empty(key)
        return failed

    def _fire(self, until_us: int, after_end: bool = False) -> None:
        """Fires the timers up to and including ``until_us``, also those that are set meanwhile."""
        while (due := self._timers.pop(until_us)) is not None:
            time, key = due
            if self._keys.is_over(key, time):
                continue
            context = key.context
            subject = f"timer at {time} of key {context.key!r}"
            if time > context.time:
                context.time = time
                if not after_end:
                    key.fired = 0
            key.fired += 1
            if key.fired > MOST_TIMERS:
                which = "after the end of the input" if after_end else f"up to {context.time} at that time"
                what = f"set more than {MOST_TIMERS} timers {which}"
                raise self._on_timer.error(what, subject, "it must stop setting timers at some point")
            place = (context.time, key.hash, key.next_tie())
            error = self._call(key, self._on_timer, self._from_timers, subject, time, place, 1)
            if error is not None and self._failed is not None:
                error.what += f" (timer at {time})"
                keys = dict(zip(self._key_names, context.key, strict=True))
                self._failed.add(keys, error, place[0], place[1], sub_of(place[2], 1))

    def _is_first_state(self, key: Key) -> bool:
        return self._state.is_first(key.context.state)

    def _new_key(self, values: Values) -> Key:
        key = Key(hash_key(values, self._key_types))
        first = self._state.first
        key.context = Context(values, dict(first), Timers(self._timers, key), first)
        return key

    def _switch_to(self, writer: RowWriter) -> None:
        """Keeps rows from events and from timers in the order in which they were returned."""
        other = self._from_timers if writer is self._from_events else self._from_events
        if other.count:
            self._emit(other)
        elif writer.count >= _EMITTED_AT_ONCE:
            self._emit(writer)

    def _emit(self, writer: RowWriter) -> None:
        if writer.count:
            self.emit(*writer.take())

    def _state_rows(self) -> list[StateRows]:
        held = self._held.rows()
        held_keys = self._words.encode(self.inputs[0], held, 0, len(held[0]))
        keys = list(self._keys)
        timers = [(time, key) for key in keys for time in sorted(key.context.timers)]
        spec = self.node.spec_as(ProcessSpec)
        key_rows = [
            [key.context.time for key in keys],
            [key.seen for key in keys],
            [key.fired for key in keys],
            [key.tied_time for key in keys],
            [key.tied for key in keys],
            *self._key_lists(keys),
            *([key.context.state[name] for key in keys] for name in spec.state.names),
        ]
        timer_rows = [[time for time, _ in timers], *self._key_lists([key for _, key in timers])]
        return [
            (held, self._key_hash(held_keys)),
            self._state_table(1, key_rows, keys),
            self._state_table(2, timer_rows, [key for _, key in timers]),
        ]

    def _key_lists(self, keys: list[Key]) -> list[list[Any]]:
        return [[key.context.key[place] for key in keys] for place in range(len(self._key_types))]

    def _state_table(self, number: int, lists: list[list[Any]], keys: list[Key]) -> StateRows:
        fields = self.state_formats[number].layout.fields
        columns = [
            array
            for values, field in zip(lists, fields, strict=True)
            for array in to_columns(values, field, self.strings)
        ]
        return tuple(columns), np.array([key.hash for key in keys], np.int64)

    def _restore(self, rows: list[Columns], watermark_us: int) -> None:
        held, keys, timers = rows
        spec = self.node.spec_as(ProcessSpec)
        self._held.add(held, 0, len(held[0]))
        states = RowReader(self.state_formats[1].layout, self.strings, spec.state.names)
        everything = slice(0, len(keys[0]))
        for values, handled, seen, fired, tied_time, tied, state in zip(
            self._restored_keys(1, keys),
            *(column.tolist() for column in keys[: len(_OURS)]),
            states.read(keys, everything),
            strict=True,
        ):
            if values in self._keys:
                raise self._given_twice()
            key = self._keys.add(values)
            key.context.time, key.seen, key.fired = handled, seen, fired
            key.tied_time, key.tied = tied_time, tied
            key.context.state.update(state)
        for values, time in zip(self._restored_keys(2, timers), timers[0].tolist(), strict=True):
            self._keys[values].context.timers.add(time)
        self._keys.restored()

    def _restored_keys(self, number: int, columns: Columns) -> list[Values]:
        layout = self.state_formats[number].layout
        names = [field.name for field in key_fields(self._words)]
        return RowReader(layout, self.strings, names).keys(columns, slice(0, len(columns[0])))

    def reset(self) -> None:
        super().reset()
        self._held.clear()
        self._keys.clear()
        self._timers = TimerQueue()  # timers of the keys that are gone belong to the old one
        self._from_events.clear()
        self._from_timers.clear()
        if self._failed is not None:
            self._failed.clear()

    @cached_property
    def _key_hash(self) -> KeyHash:
        return KeyHash(self._words, self.strings)

    @property
    def state_bytes(self) -> int:
        """Exact for the held events, an estimate for Python's objects."""
        per_key = 600 + 60 * (len(self._key_types) + len(self._state))
        return self._held.bytes + per_key * len(self._keys) + 100 * len(self._timers)

    @property
    def open_windows(self) -> int:
        return self._timers.live


class _StateCheck:
    """The declared state fields: how they start, and whether a function left them as declared."""

    __slots__ = ("_fields", "first")

    def __init__(self, schema: Schema) -> None:
        self._fields = [(field.name, field, converter(field)) for field in schema]
        self.first = {field.name: start_value(field) for field in schema}

    def __len__(self) -> int:
        return len(self._fields)

    def is_first(self, state: dict[str, Any]) -> bool:
        """Whether a state is as it starts; −0.0 is equal to 0.0, and still another."""
        for name, first in self.first.items():
            value = state[name]
            if value is not first and (value != first or str(value) != str(first)):
                return False
        return True

    def check(self, context: Context, function: UserFunction, subject: object) -> None:
        """Also turns values into what a column would hold, so that a restored state is the same state."""
        state = context.state
        for name, field, convert in self._fields:
            try:
                state[name] = convert(state[name])
            except KeyError:
                raise function.error(f"removed the state field '{name}'", subject) from None
            except ValueError as misfit:
                what = f"left {misfit} in the state field '{name}'"
                raise function.error(what, subject, f"it was declared as {field.dtype}") from None
        if len(state) != len(self._fields):
            declared = [name for name, _, _ in self._fields]
            unknown = next(name for name in state if name not in declared)
            what = f"set a state field '{unknown}' that was not declared"
            raise function.error(what, subject, f"declared are {', '.join(declared) or 'none'}")
