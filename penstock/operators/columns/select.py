"""Select: one event in, one out, with columns computed from it."""

from __future__ import annotations

from penstock.kernels.builder import KernelBuilder
from penstock.kernels.rows import row_kernel, store, system_fields
from penstock.memory.layout import Columns
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.registry import runs
from penstock.query.graph import Port
from penstock.query.steps import SelectSpec


@runs(SelectSpec)
class Select(Operator):
    """Evaluates its expressions straight into the output block; those that nobody reads are left out."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        spec = build.node.spec_as(SelectSpec)
        target = build.outputs.get(Port.MAIN)
        if target is not None:
            builder = KernelBuilder(build.inputs[0], build.strings)
            body: list[str] = []
            for name, expr in spec.columns:
                if name in target:
                    body += store(target, name, builder.emit(expr, target.field(name).dtype))
            for name in system_fields(target):
                body += store(target, name, builder.load(name))
            self._kernel = row_kernel("select_rows", builder, target, [*body, "o += uint64(1)"])
            self._arguments = builder.parameters.arguments

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        out = self.out
        if out is None:
            return stop - start
        ints, floats, tables = self._arguments()
        position = start
        while position < stop:
            free = out.reserve()
            if free == 0:
                break
            until = min(stop, position + free)
            self._kernel(columns, position, until, out.columns, out.position, ints, floats, tables)
            out.commit(until - position)
            position = until
        return position - start
