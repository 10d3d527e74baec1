"""Lookup: join with a static table on equal keys; its values are gathered by row number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numba import types
from numpy.typing import NDArray

from penstock.compiled.cache import Kernel, compile_kernel
from penstock.kernels.builder import HEADER, KernelBuilder
from penstock.kernels.code import Code, either
from penstock.kernels.parameters import column_types
from penstock.kernels.rows import indented, unpack
from penstock.memory.arrow import data_type, numpy_from_arrow
from penstock.memory.edges import Outlet
from penstock.memory.layout import Columns, Layout
from penstock.operators.columns.filter import copied_columns
from penstock.operators.columns.table_index import DirectIndex, HashIndex, index_of
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.registry import runs
from penstock.query.errors import QueryError
from penstock.query.graph import Port
from penstock.query.steps import LookupSpec
from penstock.query.types import DataType, Field

#: A column of the table: its data, and where it is null (None: nowhere).
TableColumn = tuple[NDArray[Any], NDArray[np.bool_] | None]

_LOW32 = (1 << 32) - 1


@runs(LookupSpec)
class Lookup(Operator):
    """Two passes over a block: the table's row for every event; then all columns, one after the other.

    Row number ``rows`` (one past the last) stands for "no match": its values are null.
    """

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        spec = build.node.spec_as(LookupSpec)
        self._chosen = np.zeros(0, np.uint32)  # scratch: which events of the block stay
        self._matched = np.zeros(0, np.uint32)  # scratch: and the table's row of each
        target = build.outputs.get(Port.MAIN)
        if target is not None:
            builder = KernelBuilder(build.inputs[0], build.strings)
            names = [theirs for _, theirs in (*spec.on, *spec.columns)]
            values = {name: _table_column(spec.table, name, build) for name in names}
            self._kernel = _lookup_kernel(builder, spec, target, self._index(build, spec, values), values)
            self._arguments = builder.parameters.arguments

    def attach(self, outlets: dict[Port, Outlet]) -> None:
        super().attach(outlets)
        if self.out is not None:
            self._chosen = np.zeros(self.out.pool.shape.block_events, np.uint32)
            self._matched = np.zeros(self.out.pool.shape.block_events, np.uint32)

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        out = self.out
        if out is None:
            return stop - start
        kernel, chosen, matched = self._kernel, self._chosen, self._matched
        ints, floats, tables = self._arguments()
        position = start
        while position < stop:
            free = out.reserve()
            if free == 0:
                break
            result = kernel(
                columns,
                position,
                stop,
                out.columns,
                out.position,
                free,
                chosen,
                matched,
                ints,
                floats,
                tables,
            )
            out.commit(result & _LOW32)
            position += result >> 32
        return position - start

    def _index(
        self, build: Build, spec: LookupSpec, values: dict[str, TableColumn]
    ) -> DirectIndex | HashIndex:
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
            data, nulls = values[theirs]
            words.append(key_words(data))
            if nulls is not None:
                usable &= ~nulls  # null never matches
        try:
            return index_of(words, usable)
        except QueryError as error:
            raise error.at(build.node.id) from None


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


def _lookup_kernel(
    builder: KernelBuilder,
    spec: LookupSpec,
    target: Layout,
    index: DirectIndex | HashIndex,
    values: dict[str, TableColumn],
) -> Kernel:
    """Takes events until all are taken or ``free`` stay; returns taken << 32 | stayed."""
    keys = [builder.load(ours) for ours, _ in spec.on]
    row = index.write(builder, [_word(key) for key in keys])
    rows = builder.constant(index.rows, DataType.INT64)
    null = either(*(key.null for key in keys))
    if null is not None:
        row = builder.assign(f"{rows} if {null} else int64({row})")
    choose = [
        "k = uint64(j)",
        *builder.lines,
        "chosen[m] = j",
        f"matched[m] = {row}",
        "m += uint64(1)" if spec.left else f"m += uint64({row} < {rows})",
    ]
    copies = _copies(builder, spec, target, values)
    lines = [
        "def lookup_rows(inp, start, stop, out, pos, free, chosen, matched, ints, floats, tables):",
        *indented([*builder.preamble(), *unpack(target), "m = uint64(0)", "taken = start"]),
        # never more events at once than there is room for, so no store needs a check
        *indented(
            ["while taken < stop and int64(m) < free:", "    until = min(stop, taken + free - int64(m))"]
        ),
        *indented(["for j in range(taken, until):"], 2),
        *indented(choose, 3),
        *indented(["taken = until"], 2),
        *indented([*copies, "return ((taken - start) << 32) | int64(m)"]),
    ]
    scratch = types.Array(types.uint32, 1, "C")
    signature = types.int64(
        column_types(builder.layout.dtypes),
        types.int64,
        types.int64,
        column_types(target.dtypes),
        types.int64,
        types.int64,
        scratch,
        scratch,
        *builder.parameters.types,
    )
    return compile_kernel("lookup_rows", HEADER + "\n\n" + "\n".join(lines) + "\n", signature)


def _copies(
    builder: KernelBuilder, spec: LookupSpec, target: Layout, values: dict[str, TableColumn]
) -> list[str]:
    """The second pass: every array of the output from the stream's events or from the table's rows."""
    gathered: dict[int, str] = {}
    for name, theirs in spec.columns:
        if name in target:
            data, nulls = values[theirs]
            numbers = np.append(data, data.dtype.type(0)).astype(target.field(name).dtype.numpy)
            gathered[target.data(name)] = builder.table(builder.parameters.add_table(numbers))
            mask = target.nulls(name)
            if mask is not None:
                known = np.zeros(len(data), np.bool_) if nulls is None else nulls
                gathered[mask] = builder.table(builder.parameters.add_table(np.append(known, True)))
    copies: list[str] = []
    for place, table in gathered.items():
        value = f"{table}[uint64(matched[uint64(j)])]"
        copies += ["for j in range(int64(m)):", f"    out_{place}[uint64(pos + j)] = {value}"]
    names = {name for name, _ in spec.columns}
    kept = [name for name in target.names if name not in names]
    for source, place in copied_columns(builder.layout, target, kept):
        value = "False" if source is None else f"source_{place}[uint64(chosen[uint64(j)])]"
        copies += [] if source is None else [f"source_{place} = inp[{source}]"]
        copies += ["for j in range(int64(m)):", f"    out_{place}[uint64(pos + j)] = {value}"]
    return copies


def _word(key: Code) -> str:
    if key.dtype.is_float:
        return f"canonical_f{key.dtype.numpy.itemsize * 8}({key.value})"
    return f"int64({key.value})"
