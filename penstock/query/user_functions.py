"""The functions that users write for events in groups: what they are given and what they return.

An event is a dict of plain Python values: null is None, a timestamp is an int of microseconds since 1970.
What a function returns, or yields, are dicts of the declared output columns; a nullable column may be left
out, and None in place of an iterable means no rows.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from weakref import WeakValueDictionary


@dataclass(frozen=True)
class Group:
    """One key and window of a co-group, with the events of both sides in (event time, source, offset) order.

    ``window_start`` and ``window_end`` are microseconds; the end is not part of the window. One side may be
    empty. The events are copies: a function may change them.
    """

    key: tuple[Any, ...]
    window_start: int
    window_end: int
    left: list[dict[str, Any]]
    right: list[dict[str, Any]]


class Context:
    """What a process function may do besides returning rows: read and write state, set timers."""

    def __init__(
        self,
        key: tuple[Any, ...],
        state: dict[str, Any],
        timers: set[int],
        first_state: Mapping[str, Any] | None = None,
    ) -> None:
        self.key = key
        self._first_state = dict(state) if first_state is None else first_state
        #: This key's state, one entry per declared field; starts as zeros, empty strings, None if nullable.
        self.state = state
        #: Event times in microseconds at which ``on_timer`` will be called; change them by the methods below.
        self.timers = timers
        #: Event time of the event or timer at hand. It never goes back, also if a timer was set in the past.
        self.time = 0

    def set_timer(self, time_us: int) -> None:
        """Calls ``on_timer`` once the watermark reaches ``time_us``; a time already passed fires next.

        Setting a time twice calls it once.
        """
        self.timers.add(time_us)

    def delete_timer(self, time_us: int) -> None:
        """Takes a timer back, if there is one at that time."""
        self.timers.discard(time_us)

    def clear(self) -> None:
        """Forgets this key: its state is as it started and it has no timers.

        A key that a function leaves so takes no memory, and is in no checkpoint.
        """
        self.state.clear()
        self.state.update(self._first_state)
        self.timers.clear()


#: Functions that a run calls: by their id, as one may say that it equals another.
_running: WeakValueDictionary[int, ProcessFunction] = WeakValueDictionary()


class ProcessFunction:
    """A function per key with state and timers. Subclass it; whatever must last belongs in ``context.state``:
    an attribute would be one for all keys, and gone after a restart, so that none can be set during a run.

    Events of one key come in (event time, source, offset) order, and a timer fires before any event of its
    time or later. Rows returned are dicts of the declared output columns; their event time is that of the
    event or timer.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if _running.get(id(self)) is self:
            raise AttributeError(
                f"'{name}' is set while the run goes on: all keys would share it, and a restart would lose "
                f"it; declare state={{'{name}': ...}} and set context.state['{name}']"
            )
        super().__setattr__(name, value)

    def on_event(self, event: dict[str, Any], context: Context) -> Iterable[dict[str, Any]]:
        """Called for every event; returns rows."""
        raise NotImplementedError

    def on_timer(self, time_us: int, context: Context) -> Iterable[dict[str, Any]]:
        """Called for every timer, with the time that was set; returns rows."""
        return ()


def runs_now(function: ProcessFunction) -> None:
    """From now on attributes of the function are refused."""
    _running[id(function)] = function


def returns_nothing(function: object) -> bool:
    """Whether a function written in Python ends and never gives a value back: its ``return`` was forgotten.

    One that always raises does not end, and is none of these.
    """
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    if code is None or code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
        return False
    steps = list(dis.get_instructions(code))
    values = [
        before.argval if before.opname == "LOAD_CONST" else ...
        for before, step in pairwise(steps)
        if step.opname == "RETURN_VALUE"
    ]
    values += [step.argval for step in steps if step.opname == "RETURN_CONST"]  # from Python 3.12 on
    return bool(values) and all(value is None for value in values)
