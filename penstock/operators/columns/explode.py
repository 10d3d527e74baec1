"""Explode: one event in; out, one event for each of a fixed number of rows whose condition holds."""

from __future__ import annotations

from penstock.kernels.builder import KernelBuilder
from penstock.kernels.code import Code
from penstock.kernels.conditions import is_true
from penstock.kernels.rows import row_kernel, store, system_fields
from penstock.memory.layout import SUB, Columns
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.registry import runs
from penstock.query.graph import Port
from penstock.query.steps import ExplodeSpec
from penstock.query.types import DataType


@runs(ExplodeSpec)
class Explode(Operator):
    """All rows in one kernel, one event after the other: rows keep the order of events, then of the rows."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        spec = build.node.spec_as(ExplodeSpec)
        self.fan_out = len(spec.rows)
        target = build.outputs.get(Port.MAIN)
        if target is not None:
            builder = KernelBuilder(build.inputs[0], build.strings)
            body: list[str] = []
            for index, (row, condition) in enumerate(zip(spec.rows, spec.conditions, strict=True)):
                write: list[str] = []
                for name, expr in row:
                    if name in target:
                        write += store(target, name, builder.emit(expr, target.field(name).dtype))
                for name in system_fields(target, but_sub=True):
                    write += store(target, name, builder.load(name))
                if SUB in target:
                    sub = f"{builder.load(SUB).value} * {len(spec.rows)} + {index}"
                    write += store(target, SUB, Code(sub, None, DataType.INT64))
                holds = "True" if condition is None else is_true(builder, builder.emit(condition))
                # written in any case, and kept if the condition holds: the room was asked for
                body += [*write, f"o += uint64({holds})"]
            self._kernel = row_kernel("explode_rows", builder, target, body)
            self._arguments = builder.parameters.arguments

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        out = self.out
        if out is None:
            return stop - start
        ints, floats, tables = self._arguments()
        position, fan_out = start, self.fan_out
        while position < stop:
            free = out.reserve(fan_out)
            if free == 0:
                break
            until = min(stop, position + free // fan_out)
            out.commit(
                self._kernel(columns, position, until, out.columns, out.position, ints, floats, tables)
            )
            position = until
        return position - start
