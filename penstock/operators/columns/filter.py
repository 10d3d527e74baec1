"""Filter: the events for which a condition is true; null counts as no."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numba import types

from penstock.compiled.cache import Kernel, compile_kernel
from penstock.kernels.builder import HEADER, KernelBuilder
from penstock.kernels.conditions import is_true
from penstock.kernels.parameters import column_types
from penstock.kernels.rows import indented, unpack
from penstock.memory.edges import Outlet
from penstock.memory.layout import TIME, Columns, Layout
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.registry import runs
from penstock.query.graph import Port
from penstock.query.steps import FilterSpec

_LOW32 = (1 << 32) - 1


@runs(FilterSpec)
class Filter(Operator):
    """Two passes over a block: which events stay, without a branch; then column by column their values."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        spec = build.node.spec_as(FilterSpec)
        self._chosen = np.zeros(0, np.uint32)  # scratch: which events of the block stay
        target = build.outputs.get(Port.MAIN)
        if target is not None:
            builder = KernelBuilder(build.inputs[0], build.strings)
            predicate = is_true(builder, builder.emit(spec.predicate))
            self._kernel = _filter_kernel(builder, predicate, target)
            self._arguments = builder.parameters.arguments

    def attach(self, outlets: dict[Port, Outlet]) -> None:
        super().attach(outlets)
        if self.out is not None:
            self._chosen = np.zeros(self.out.pool.shape.block_events, np.uint32)

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        out = self.out
        if out is None:
            return stop - start
        kernel, chosen = self._kernel, self._chosen
        ints, floats, tables = self._arguments()
        position = start
        while position < stop:
            free = out.reserve()
            if free == 0:
                break
            result = kernel(
                columns, position, stop, out.columns, out.position, free, chosen, ints, floats, tables
            )
            out.commit(result & _LOW32)
            position += result >> 32
        return position - start


def _filter_kernel(builder: KernelBuilder, predicate: str, target: Layout) -> Kernel:
    """Takes events until all are taken or ``free`` stay; returns taken << 32 | stayed."""
    choose = [
        "k = uint64(j)",
        *builder.lines,
        "chosen[m] = j",
        f"m += uint64({predicate})",
    ]
    copies: list[str] = []
    for source, place in copied_columns(builder.layout, target):
        value = "False" if source is None else f"source_{place}[uint64(chosen[uint64(j)])]"
        copies += [] if source is None else [f"source_{place} = inp[{source}]"]
        copies += ["for j in range(int64(m)):", f"    out_{place}[uint64(pos + j)] = {value}"]
    lines = [
        "def filter_rows(inp, start, stop, out, pos, free, chosen, ints, floats, tables):",
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
    signature = types.int64(
        column_types(builder.layout.dtypes),
        types.int64,
        types.int64,
        column_types(target.dtypes),
        types.int64,
        types.int64,
        types.Array(types.uint32, 1, "C"),
        *builder.parameters.types,
    )
    return compile_kernel("filter_rows", HEADER + "\n\n" + "\n".join(lines) + "\n", signature)


def copied_columns(
    source: Layout, target: Layout, names: Iterable[str] | None = None
) -> list[tuple[int | None, int]]:
    """For each array of ``target`` the array of ``source`` that it copies; None for a mask that is all False.

    Fields go by name; ``$time`` is whatever holds the event time; an absent ``$sub`` or ``$late`` is zeros.
    """
    pairs: list[tuple[int | None, int]] = []
    for wanted in target.names if names is None else names:
        name = wanted
        if name == TIME and TIME not in source and source.time is not None:
            name = source.time
        pairs.append((source.data(name) if name in source else None, target.data(wanted)))
        nulls = target.nulls(wanted)
        if nulls is not None:
            pairs.append((source.nulls(name), nulls))
    return pairs
