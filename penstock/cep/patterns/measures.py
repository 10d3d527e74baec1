"""Measures: the columns of a match, computed from the events that it has bound."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from penstock.cep.patterns.conditions import INTS, MATRIX
from penstock.cep.patterns.machine_layout import (
    M_END,
    M_NODE,
    M_ORDER,
    M_SEQ,
    M_START,
    M_SUB,
    M_TIME,
    N_EVENT,
    N_PARENT,
)
from penstock.cep.patterns.references import BoundBuilder
from penstock.compiled.cache import Kernel, compile_kernel
from penstock.kernels.builder import HEADER
from penstock.kernels.parameters import column_types
from penstock.kernels.rows import indented, store, unpack
from penstock.memory.layout import ORDER, SUB, TIME, Columns, Layout
from penstock.memory.strings import StringPool
from penstock.query.expr import col
from penstock.query.patterns.bound import bound_in, rewritten
from penstock.query.patterns.by_start import START
from penstock.query.patterns.matching import EVENT_NAME
from penstock.query.patterns.patterns import Event
from penstock.query.steps import MatchSpec

Ints = NDArray[np.int64]


class Measures:
    """Makes rows of the output from matches: one each, or one per bound event, as of that event."""

    def __init__(
        self,
        spec: MatchSpec,
        events: tuple[Event, ...],
        layout: Layout,
        target: Layout,
        strings: StringPool,
    ) -> None:
        self._target, self._strings, self._all_rows = target, strings, spec.all_rows
        self._names = [event.name for event in events]
        columns = {**{key: col(key) for key in spec.keys}, **dict(spec.columns)}
        self._computed = Layout([field for field in target.fields if field.name in columns])
        references = [one for field in self._computed.fields for one in bound_in(columns[field.name])]
        numbers = {name: number for number, name in enumerate(self._names)}
        builder = BoundBuilder(layout, strings, references, numbers)
        stores: list[str] = []
        for field in self._computed.fields:
            expr = rewritten(columns[field.name], lambda one: col(one.field_name))
            stores += store(self._computed, field.name, builder.emit(expr, field.dtype))
        self._arguments = builder.parameters.arguments
        self._kernel = _kernel(builder, self._computed, stores) if self._computed.fields else None

    def rows(self, matches: Ints, nodes: Ints, columns: Columns) -> Columns:
        """The rows of matches, in the order of the matches."""
        at, numbers = matches[:, M_NODE], np.arange(len(matches))
        subs = matches[:, M_SUB]
        if self._all_rows:
            at, numbers, places = _chains(at, nodes)
            subs = subs[numbers] + 2 * places
        at = np.ascontiguousarray(at)
        computed = self._computed.allocate(len(at))
        if self._kernel is not None:
            self._kernel(columns, nodes, at, computed, *self._arguments())
        known: dict[str, NDArray[Any]] = {
            "match_start": matches[numbers, M_START],
            "match_end": matches[numbers, M_END],
            TIME: matches[numbers, M_TIME],
            ORDER: matches[numbers, M_ORDER],
            SUB: subs,
            START: matches[numbers, M_SEQ],
        }
        if self._all_rows and EVENT_NAME in self._target:
            codes = np.array([self._strings.code(name) for name in self._names], np.int32)
            known[EVENT_NAME] = codes[nodes[at, N_EVENT]]
        made: list[NDArray[Any]] = []
        for field in self._target.fields:
            if field.name in self._computed:
                made.append(computed[self._computed.data(field.name)])
                nulls = self._computed.nulls(field.name)
                made += [] if nulls is None else [computed[nulls]]
            else:
                made.append(np.ascontiguousarray(known[field.name]))
        return tuple(made)


def _chains(ends: Ints, nodes: Ints) -> tuple[Ints, Ints, Ints]:
    """All bindings of matches in order: the binding, the number of its match, its place in it."""
    made: list[tuple[int, int, int]] = []
    parents = nodes[:, N_PARENT]
    for number, end in enumerate(ends.tolist()):
        chain = []
        while end >= 0:
            chain.append(end)
            end = int(parents[end])
        made += [(node, number, place) for place, node in enumerate(reversed(chain))]
    flat = np.array(made, np.int64).reshape(-1, 3)
    return flat[:, 0], flat[:, 1], flat[:, 2]


def _kernel(builder: BoundBuilder, target: Layout, stores: list[str]) -> Kernel:
    walk = builder.walk()
    lines = [
        "def match_rows(inp, nodes, ends, out, ints, floats, tables):",
        *indented([*builder.preamble(), *unpack(target), "for j in range(len(ends)):"]),
        *indented(["o = uint64(j)", "node = ends[o]", "k = uint64(nodes[node, 0])"], 2),
        *indented([*walk, *builder.lines, *stores], 2),
    ]
    signature = types.void(
        column_types(builder.layout.dtypes),
        MATRIX,
        INTS,
        column_types(target.dtypes),
        *builder.parameters.types,
    )
    return compile_kernel("match_rows", HEADER + "\n\n" + "\n".join(lines) + "\n", signature)
