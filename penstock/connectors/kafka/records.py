"""Records of Kafka as events: the value by a format, the other parts as columns of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.connectors.formats.line_format import LineFormat
from penstock.connectors.formats.lines import BadLine
from penstock.connectors.formats.messages import MessageParser
from penstock.connectors.formats.values import decode
from penstock.connectors.kafka.feed import Record
from penstock.connectors.kafka.parts import RecordPart
from penstock.memory.layout import Columns, Layout
from penstock.memory.strings import StringPool
from penstock.query.types import Schema


@dataclass(frozen=True)
class RecordForm:
    """What events are made of: ``format`` reads the columns of the value, None where there are none."""

    schema: Schema
    format: LineFormat | None
    parts: tuple[RecordPart, ...]

    @property
    def of_value(self) -> Schema:
        """The columns that the format reads."""
        others = {part.column.name for part in self.parts}
        return Schema(field for field in self.schema if field.name not in others)


@dataclass(frozen=True)
class RecordEvents:
    """The events of some records in the layout's visible columns, and the bad records."""

    columns: Columns
    count: int
    places: NDArray[np.intp] | None  # of the events among the records; None: all of them
    bad: list[BadLine]


class RecordParser:
    """Makes events of records, many at once."""

    def __init__(self, form: RecordForm, layout: Layout, strings: StringPool) -> None:
        self._form, self._layout, self._strings = form, layout, strings
        of_value = form.of_value
        self._value_layout = Layout(field for field in layout.visible if field.name in of_value)
        self._part_layout = Layout(field for field in layout.visible if field.name not in of_value)
        self._part_schema = Schema(part.column for part in form.parts)
        self._values: MessageParser | None = None
        if form.format is not None:
            self._values = MessageParser(form.format.parser(of_value, self._value_layout, strings))

    def parse(self, records: Sequence[Record]) -> RecordEvents:
        if not self._form.parts:
            assert self._values is not None
            parsed = self._values.parse([record.value() for record in records])
            places = None if not parsed.bad else _places(len(records), parsed.bad)
            return RecordEvents(parsed.columns, parsed.count, places, parsed.bad)
        return self._parse_parts(records)

    def _parse_parts(self, records: Sequence[Record]) -> RecordEvents:
        bad: dict[int, BadLine] = {}
        value_columns: Columns = ()
        in_value = np.ones(len(records), np.bool_)
        if self._values is not None:
            parsed = self._values.parse([record.value() for record in records])
            bad = {entry.record: entry for entry in parsed.bad}
            in_value[list(bad)] = False
            value_columns = parsed.columns
        unfit: dict[int, str] = {}
        arrays = {part.column.name: part.array(records, unfit) for part in self._form.parts}
        decoded = decode(arrays, len(records), self._part_schema, self._part_layout, self._strings)
        in_parts = np.ones(len(records), np.bool_)
        in_parts[[place for place, _ in decoded.rejected]] = False
        good = in_value & in_parts
        for place, reason in [*unfit.items(), *decoded.rejected]:
            if place not in bad:
                text = (records[place].value() or b"")[:8_000].decode(errors="replace")
                bad[place] = BadLine(place, place, text, reason)
                good[place] = False
        columns = self._in_order(
            tuple(column[good[in_value]] for column in value_columns),
            tuple(column[good[in_parts]] for column in decoded.columns),
        )
        places = np.flatnonzero(good) if bad else None
        return RecordEvents(columns, int(good.sum()), places, [bad[place] for place in sorted(bad)])

    def _in_order(self, of_value: Columns, of_parts: Columns) -> Columns:
        """The arrays of both as the layout has them."""
        columns: list[NDArray[np.generic]] = []
        for field in self._layout.visible:
            inner, arrays = self._value_layout, of_value
            if field.name in self._part_layout:
                inner, arrays = self._part_layout, of_parts
            columns.append(arrays[inner.data(field.name)])
            nulls = inner.nulls(field.name)
            if nulls is not None:
                columns.append(arrays[nulls])
        return tuple(columns)


def _places(count: int, bad: list[BadLine]) -> NDArray[np.intp]:
    good = np.ones(count, np.bool_)
    good[[entry.record for entry in bad]] = False
    return np.flatnonzero(good)
