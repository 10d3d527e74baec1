"""Steps without state, one or several in a row, as one operator that writes the last one's columns only."""

from __future__ import annotations

from typing import Any

from numba import types

from penstock.compiled.cache import Kernel, compile_kernel
from penstock.kernels.builder import HEADER
from penstock.kernels.parameters import column_types
from penstock.kernels.rows import indented, store, unpack
from penstock.memory.layout import Columns, Layout
from penstock.operators.columns.filter import Filter
from penstock.operators.columns.front import Front
from penstock.operators.columns.lookup import Lookup
from penstock.operators.columns.select import Select
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.registry import runs
from penstock.query.graph import Port
from penstock.query.steps import FilterSpec, LookupSpec, SelectSpec

__all__ = ["Filter", "Lookup", "RowSteps", "Select"]


@runs(FilterSpec)
@runs(SelectSpec)
@runs(LookupSpec)
class RowSteps(Operator):
    """Which events come through first, then what they look like behind the last step."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        target = build.outputs.get(Port.MAIN)
        if target is not None:
            self.front = Front((*build.front, build), target)
            self._kernel, self._arguments = _writing(self.front, target)

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        out, front = self.out, self.front
        if out is None or front is None:
            return stop - start
        position, last = front.select(columns, start, stop)
        arguments = self._arguments()
        while position < last:
            free = out.reserve()
            if free == 0:
                return front.taken_until(columns, start, position) - start
            until = min(last, position + free)
            self._kernel(columns, position, until, out.columns, out.position, *arguments)
            out.commit(until - position)
            position = until
        return stop - start


def _writing(front: Front, target: Layout) -> tuple[Kernel, Any]:
    """The kernel that writes what has come through: all expressions in one loop, since they may share parts,
    and column by column what is just read, which is fastest."""
    expressions = [name for name in target.names if front.computes(name)]
    read = [[name] for name in target.names if name not in expressions]
    builder, preamble, loops = front.builder(), dict[str, None](), list[str]()
    for names in [expressions, *read] if expressions else read:
        builder = front.builder(builder)
        event = front.event(builder, "uint64(j)")
        body = [line for name in names for line in store(target, name, builder.load(name))]
        loops.append("for j in range(start, stop):")
        loops += indented([f"k = {event}", "o = uint64(pos + j)", *builder.lines, *body])
        preamble |= dict.fromkeys(builder.preamble())
    lines = [
        "def write_rows(inp, start, stop, out, pos, ints, floats, tables):",
        *indented([*preamble, *unpack(target), "pos -= start", *loops, "return int64(0)"]),
    ]
    signature = types.int64(
        column_types(builder.inputs.dtypes),
        types.int64,
        types.int64,
        column_types(target.dtypes),
        types.int64,
        *builder.parameters.types,
    )
    source = HEADER + "\n\n" + "\n".join(lines) + "\n"
    return compile_kernel("write_rows", source, signature), builder.parameters.arguments
