"""The conditions of a pattern as kernels: bits for what an event says alone, a function for the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from penstock.cep.patterns.addresses import CONDITION
from penstock.cep.patterns.references import BoundBuilder
from penstock.compiled.cache import Kernel, compile_callback, compile_kernel
from penstock.kernels.builder import HEADER, KernelBuilder
from penstock.kernels.conditions import is_true
from penstock.kernels.parameters import Parameters, column_types
from penstock.kernels.rows import indented
from penstock.memory.layout import Columns, Layout
from penstock.memory.strings import StringPool
from penstock.query.expr import Expr, Logic, col
from penstock.query.patterns.bound import bound_in, rewritten
from penstock.query.patterns.patterns import Event

Ints = NDArray[np.int64]

INTS = types.Array(types.int64, 1, "C")
MATRIX = types.Array(types.int64, 2, "C")


class EventMasks:
    """What the events of a pattern ask of an event alone, compiled for the columns of one layout."""

    def __init__(self, events: tuple[Event, ...], layout: Layout, strings: StringPool) -> None:
        self._layout, self._strings = layout, strings
        self._all = (1 << len(events)) - 1
        self._kernel, self._arguments = self._mask_kernel(_terms_of(events, bound=False))

    def __call__(self, columns: Columns, count: int) -> Ints:
        """By event of the stream: the events of the pattern that it could be, as bits."""
        masks = np.empty(count, np.int64)
        self._kernel(columns, count, masks, *self._arguments())
        return masks

    def _mask_kernel(self, local: list[tuple[int, Expr]]) -> tuple[Kernel, Callable[[], Any]]:
        builder = KernelBuilder(self._layout, self._strings)
        everything = builder.parameters.add_int(self._all)
        body: list[str] = []
        for number, term in local:
            holds = is_true(builder, builder.emit(term))
            body.append(f"if not {holds}:")
            body.append(f"    mask &= ~(int64(1) << int64({number}))")
        lines = [
            "def match_masks(inp, count, masks, ints, floats, tables):",
            *indented([*builder.preamble(), "for j in range(count):"]),
            *indented(["k = uint64(j)", f"mask = ints[{everything}]", *builder.lines, *body], 2),
            *indented(["masks[k] = mask"], 2),
        ]
        signature = types.void(
            column_types(self._layout.dtypes), types.int64, INTS, *builder.parameters.types
        )
        kernel = compile_kernel("match_masks", HEADER + "\n\n" + "\n".join(lines) + "\n", signature)
        return kernel, builder.parameters.arguments


class Conditions:
    """What the events of a pattern ask of events that a run has bound, compiled for one layout."""

    def __init__(self, events: tuple[Event, ...], layout: Layout, strings: StringPool) -> None:
        self.bound = _terms_of(events, bound=True)
        self._layout, self._strings = layout, strings
        self._numbers = {event.name: number for number, event in enumerate(events)}
        self._parameters = Parameters(strings)
        self.function = self._compiled()
        self.mask = sum(1 << number for number in {number for number, _ in self.bound})

    def context(self, nodes: Ints, columns: Columns) -> tuple[Ints, Any]:
        """The addresses of all that conditions on earlier events read, and what must outlive their use."""
        ints, floats, tables = self._parameters.arguments()
        arrays = (nodes, *columns, ints, floats, *tables)
        return np.array([array.ctypes.data for array in arrays], np.int64), arrays

    def _compiled(self) -> int:
        """The address of the function that evaluates conditions on earlier events; 0 if there are none."""
        if not self.bound:
            return 0
        numbers = list(dict.fromkeys(number for number, _ in self.bound))
        # All are written before the parameters are asked for: those know only what was added before.
        written = [self._written([term for one, term in self.bound if one == number]) for number in numbers]
        head = self._unpacked()
        functions: list[str] = []
        calls: list[str] = []
        for number, (preamble, body) in zip(numbers, written, strict=True):
            functions += ['@njit(error_model="numpy")', f"def bound_{number}(row, node, context):"]
            functions += indented([*head, *preamble, "k = uint64(row)", *body])
            calls += [f"if event == {number}:", f"    return bound_{number}(row, node, context)"]
        imports = "at_bool, at_float32, at_float64, at_int32, at_int64, at_uint8, matrix_at"
        lines = [
            "from numba import njit",
            f"from penstock.cep.patterns.addresses import {imports}",
            *functions,
            "def match_condition(event, row, node, context):",
            *indented([*calls, "return int64(1)"]),
        ]
        source = HEADER + "\n" + "\n".join(lines) + "\n"
        return compile_callback("match_condition", source, CONDITION)

    def _written(self, terms: list[Expr]) -> tuple[list[str], list[str]]:
        """The preamble and the body of the function of one event."""
        references = [one for term in terms for one in bound_in(term)]
        builder = BoundBuilder(self._layout, self._strings, references, self._numbers, self._parameters)
        results = [
            is_true(builder, builder.emit(rewritten(term, lambda one: col(one.field_name)))) for term in terms
        ]
        walk = builder.walk()
        return builder.preamble(), [*walk, *builder.lines, f"return int64({' & '.join(results)})"]

    def _unpacked(self) -> list[str]:
        """Statements that make arrays of addresses, in the order of ``context``."""
        columns = [_at(dtype, place) for place, dtype in enumerate(self._layout.dtypes, 1)]
        behind = len(columns) + 1
        given = self._parameters.arguments()[2]
        tables = [_at(table.dtype, place) for place, table in enumerate(given, behind + 2)]
        return [
            "at_addresses = at_int64(context)",
            "nodes = matrix_at(at_addresses[0])",
            f"inp = ({', '.join(columns)},)",
            f"ints, floats = at_int64(at_addresses[{behind}]), at_float64(at_addresses[{behind + 1}])",
            f"tables = ({', '.join(tables)},)",
        ]


def _at(dtype: np.dtype[Any], place: int) -> str:
    return f"at_{dtype.name}(at_addresses[{place}])"


def _terms_of(events: tuple[Event, ...], *, bound: bool) -> list[tuple[int, Expr]]:
    """The terms of all conditions that refer to bound events, or those that do not, by the event's number."""
    return [
        (number, term)
        for number, event in enumerate(events)
        for term in _terms(event.condition)
        if any(True for _ in bound_in(term)) == bound
    ]


def _terms(condition: Expr | None) -> list[Expr]:
    """The parts of a conjunction: the whole is true exactly if each of them is."""
    if condition is None:
        return []
    if isinstance(condition, Logic) and condition.op == "and":
        return [*_terms(condition.left), *_terms(condition.right)]
    return [condition]
