"""The state of a splitter as tables: events that wait for the watermark, events and bounds of selections
that are open, and what predicates, fleet and control know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from penstock.cep.event_columns import kept_fields, named
from penstock.cep.selections.instances import EventBuffer
from penstock.cep.selections.selections import EventBatch
from penstock.memory.layout import Columns, Layout
from penstock.memory.strings import StringPool
from penstock.operators.windows.window_rows import NO_KEY_HASH
from penstock.query.types import DataType, Field
from penstock.scaling.adaptation import Fleet, InstancePhase, PlannedInstance
from penstock.state.tables import StateFormat, StateRows

if TYPE_CHECKING:
    from penstock.cep.selections.splitter_operator import SplitterOperator

#: Arrays of whole numbers or floats, by name.
Notes = dict[str, Any]

_POSITION, _TIME = "$position", "$at"
_PHASES = list(InstancePhase)
_LENGTH = -1  # the place of the row that says how long a note is, and of what


class SplitterState:
    """Takes a splitter's state out and puts it back."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._kept = Layout(kept_fields(layout))
        self.formats = (
            StateFormat("held", layout.fields),
            StateFormat(
                "kept",
                [Field(_POSITION, DataType.INT64), Field(_TIME, DataType.TIMESTAMP), *self._kept.fields],
            ),
            StateFormat(
                "notes",
                [
                    Field("$name", DataType.STRING),
                    Field("$place", DataType.INT64),
                    Field("$value", DataType.INT64),
                    Field("$real", DataType.FLOAT64),
                ],
            ),
        )

    def rows(self, operator: SplitterOperator) -> list[StateRows]:
        """The rows of each table."""
        kept = self.formats[1].layout.allocate(0)
        notes = self.formats[2].layout.allocate(0)
        if operator._stop:
            events = operator._buffer.between(operator._buffer.first, operator._stop)
            flat = [column for name, column in _in_order(self._kept, events)]
            kept = (events.first + np.arange(len(events)), np.asarray(events.times), *flat)
            notes = _noted(_notes_of(operator), operator.strings)
        tables = (operator._held.rows(), kept, notes)
        return [(columns, np.full(len(columns[0]), NO_KEY_HASH)) for columns in tables]

    def restore(self, operator: SplitterOperator, tables: list[Columns]) -> bool:
        """Takes in what ``rows`` gave; False if it has a state already."""
        held, kept, noted = tables
        operator._held.add(held, 0, len(held[0]))
        if not len(noted[0]):
            return True
        if operator._stop:
            return False
        notes = _read(noted, operator.strings)
        order = np.argsort(kept[0])
        buffer = operator._buffer = EventBuffer()
        stop = int(notes["splitter.at"][0])
        buffer.first = int(kept[0][order[0]]) if len(order) else stop
        if len(order):
            columns = named(self._kept, kept[2:], order)
            buffer.add(EventBatch(buffer.first, kept[1][order], columns))
        _take_notes(operator, notes)
        return True


def _notes_of(operator: SplitterOperator) -> Notes:
    fleet = operator._fleet
    notes: Notes = {
        "degree": np.array([operator._planned, operator._wanted, operator._last_us]),
        "fleet.counts": np.array([fleet.planned, fleet.next_number]),
        "fleet.numbers": np.array([one.number for one in fleet.instances], np.int64),
        "fleet.phases": np.array([_PHASES.index(one.phase) for one in fleet.instances], np.int64),
        "fleet.due": np.array([one.due_s for one in fleet.instances]),
        "places.instances": np.array(list(operator._places), np.int64),
        "places.places": np.array(list(operator._places.values()), np.int64),
    }
    notes |= _under("splitter", operator._splitter.export())
    notes |= _under("predicates", operator._splitter.predicates.export())
    if operator._control is not None:
        notes |= _under("control", operator._control.export())
    return notes


def _take_notes(operator: SplitterOperator, notes: Notes) -> None:
    operator._splitter.predicates.restore(_part(notes, "predicates"))
    operator._splitter.restore(_part(notes, "splitter"))
    operator._stop = int(notes["splitter.at"][0])
    fleet = zip(*(notes[f"fleet.{name}"].tolist() for name in ("numbers", "phases", "due")), strict=True)
    planned, next_number = notes["fleet.counts"].tolist()
    operator._fleet = Fleet(
        tuple(PlannedInstance(number, _PHASES[phase], due_s) for number, phase, due_s in fleet),
        planned,
        next_number,
    )
    operator._places = dict(
        zip(notes["places.instances"].tolist(), notes["places.places"].tolist(), strict=True)
    )
    operator.degrees_seen = [operator._fleet.observed]
    planned, wanted, operator._last_us = notes["degree"].tolist()
    # The degree may have been written otherwise since: what it says now counts, from here on.
    degree = operator._spec.degree
    operator._changes = [change for change in degree.changes if change[0] >= operator._stop]
    passed = [one for position, one in degree.changes if position < operator._stop]
    known = _part(notes, "control")
    if operator._control is None:
        operator._request(passed[-1] if passed else degree.start)
    else:
        operator._request(wanted)
        operator._planned = planned
        if known:
            operator._control.restore(known)


def _in_order(layout: Layout, events: EventBatch) -> list[tuple[str, NDArray[Any]]]:
    """The arrays of a layout's columns, masks beside them; of no events, empty ones."""
    nothing = named(layout, layout.allocate(0))
    return [(name, np.asarray(events.columns.get(name, empty))) for name, empty in nothing.items()]


def _under(owner: str, state: Notes) -> Notes:
    return {f"{owner}.{name}": values for name, values in state.items()}


def _part(notes: Notes, owner: str) -> Notes:
    begin = f"{owner}."
    return {name.removeprefix(begin): values for name, values in notes.items() if name.startswith(begin)}


# -- notes as rows -------------------------------------------------------------------------------------------


def _noted(notes: Notes, strings: StringPool) -> Columns:
    """A row for each value, and one before them that says how many there are and of what kind."""
    names: list[str] = []
    places: list[NDArray[np.int64]] = []
    values: list[NDArray[Any]] = []
    reals: list[NDArray[Any]] = []
    for name, given in notes.items():
        array = np.asarray(given)
        nothing = np.zeros(len(array))
        is_real = array.dtype.kind == "f"
        names += [name] * (len(array) + 1)
        places.append(np.arange(_LENGTH, len(array)))
        values.append(np.append(len(array), nothing if is_real else array).astype(np.int64))
        reals.append(np.append(float(is_real), array if is_real else nothing))
    return strings.codes(names), np.concatenate(places), np.concatenate(values), np.concatenate(reals)


def _read(columns: Columns, strings: StringPool) -> Notes:
    names, places, values, reals = columns
    order = np.lexsort((places, names))
    firsts = np.flatnonzero(places[order] == _LENGTH)
    notes: Notes = {}
    for first, stop in zip(firsts, [*firsts[1:], len(order)], strict=True):
        head, rows = order[first], order[first + 1 : stop]
        notes[strings.text(int(names[head]))] = (reals if reals[head] else values)[rows]
    return notes
