"""A detector at work: it is given columns, and what it finds becomes rows for the merger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.cep.event_columns import NULL, EventColumns, Named
from penstock.cep.selections.instances import Assigned, Detector, Matches
from penstock.cep.selections.selections import Ints
from penstock.memory.strings import StringPool
from penstock.query.errors import RunError
from penstock.query.steps import DetectSpec
from penstock.query.types import DataType, Field, Schema

#: What a match has on its way to the merger, before the columns that were asked for.
_FOUND = (
    Field("$number", DataType.INT64),  # of the selection
    Field("$closer", DataType.INT64),  # position of the event that closed it
    Field("$rank", DataType.INT64),  # among the matches that were found with it
    Field("closed_at", DataType.TIMESTAMP),
)


def found_schema(detected: Schema) -> Schema:
    """The columns of what instances send to the merger, given those of the step."""
    return Schema([*_FOUND, *(field for field in detected if field.name not in ("sequence", "closed_at"))])


class Detecting:
    """One instance's detector, with the columns that are wanted of its matches."""

    def __init__(self, spec: DetectSpec, texts: frozenset[str], strings: StringPool, step: str) -> None:
        self._detector: Detector = spec.detector()
        self._outputs, self._texts, self._strings, self._step = spec.outputs, texts, strings, step
        self._wanted = 1 + max((place for _, place, _ in spec.outputs), default=-1)

    def work(
        self, columns: Mapping[str, NDArray[Any]], times: Ints, assigned: Assigned, closed_at: Ints
    ) -> tuple[Named, int]:
        """The rows for the merger, and how many they are; ``assigned`` has places in the columns."""
        shown = EventColumns({**columns, "$time": times}, self._texts, self._strings)
        found = self._checked(self._detector.detect(shown, assigned.starts, assigned.stops), assigned)
        rows: Named = {
            "$number": assigned.numbers[found.of],
            "$closer": assigned.closers[found.of],
            "$rank": np.arange(len(found.of)),  # the order of one selection's matches is what counts
            "closed_at": closed_at[found.of],
        }
        for name, place, column in self._outputs:
            at = found.positions[:, place] if len(found) else found.of
            rows[name] = columns[column][at]
            if column + NULL in columns:
                rows[name + NULL] = columns[column + NULL][at]
        return rows, len(found)

    def _checked(self, found: Matches, assigned: Assigned) -> Matches:
        """Places that a detector must not give would be events that it has not seen."""
        of, positions = np.asarray(found.of, np.int64), np.asarray(found.positions, np.int64)
        if not len(of):
            return Matches(of, positions)
        if positions.ndim != 2 or len(positions) != len(of) or positions.shape[1] < self._wanted:
            raise self._error(
                f"gave places of shape {positions.shape} for {len(of)} matches", "a row for each match"
            )
        if not 0 <= int(of.min()) <= int(of.max()) < len(assigned.numbers):
            raise self._error(
                f"gave a match of selection {int(of.max())}", f"there are {len(assigned.numbers)}"
            )
        inside = (positions >= assigned.starts[of, None]) & (positions < assigned.stops[of, None])
        if not inside.all():
            wrong = int(np.flatnonzero(~inside.all(axis=1))[0])
            start, stop = int(assigned.starts[of[wrong]]), int(assigned.stops[of[wrong]])
            raise self._error(
                f"gave places {positions[wrong].tolist()}",
                f"its selection is the places {start} to {stop - 1}",
            )
        return Matches(of, positions)

    def _error(self, what: str, detail: str) -> RunError:
        wanted = f"{self._wanted} columns, the events of the match"
        return RunError(
            f"step '{self._step}': {type(self._detector).__qualname__}.detect {what}; {detail}; "
            f"Matches(of, positions) has {wanted}"
        )
