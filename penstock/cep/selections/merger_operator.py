"""The merger as an operator: its matches come from all instances, its numbers go on for ever."""

from __future__ import annotations

import numpy as np

from penstock.cep.event_columns import in_layout, named
from penstock.cep.selections.merger import MatchPlaces, Merger
from penstock.memory.layout import ORDER, SUB, Columns
from penstock.operators.run.base import Build, Operator
from penstock.operators.windows.window_rows import NO_KEY_HASH
from penstock.query.graph import Port
from penstock.query.types import DataType, Field
from penstock.state.tables import StateFormat, StateRows

_PLACE = ("closed_at", "$closer", "$number", "$rank")


class MergerOperator(Operator):
    """Releases matches when every instance has passed the watermark."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        self._input = build.inputs[0]
        self._output = build.outputs.get(Port.MAIN)
        self._places = [self._input.data(name) for name in _PLACE]
        self._merger = Merger()
        self.state_formats = (
            StateFormat("merged", [Field("$sequence", DataType.INT64)]),
            StateFormat("waiting", self._input.fields),
        )

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        self._add(tuple(column[start:stop].copy() for column in columns))
        return stop - start

    def on_watermark(self, watermark_us: int) -> None:
        # every event before the watermark has been cut, and every instance has worked on what that closed
        sequence, columns = self._merger.release(watermark_us)
        if len(sequence) and self._output is not None:
            values = named(self._input, columns)
            values["sequence"] = values[ORDER] = sequence
            values[SUB] = np.zeros(len(sequence), np.int64)
            self.emit(in_layout(self._output, values), len(sequence))

    def _add(self, columns: Columns) -> None:
        self._merger.add(MatchPlaces(*(columns[place] for place in self._places)), columns)

    def _state_rows(self) -> list[StateRows]:
        merged = self._merger.sequence
        waiting = self._merger.waiting() or self._input.allocate(0)
        tables: list[Columns] = [(np.full(int(merged > 0), merged),), waiting]
        return [(rows, np.full(len(rows[0]), NO_KEY_HASH)) for rows in tables]

    def _restore(self, rows: list[Columns], watermark_us: int) -> None:
        (told,), waiting = rows
        if len(told) and (self._merger.sequence or len(told) > 1):
            raise self._given_twice()
        if len(told):
            self._merger.sequence = int(told[0])
        self._add(waiting)

    def reset(self) -> None:
        super().reset()
        self._merger = Merger()

    @property
    def state_bytes(self) -> int:
        return self._merger.bytes
