"""Columns that nobody has written: a kernel computes them from those that it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.kernels.builder import KernelBuilder
from penstock.kernels.code import Code
from penstock.memory.layout import Layout

#: Emits a column's value with the builder of the columns before.
Computed = Callable[[KernelBuilder], Code]


class ViewBuilder(KernelBuilder):
    """Writes code over events of ``layout``, which a step would make of those of the builder ``before``.

    The ``computed`` columns are emitted by what they are computed by, all others are those before. Lines,
    names and parameters are shared with ``before``.
    """

    def __init__(self, before: KernelBuilder, layout: Layout, computed: Mapping[str, Computed]) -> None:
        super().__init__(layout, before.strings, parameters=before.parameters)
        self._before = before
        self._computed = computed
        self.lines = before.lines

    @property
    def inputs(self) -> Layout:
        return self._before.inputs

    @property
    def temporaries(self) -> int:
        return self._before.temporaries

    def preamble(self) -> list[str]:
        return self._before.preamble()

    def assign(self, value: str) -> str:
        return self._before.assign(value)

    def _local(self, name: str, value: str) -> str:
        return self._before._local(name, value)

    def _stored(self, name: str) -> Code:
        compute = self._computed.get(name)
        code = self._before.load(name) if compute is None else compute(self._before)
        field = self.layout.field(name)
        # What the column's mask would say: a column without one has no nulls, whatever was computed.
        return Code(code.value, code.null or "False" if field.nullable else None, field.dtype)
