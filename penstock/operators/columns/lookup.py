"""Lookup: join with a static table on equal keys; its values are gathered by row number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.kernels.builder import KernelBuilder
from penstock.kernels.code import Code, either
from penstock.kernels.views import Computed
from penstock.memory.arrow import data_type, numpy_from_arrow
from penstock.operators.columns.front import LinkScratch
from penstock.operators.columns.table_index import DirectIndex, HashIndex, index_of
from penstock.operators.run.base import Build
from penstock.operators.run.fusion import Link, is_link
from penstock.query.errors import QueryError
from penstock.query.graph import Port
from penstock.query.steps import LookupSpec
from penstock.query.types import DataType, Field

#: A column of the table: its data, and where it is null (None: nowhere).
TableColumn = tuple[NDArray[Any], NDArray[np.bool_] | None]


class StaticTable:
    """The table of a step, with an index over its keys. Row number ``rows`` is that of no match."""

    def __init__(self, build: Build) -> None:
        self.spec = spec = build.node.spec_as(LookupSpec)
        names = [theirs for _, theirs in (*spec.on, *spec.columns)]
        self._values = {name: _table_column(spec.table, name, build) for name in names}
        self._index = self._indexed(build)
        self.rows = self._index.rows

    def row(self, builder: KernelBuilder) -> tuple[str, str]:
        """Emits the search for an event's row; the temporary that holds it, and the constant of no match."""
        keys = [builder.load(ours) for ours, _ in self.spec.on]
        row = self._index.write(builder, [_word(key) for key in keys])
        rows = builder.constant(self.rows, DataType.INT64)
        null = either(*(key.null for key in keys))
        if null is not None:  # null never matches
            row = builder.assign(f"{rows} if {null} else int64({row})")
        return row, rows

    def column(self, builder: KernelBuilder, theirs: str, field: Field) -> tuple[str, str | None]:
        """The kernel's tables of a column by row, and where it is null there; the last of each is that of no
        match."""
        data, nulls = self._values[theirs]
        numbers = np.append(data, data.dtype.type(0)).astype(field.dtype.numpy)
        values = builder.table(builder.parameters.add_table(numbers))
        if not field.nullable:
            return values, None
        known = np.zeros(len(data), np.bool_) if nulls is None else nulls
        return values, builder.table(builder.parameters.add_table(np.append(known, True)))

    def _indexed(self, build: Build) -> DirectIndex | HashIndex:
        spec = self.spec
        words: list[NDArray[np.int64]] = []
        usable = np.ones(spec.table.num_rows, np.bool_)
        for ours, theirs in spec.on:
            column = spec.table[theirs]
            dtype, wanted = data_type(column.type), build.inputs[0].field(ours).dtype
            if dtype is not wanted and not (dtype is not None and dtype.is_integer and wanted.is_integer):
                raise QueryError(
                    "key types do not match",
                    detail=f"'{ours}' of the stream is {wanted}, '{theirs}' of the table is {column.type}",
                    hint="cast one of them first",
                ).at(build.node.id)
            data, nulls = self._values[theirs]
            words.append(key_words(data))
            if nulls is not None:
                usable &= ~nulls  # null never matches
        try:
            return index_of(words, usable)
        except QueryError as error:
            raise error.at(build.node.id) from None


@is_link(LookupSpec)
class Lookup(Link):
    """The pass writes down the table's row of every event, and columns are read from there."""

    scratch = 1

    def __init__(self, build: Build) -> None:
        target = build.outputs[Port.MAIN]
        self._table = StaticTable(build)
        self._fields = {
            name: (theirs, target.field(name)) for name, theirs in self._table.spec.columns if name in target
        }
        self.chooses = not self._table.spec.left

    def choose(self, builder: KernelBuilder, scratch: LinkScratch) -> str:
        row, rows = self._table.row(builder)
        builder.lines.append(f"{scratch.local(builder, 0)}[k] = {row}")
        return f"{row} < {rows}"

    def computed(self, scratch: LinkScratch) -> Mapping[str, Computed]:
        return {name: self._reading(scratch, *column) for name, column in self._fields.items()}

    def _reading(self, scratch: LinkScratch, theirs: str, field: Field) -> Computed:
        def emit(builder: KernelBuilder) -> Code:
            values, nulls = self._table.column(builder, theirs, field)
            row = builder.assign(f"uint64({scratch.local(builder, 0)}[k])")
            null = None if nulls is None else builder.assign(f"{nulls}[{row}]")
            return Code(builder.assign(f"{values}[{row}]"), null, field.dtype)

        return emit


def key_words(data: NDArray[Any]) -> NDArray[np.int64]:
    """A key column as int64: equal words are equal keys, also for NaN and -0.0."""
    if data.dtype.kind != "f":
        return data.astype(np.int64)
    clean = np.where(np.isnan(data), np.array(np.nan, data.dtype), data + data.dtype.type(0))
    return clean.view(np.int64 if data.dtype.itemsize == 8 else np.uint32).astype(np.int64)


def _table_column(table: pa.Table, name: str, build: Build) -> TableColumn:
    chunked = table[name]
    dtype = data_type(chunked.type)
    assert dtype is not None
    array: Any = pa.concat_arrays(chunked.chunks) if chunked.num_chunks else pa.array([], chunked.type)
    return numpy_from_arrow(array, Field(name, dtype, True), build.strings)


def _word(key: Code) -> str:
    if key.dtype.is_float:
        return f"canonical_f{key.dtype.numpy.itemsize * 8}({key.value})"
    return f"int64({key.value})"
