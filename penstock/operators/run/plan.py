"""Which columns every output carries: those that someone downstream reads, and no others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from penstock.memory.layout import LATE, ORDER, SUB, SYSTEM_TYPES, TIME, Layout
from penstock.query.failures import ERROR, STEP
from penstock.query.graph import Graph, Input, Port, QueryVertex
from penstock.query.steps import SourceSpec
from penstock.query.steps.spec import Order, Spec
from penstock.query.types import Field, Schema


@dataclass(frozen=True)
class LayoutPlan:
    """The layouts of all outputs that are read."""

    layouts: dict[tuple[str, Port], Layout]

    def inputs(self, node: QueryVertex) -> tuple[Layout, ...]:
        return tuple(self.layouts[source.node, source.port] for source in node.inputs)

    def outputs(self, node: QueryVertex) -> dict[Port, Layout]:
        return {port: self.layouts[node.id, port] for port in Port if (node.id, port) in self.layouts}


def plan(graph: Graph, *, prune_sources: bool = True) -> LayoutPlan:
    """Decides the layout of every output, from the sinks upwards."""
    available = _available(graph)
    demands: dict[tuple[str, Port], set[str]] = {}
    for node in reversed(graph.nodes):
        main = demands.get((node.id, Port.MAIN), set())
        if isinstance(node.spec, SourceSpec) and main:
            main |= {node.spec.event_time} if prune_sources else set(node.schema.names)
        late = [demands.get((node.id, port), set()) for port in (Port.LATE, Port.LATE_RIGHT)]
        for index, source in enumerate(node.inputs):
            needed = {*node.spec.reads(index, main, graph.input_schema(source))}
            needed |= late[index] if index < 2 else set()
            needed |= demands.get((node.id, Port.FAILED), set())
            origin = (source.node, source.port)
            if TIME in needed:
                needed = (needed - {TIME}) | {time_of(graph, source)}
            needed &= available[origin]
            if not needed:  # someone who reads constants only still has to know how many events there are
                needed = {graph.input_schema(source).names[0]}
            demands.setdefault(origin, set()).update(needed)
    layouts = {}
    for (node_id, port), names in demands.items():
        source = Input(node_id, port)
        layouts[node_id, port] = _layout(graph.input_schema(source), names, time_of(graph, source))
    return LayoutPlan(layouts)


def time_of(graph: Graph, source: Input) -> str:
    """The name of the column that holds the event time on that output."""
    node = graph[source.node]
    if source.port is Port.LATE:
        return time_of(graph, node.inputs[0])
    if source.port is Port.LATE_RIGHT:
        return time_of(graph, node.inputs[1])
    if source.port is Port.FAILED:
        return TIME if node.spec.has_timers else time_of(graph, node.inputs[0])
    return node.time_column or TIME


def _layout(schema: Schema, names: set[str], time: str) -> Layout:
    fields = [field for field in schema if field.name in names]
    fields += [Field(name, dtype) for name, dtype in SYSTEM_TYPES.items() if name in names]
    return Layout(fields, time if time in names else None)


def _available(graph: Graph) -> dict[tuple[str, Port], frozenset[str]]:
    """Per output, the columns that exist there: the visible ones and the system's."""
    result: dict[tuple[str, Port], frozenset[str]] = {}
    for node in graph.nodes:
        spec = node.spec
        above = [result[source.node, source.port] for source in node.inputs]
        system = {TIME, ORDER}
        if isinstance(spec, SourceSpec):
            if not spec.source.ordered:
                system.add(LATE)
        elif _tells_apart_by_sub(spec, any(SUB in names for names in above)):
            system.add(SUB)
        hands_late_on = not spec.timed and not spec.is_routed
        if hands_late_on and any(LATE in names for names in above):
            system.add(LATE)
        result[node.id, Port.MAIN] = frozenset(node.schema.names) | system
        result[node.id, Port.BAD] = frozenset(graph.input_schema(Input(node.id, Port.BAD)).names)
        if above:
            result[node.id, Port.LATE], result[node.id, Port.LATE_RIGHT] = above[0], above[-1]
        if spec.sets_aside:
            known = above[0] | {ERROR.name, STEP.name, TIME, ORDER}
            # Timers that failed are told apart by ``$sub``, and no event that a process function saw is late.
            result[node.id, Port.FAILED] = (known - {LATE}) | {SUB} if spec.has_timers else known
    return result


def _tells_apart_by_sub(spec: Spec, above: bool) -> bool:
    """Whether rows of a step need ``$sub``; ``above`` says whether the events that it takes do."""
    match spec.order:
        case Order.KEPT:
            return above
        case Order.MULTIPLIED:
            return True
        case Order.HASHED:
            return False
        case _ as order:
            assert_never(order)
