"""Failed events: those for which a user's function raised, on their way to the failed output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.operators.run.base import Build, Operator
from penstock.operators.run.rows import RowWriter, UserFunction
from penstock.query.errors import FunctionError
from penstock.query.failures import ERROR, STEP
from penstock.query.graph import Port


class FailedEvents:
    """Collects failed events of one operator, and counts them there."""

    __slots__ = ("_operator", "_writer")

    def __init__(self, operator: Operator, build: Build, function: UserFunction) -> None:
        self._operator = operator
        self._writer: RowWriter | None = None  # nobody reads them
        layout = build.outputs.get(Port.FAILED)
        if layout is not None:
            schema = build.node.spec.failed_columns(build.inputs[0].visible)  # such a step reads all columns
            self._writer = RowWriter(function, schema, layout, build.strings)

    def add(
        self,
        event: Mapping[str, Any],
        error: FunctionError,
        time: int,
        order: int,
        sub: int,
        late: bool = False,
    ) -> None:
        """One event, with what the function did and the place that it has in the stream."""
        self._operator.failed_events += 1
        if self._writer is not None:
            row = {**event, ERROR.name: error.what, STEP.name: self._operator.step}
            self._writer.add(row, event, time, order, sub, late)

    def emit(self) -> None:
        """Makes what was collected ready."""
        if self._writer is not None and self._writer.count:
            self._operator.emit(*self._writer.take(), Port.FAILED)

    def clear(self) -> None:
        """Forgets what was collected."""
        if self._writer is not None:
            self._writer.clear()
