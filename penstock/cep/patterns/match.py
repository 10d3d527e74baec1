"""Match: finds the matches of a pattern, per key, over events in the order of event time."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from penstock.cep.patterns.match_state import MatchState
from penstock.cep.patterns.matcher import Matcher
from penstock.memory.layout import ORDER, SUB, SYSTEM_TYPES, TIME, Columns, Layout
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.ordered_buffer import OrderedBuffer
from penstock.operators.run.registry import runs
from penstock.operators.windows.window_rows import KeyHash
from penstock.query.graph import Port
from penstock.query.steps import MatchSpec
from penstock.query.types import Field
from penstock.state.tables import StateFormat, StateRows


@runs(MatchSpec)
class Match(Operator):
    """Holds events until the watermark passes them, then takes them through the runs of their keys.

    Rows come out when they are decided, in the order of (instant, ``$order``, ``$sub``): rows that an event
    decided have an even ``$sub``, rows that a deadline decided an odd one.
    """

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        spec = build.node.spec_as(MatchSpec)
        layout = build.inputs[0]
        output = build.outputs.get(Port.MAIN)
        self._output = output
        self._held = OrderedBuffer(layout)
        # Where nobody reads the matches there is nothing to compute, only late events to hand on.
        self._matcher = None
        if output is not None:
            self._full = _with_places(output)
            self._kept = [index for index, field in _arrays(self._full) if field in output]
            self._matcher = Matcher(spec, layout, self._full, self.strings, self.id)
            self._state = MatchState(self._matcher, layout)
        self.state_formats = (
            StateFormat("held", layout.fields),
            *(() if self._matcher is None else self._state.formats),
        )

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        self.divert_late(index, columns, start, stop)
        if self._matcher is not None:
            self._held.add(columns, start, stop)
        return stop - start

    def on_watermark(self, watermark_us: int) -> None:
        if self._matcher is None:
            return
        columns, count = self._held.release(watermark_us)
        rows, made = self._matcher.take(columns, count, watermark_us)
        self.emit(tuple(rows[index] for index in self._kept), made)

    def _state_rows(self) -> list[StateRows]:
        held = self._held.rows()
        if self._matcher is None:
            return [(held, np.zeros(0, np.int64))]
        keys = self._matcher.words.encode(self.inputs[0], held, 0, len(held[0]))
        return [(held, self._hash(keys)), *self._state.rows(self._hash)]

    def _restore(self, rows: list[Columns], watermark_us: int) -> None:
        held, *tables = rows
        if self._matcher is None:
            return
        self._held.add(held, 0, len(held[0]))
        if not self._state.restore(tables):
            raise self._given_twice()

    def reset(self) -> None:
        super().reset()
        self._held.clear()
        if self._matcher is not None:
            self._matcher.clear()

    @cached_property
    def _hash(self) -> KeyHash:
        assert self._matcher is not None
        return KeyHash(self._matcher.words, self.strings)

    @property
    def state_bytes(self) -> int:
        return self._held.bytes + (0 if self._matcher is None else self._matcher.nbytes)

    @property
    def open_windows(self) -> int:
        """Runs that are neither matches yet nor given up."""
        return 0 if self._matcher is None else self._matcher.open_runs

    @property
    def dropped_runs(self) -> int:
        """Runs that were left out because their key had ``max_runs`` of them."""
        return 0 if self._matcher is None else self._matcher.dropped_runs


def _with_places(output: Layout) -> Layout:
    """The layout with all that matches are put in order by, also where nobody downstream reads it."""
    fields = list(output.fields)
    fields += [Field(name, SYSTEM_TYPES[name]) for name in (TIME, ORDER, SUB) if name not in output]
    return Layout(fields, output.time)


def _arrays(layout: Layout) -> list[tuple[int, str]]:
    """The number of each array, and the field that it belongs to."""
    names = [field.name for field in layout.fields for _ in range(1 + field.nullable)]
    return list(enumerate(names))
