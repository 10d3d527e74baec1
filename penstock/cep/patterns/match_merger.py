"""The merger of a match by start: one order for what all instances found, as one instance would give it."""

from __future__ import annotations

import numpy as np

from penstock.cep.patterns.machine_layout import SUB_ROWS
from penstock.cep.selections.selections import Ints
from penstock.memory.layout import ORDER, SUB, TIME, Columns
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.ordered_buffer import OrderedBuffer
from penstock.operators.run.registry import runs
from penstock.operators.windows.window_rows import KeyHash
from penstock.query.graph import Port
from penstock.query.patterns.by_start import START
from penstock.query.steps import MatchMergeSpec
from penstock.state.keys import KeyWords
from penstock.state.tables import StateFormat, StateRows


@runs(MatchMergeSpec)
class MatchMerger(Operator):
    """Holds matches until the watermark passes them; by then every instance has told of its own.

    Matches that one event decided have consecutive numbers, by their first events: so ``$sub`` is what it
    would be without instances. Those that a deadline decided belong to one first event, hence to one
    instance, and are numbered already.
    """

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        layout = build.inputs[0]
        self._places = tuple(layout.data(name) for name in (TIME, ORDER, SUB, START))
        self._held = OrderedBuffer(layout)
        self._output = build.outputs.get(Port.MAIN)
        self._hash = KeyHash(KeyWords(()), build.strings)
        self.state_formats = (StateFormat("held", layout.fields),)

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        if self._output is not None:
            self._held.add(columns, start, stop)
        return stop - start

    def on_watermark(self, watermark_us: int) -> None:
        columns, count = self._held.release(watermark_us)
        if not count or self._output is None:
            return
        times, orders, subs, starts = (columns[place] for place in self._places)
        numbered = numbered_subs(times, orders, subs, starts)
        order = np.lexsort((numbered, orders, times))
        layout, made = self.inputs[0], []
        for field in self._output.fields:
            made.append((numbered if field.name == SUB else columns[layout.data(field.name)])[order])
            nulls = layout.nulls(field.name)
            if nulls is not None:
                made.append(columns[nulls][order])
        self.emit(tuple(made), count)

    def _state_rows(self) -> list[StateRows]:
        held = self._held.rows()
        return [(held, self._hash.of_columns((), len(held[0])))]

    def _restore(self, rows: list[Columns], watermark_us: int) -> None:
        self._held.add(rows[0], 0, len(rows[0][0]))

    def reset(self) -> None:
        super().reset()
        self._held.clear()

    @property
    def state_bytes(self) -> int:
        return self._held.bytes


def numbered_subs(times: Ints, orders: Ints, subs: Ints, starts: Ints) -> Ints:
    """``$sub`` with consecutive numbers among the rows that one event decided, by start, then as they are."""
    made = subs.copy()
    rows = np.flatnonzero(subs % 2 == 0)  # the others are a deadline's
    if not len(rows):
        return made
    above = subs // SUB_ROWS
    rows = rows[np.lexsort((subs[rows], starts[rows], above[rows], orders[rows], times[rows]))]
    place = np.stack((times[rows], orders[rows], above[rows]))
    is_first = np.append(True, (place[:, 1:] != place[:, :-1]).any(axis=0))
    counted = np.arange(len(rows))
    number = counted - np.maximum.accumulate(np.where(is_first, counted, 0))
    made[rows] = above[rows] * SUB_ROWS + 2 * number
    return made
