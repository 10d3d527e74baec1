"""Users' own predicates: P_s and P_c as Python functions, event by event and selection by selection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.cep.selections import Cuts, EventBatch, closed_at_end, in_closing_order
from penstock.cep.selections import State as Kept
from penstock.query.errors import PenstockError

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
    selection: the families of :mod:`penstock.cep.splitter_pairs` do not.

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
        names = list(batch.columns)
        for position, (time, *values) in enumerate(
            zip(
                batch.times.tolist(),
                *(np.asarray(batch.columns[name]).tolist() for name in names),
                strict=True,
            ),
            batch.first,
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
        raise PenstockError(
            "the state of users' own predicates cannot be kept: it may hold any Python object; "
            "use one of the families where a run must go on after a stop"
        )

    def restore(self, state: Kept) -> None:
        self.export()

    @property
    def open_selections(self) -> int:
        return len(self._open)

    def _start(self, event: Event, position: int, starts: list[int]) -> None:
        if self._starts(event, self._state):
            self._open.append(OpenSelection(self._numbers, position, event, {}))
            self._numbers += 1
            starts.append(position)
