"""Batch: a Python function from many events to many rows, as numpy columns or as an Arrow batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.memory.arrow import batch_from_columns, numpy_from_arrow
from penstock.memory.layout import SUB, Columns, Layout
from penstock.operators.columns.batch_columns import numpy_from_columns, plain_column
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.failed import FailedEvents
from penstock.operators.run.registry import runs
from penstock.operators.run.rows import SUB_ROWS, RowReader, UserFunction
from penstock.operators.run.system_columns import system_column, system_lists
from penstock.query.errors import FunctionError, RunError
from penstock.query.graph import Port
from penstock.query.steps import BatchSpec
from penstock.query.types import Field

ROW = "_row"  # the column that says from which input row an output row is made


@runs(BatchSpec)
class BatchFunction(Operator):
    """Calls the function with copies, which it may keep and change, and checks what it returns."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        spec = build.node.spec_as(BatchSpec)
        self._arrow = spec.arrow
        self._call = spec.function
        self._function = UserFunction(build.node.id, spec.function, queries=build.node.queries)
        self._reader = RowReader(build.inputs[0], build.strings)
        self._failed = FailedEvents(self, build, self._function) if spec.sets_aside else None

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        if not self.outlets:
            return stop - start
        if not self.flush():
            return 0
        if self._failed is None:
            try:
                made = self._call(self._given(columns, start, stop))
            except Exception as error:
                raise self._blamed(columns, start, stop, error) from error
            self._take(made, columns, start, stop)
        else:
            self._work_aside(self._failed, columns, start, stop)
            self._failed.emit()
        self.flush()
        return stop - start

    def _work_aside(self, failed: FailedEvents, columns: Columns, start: int, stop: int) -> None:
        """Halves what fails until the events that do stand alone: each is treated by itself, so none of the
        others can tell."""
        try:
            try:
                made = self._call(self._given(columns, start, stop))
            except Exception as error:
                raise self._function.raised(error, "") from error
            self._take(made, columns, start, stop)
        except FunctionError as error:
            if stop - start > 1:
                middle = (start + stop) // 2
                self._work_aside(failed, columns, start, middle)
                self._work_aside(failed, columns, middle, stop)
            else:
                ((time, order, sub, late),) = system_lists(self.inputs[0], columns, start, stop)
                failed.add(self._event(columns, start), error, time, order, sub, late)

    def reset(self) -> None:
        super().reset()
        if self._failed is not None:
            self._failed.clear()

    def _given(self, columns: Columns, start: int, stop: int) -> Any:
        layout = self.inputs[0]
        if self._arrow:
            return batch_from_columns(columns, start, stop, layout, self.strings)
        return numpy_from_columns(columns, start, stop, layout, self.strings)

    def _take(self, made: Any, columns: Columns, start: int, stop: int) -> None:
        """Checks a result and makes its rows ready."""
        first = self._event(columns, start)
        arrays = self._arrays(made, first)
        rows = self._rows(arrays, stop - start, first)
        count = stop - start if rows is None else len(rows)
        for name, array in arrays.items():
            if len(array) != count:
                what = f"returned {len(array)} values for column '{name}', where {count} rows are due"
                hint = f"add a column '{ROW}' with the input row of each" if rows is None else None
                raise self._function.error(what, first, hint)
        target = self.layouts.get(Port.MAIN) or Layout(())
        ready: dict[int, NDArray[Any]] = {}
        for field in self.node.schema:
            data, nulls = self._column(arrays, field, rows, columns, start)
            if field.name in target:
                ready[target.data(field.name)] = data
                mask = target.nulls(field.name)
                if mask is not None:
                    ready[mask] = np.zeros(count, np.bool_) if nulls is None else nulls
        for name in target.names:
            if name.startswith("$"):
                ready[target.data(name)] = self._system(name, rows, columns, start, stop)
        self.emit(tuple(ready[place] for place in range(len(ready))), count)

    def _arrays(self, made: Any, subject: object) -> dict[str, Any]:
        """The columns of a result by name, none missing, none unknown."""
        if self._arrow:
            if not isinstance(made, pa.RecordBatch | pa.Table):
                hint = "return a pyarrow.RecordBatch"
                raise self._function.error(f"returned a {type(made).__name__}", subject, hint)
            arrays = {name: _whole(made.column(name)) for name in made.schema.names}
        else:
            if not isinstance(made, Mapping):
                hint = "return a dict of numpy arrays"
                raise self._function.error(f"returned a {type(made).__name__}", subject, hint)
            arrays = {name: np.asanyarray(values) for name, values in made.items()}
        known = self.node.schema.names
        hint = f"columns are {', '.join(str(field) for field in self.node.schema)}"
        for name in arrays:
            if name not in known and name != ROW:
                raise self._function.error(f"returned an unknown column '{name}'", subject, hint)
        for name in known:
            if name not in arrays:
                raise self._function.error(f"returned no column '{name}'", subject, hint)
        return arrays

    def _rows(self, arrays: dict[str, Any], given: int, subject: object) -> NDArray[np.int64] | None:
        """Takes ``_row`` out of the columns: which input row each output row is made of."""
        column = arrays.pop(ROW, None) if ROW not in self.node.schema else None
        if column is None:
            return None
        plain = column.to_numpy(zero_copy_only=False) if self._arrow else np.asarray(column)
        if len(plain) == 0:
            return np.zeros(0, np.int64)
        if plain.dtype.kind not in "iu" or plain.min() < 0 or plain.max() >= given:
            what = f"returned a column '{ROW}' that does not number the {given} rows it got"
            raise self._function.error(what, subject, "write the input's row number, from 0, for each row")
        return plain.astype(np.int64)

    def _column(
        self,
        arrays: dict[str, Any],
        field: Field,
        rows: NDArray[np.int64] | None,
        columns: Columns,
        start: int,
    ) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """The data and nulls of one column of the result."""
        misfit = 0
        try:
            if self._arrow:
                return numpy_from_arrow(arrays[field.name], field, self.strings)
            return plain_column(arrays[field.name], field, self.strings)
        except RunError as error:
            problem = str(error)
        except ValueError as error:
            problem, misfit = error.args
        row = misfit if rows is None or len(rows) == 0 else int(rows[misfit])
        event = self._event(columns, start + row)
        what = f"returned {problem} for column '{field.name}'"
        raise self._function.error(what, event, f"the column is {field.dtype}{'?' * field.nullable}")

    def _system(
        self, name: str, rows: NDArray[np.int64] | None, columns: Columns, start: int, stop: int
    ) -> NDArray[Any]:
        values = system_column(self.inputs[0], name, columns, start, stop)
        if rows is None:
            return values.copy()  # the block may be recycled before these rows are written
        if name != SUB:
            return values[rows]
        by_row = np.argsort(rows, kind="stable")
        ordered = rows[by_row]
        numbers = np.empty(len(rows), np.int64)
        numbers[by_row] = np.arange(len(rows)) - np.searchsorted(ordered, ordered)
        return values[rows] * SUB_ROWS + numbers

    def _blamed(self, columns: Columns, start: int, stop: int, error: Exception) -> RunError:
        """Which event made the function raise: found by calling it with one event at a time."""
        for row in range(start, stop):
            try:
                self._call(self._given(columns, row, row + 1))
            except Exception:
                return self._function.raised(error, self._event(columns, row))
        event = self._event(columns, start)
        return self._function.raised(error, f"a batch of {stop - start} events, the first of them {event!r}")

    def _event(self, columns: Columns, row: int) -> dict[str, Any]:
        return self._reader.read(columns, slice(row, row + 1))[0]


def _whole(column: Any) -> Any:
    if isinstance(column, pa.ChunkedArray):
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column
