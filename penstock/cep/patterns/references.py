"""References to bound events in compiled code: a walk back through the bindings of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.cep.patterns.machine_layout import N_EVENT, N_PARENT, N_ROW
from penstock.kernels.builder import KernelBuilder
from penstock.kernels.code import SCALAR, ZERO, Code
from penstock.kernels.conditions import compare
from penstock.kernels.parameters import Parameters
from penstock.kernels.rows import indented
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.patterns.bound import Bound
from penstock.query.patterns.matching import bound_type
from penstock.query.types import DataType, Field, Schema


class BoundBuilder(KernelBuilder):
    """Writes expressions over event ``k`` and over what a run has bound: ``@`` columns stand for references.

    ``walk()`` must run before ``lines``; it starts at the binding ``node`` of the matrix ``nodes``.
    """

    def __init__(
        self,
        layout: Layout,
        strings: StringPool,
        references: Iterable[Bound],
        numbers: Mapping[str, int],
        parameters: Parameters | None = None,
    ) -> None:
        super().__init__(layout, strings, parameters=parameters)
        self._numbers = numbers
        self._references = {one.field_name: one for one in references}
        self._names = {name: f"b{number}" for number, name in enumerate(self._references)}
        self._fields = {name: bound_type(one, layout.schema, True) for name, one in self._references.items()}
        self.schema = Schema([*layout.fields, *self._fields.values()])

    def walk(self) -> list[str]:
        """Statements that look at all bindings, the last first."""
        if not self._references:
            return []
        before: list[str] = []
        inside: list[str] = []
        after: list[str] = []
        for name, one in self._references.items():
            parts = self._place(one, self._names[name], self._fields[name])
            before += parts[0]
            if one.event is None:
                inside += parts[1]
            else:
                number = self.constant(self._numbers[one.event], DataType.INT64)
                inside += [f"if bound_event == {number}:", *indented(parts[1])]
            after += parts[2]
        loop = [
            f"bound_event = nodes[bound, {N_EVENT}]",
            f"at = uint64(nodes[bound, {N_ROW}])",
            *inside,
            f"bound = nodes[bound, {N_PARENT}]",
        ]
        return [*before, "bound = node", "while bound >= 0:", *indented(loop), *after]

    def _load(self, name: str) -> Code:
        one = self._references.get(name)
        if one is None:
            return super()._load(name)
        field, local = self._fields[name], self._names[name]
        null = None if one.function == "count" else f"{local}_null"
        return Code(f"{local}_value", null, field.dtype)

    def _place(self, one: Bound, local: str, field: Field) -> tuple[list[str], list[str], list[str]]:
        """What to do before the walk, at a binding of that event, and after the walk."""
        value = f"{local}_value"
        if one.function == "count":
            return [f"{value} = int64(0)"], [f"{value} += 1"], []
        assert one.column is not None
        data = self.column(self.layout.data(one.column))
        place = self.layout.nulls(one.column)
        nulls = None if place is None else self.column(place)
        if one.function in ("last", "first"):
            row = f"{local}_row"
            found = [f"{row} = int64(at)"]
            if one.function == "last":  # the walk meets it first
                found = [f"if {row} < 0:", *indented(found)]
            after = [
                f"{local}_at = uint64(max({row}, 0))",
                f"{value} = {data}[{local}_at]",
                f"{local}_null = {row} < 0" + ("" if nulls is None else f" or {nulls}[{local}_at]"),
            ]
            return [f"{row} = int64(-1)"], found, after
        before = [f"{value} = {ZERO[field.dtype]}", f"{local}_n = int64(0)"]
        after = [f"{local}_null = {local}_n == 0"]
        read = f"{SCALAR[field.dtype]}({data}[at])"
        if one.function in ("sum", "avg"):
            found = [f"{value} += {read}"]
            if one.function == "avg":
                after.append(f"{value} = {value} / max({local}_n, 1)")
        else:
            better = compare("<" if one.function == "min" else ">", f"{local}_read", value, field.dtype)
            found = [
                f"{local}_read = {read}",
                f"if {local}_n == 0 or ({better}):",
                f"    {value} = {local}_read",
            ]
        found.append(f"{local}_n += 1")
        if nulls is not None:
            found = [f"if not {nulls}[at]:", *indented(found)]
        return before, found, after
