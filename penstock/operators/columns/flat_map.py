"""Flat map: a Python function from one event to any number of rows, at the price of Python."""

from __future__ import annotations

from penstock.memory.layout import Columns
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.failed import FailedEvents
from penstock.operators.run.registry import runs
from penstock.operators.run.rows import RowReader, RowWriter, UserFunction, sub_of
from penstock.operators.run.system_columns import system_lists
from penstock.query.errors import FunctionError
from penstock.query.graph import Port
from penstock.query.steps import FlatMapSpec

# Rows are held as Python values until they are written: few at a time.
_EVENTS_AT_ONCE = 256


@runs(FlatMapSpec)
class FlatMap(Operator):
    """Calls the function with a dict per event and checks every row that it returns."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        spec = build.node.spec_as(FlatMapSpec)
        self._function = UserFunction(build.node.id, spec.function, queries=build.node.queries)
        self._reader = RowReader(build.inputs[0], build.strings)
        self._writer = RowWriter(
            self._function, build.node.schema, build.outputs.get(Port.MAIN), build.strings
        )
        self._failed = FailedEvents(self, build, self._function) if spec.sets_aside else None

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        if not self.outlets:
            return stop - start
        position = start
        while position < stop and self.flush():
            until = min(stop, position + _EVENTS_AT_ONCE)
            self._call(columns, position, until)
            position = until
        return position - start

    def _call(self, columns: Columns, start: int, stop: int) -> None:
        function, writer = self._function, self._writer
        events = self._reader.read(columns, slice(start, stop))
        system = system_lists(self.inputs[0], columns, start, stop)
        for event, (time, order, sub, late) in zip(events, system, strict=True):
            subject = dict(event)  # the function may change the event
            written = writer.count
            try:
                for number, row in enumerate(function.rows(subject, event)):
                    writer.add(row, subject, time, order, sub_of(sub, number), late)
            except FunctionError as error:
                if self._failed is None:
                    raise
                writer.cut(written)
                self._failed.add(subject, error, time, order, sub, late)
        if writer.count:
            self.emit(*writer.take())
        if self._failed is not None:
            self._failed.emit()

    def reset(self) -> None:
        super().reset()
        self._writer.clear()  # a function that failed may have left rows there
        if self._failed is not None:
            self._failed.clear()
