"""Users' own predicates: P_s and P_c as Python functions, event by event and selection by selection."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.cep.event_columns import NULL
from penstock.cep.selections.selections import Cuts, EventBatch, Ints, closed_at_end, in_closing_order
from penstock.cep.selections.selections import State as Kept
from penstock.query.errors import PenstockError

_HINT = "keep numbers, texts, None, lists, and dicts with texts as keys in it"

Event = dict[str, Any]
State = dict[str, Any]


@dataclass
class OpenSelection:
    """What P_c is told of a selection that is open. ``state`` is its own, to keep things in."""

    number: int
    start: int  # position of its first event
    start_event: Event
    state: State


class RowPredicates:
    """P_s: ``starts(event, state)``; P_c: ``closes(selection, event, state)``, both true or false.

    ``event`` has the batch's columns and ``time``, its event time in microseconds; ``state`` is a dict
    that the predicates share and may write to. Costs a call per event and one per event and open
    selection: the families of :mod:`penstock.cep.selections.splitter_pairs` do not.

    start_first: P_s is evaluated before P_c, so that an event can open a selection and close it.
    includes_close: whether the event that closes a selection is part of it.
    """

    def __init__(
        self,
        starts: Callable[[Event, State], bool],
        closes: Callable[[OpenSelection, Event, State], bool],
        *,
        start_first: bool = False,
        includes_close: bool = True,
    ) -> None:
        self._starts, self._closes = starts, closes
        self._start_first, self._includes_close = start_first, includes_close
        self._state: State = {}
        self._open: list[OpenSelection] = []
        self._numbers = 0

    def cut(self, batch: EventBatch) -> Cuts:
        first_number = self._numbers
        starts: list[int] = []
        closed: list[int] = []
        stops: list[int] = []
        closers: list[int] = []
        names = [name for name in batch.columns if not name.startswith("$") and not name.endswith(NULL)]
        for position, (time, *values) in enumerate(
            zip(batch.times.tolist(), *(_plain(batch, name) for name in names), strict=True), batch.first
        ):
            event = {**dict(zip(names, values, strict=True)), "time": time}
            if self._start_first:
                self._start(event, position, starts)
            kept = []
            for one in self._open:
                if self._closes(one, event, self._state):
                    closed.append(one.number)
                    stops.append(position + self._includes_close)
                    closers.append(position)
                else:
                    kept.append(one)
            self._open = kept
            if not self._start_first:
                self._start(event, position, starts)
        arrays = (np.array(found, np.int64) for found in (starts, closed, stops, closers))
        return in_closing_order(first_number, *arrays)

    def finish(self, stop: int) -> Cuts:
        left = np.array([one.number for one in self._open], np.int64)
        self._open = []
        return closed_at_end(self._numbers, left, stop)

    def export(self) -> Kept:
        """Its states as JSON: so they hold numbers, texts, lists and dicts with texts as keys."""
        opened = [[one.number, one.start, one.start_event, one.state] for one in self._open]
        return {"numbers": np.array([self._numbers]), "json": _packed(_json([self._state, opened]))}

    def restore(self, state: Kept) -> None:
        self._numbers = int(state["numbers"][0])
        self._state, opened = json.loads(_unpacked(state["json"]))
        self._open = [OpenSelection(*one) for one in opened]

    @property
    def open_selections(self) -> int:
        return len(self._open)

    def _start(self, event: Event, position: int, starts: list[int]) -> None:
        if self._starts(event, self._state):
            self._open.append(OpenSelection(self._numbers, position, event, {}))
            self._numbers += 1
            starts.append(position)


def _plain(batch: EventBatch, name: str) -> list[Any]:
    """A column as Python values; null is None."""
    values: list[Any] = np.asarray(batch.columns[name]).tolist()
    nulls = batch.columns.get(name + NULL)
    if nulls is None:
        return values
    return [None if null else value for value, null in zip(values, nulls.tolist(), strict=True)]


def _json(value: Any) -> str:
    """What comes back must be what was there: a tuple would come back as a list."""
    try:
        text = json.dumps(value)
        back = json.loads(text)
    except (TypeError, ValueError) as error:
        raise PenstockError(f"the state of predicates cannot be kept: {error}; {_HINT}") from None
    if json.dumps(back) != text or not _alike(back, value):
        raise PenstockError(f"the state of predicates cannot be kept: got {value!r}; {_HINT}")
    return text


def _alike(back: Any, value: Any) -> bool:
    if type(back) is not type(value):
        return False
    if isinstance(value, dict):
        return back.keys() == value.keys() and all(_alike(back[key], value[key]) for key in value)
    if isinstance(value, list):
        return len(back) == len(value) and all(map(_alike, back, value))
    return True


def _packed(text: str) -> Ints:
    """The length of a text, then its bytes, eight to a number."""
    data = text.encode()
    return np.append(len(data), np.frombuffer(data + bytes(-len(data) % 8), "<i8"))


def _unpacked(words: Ints) -> str:
    return words[1:].astype("<i8").tobytes()[: int(words[0])].decode()
