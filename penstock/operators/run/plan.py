"""Which columns every output carries: those that someone downstream reads, and no others."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.memory.layout import LATE, ORDER, SUB, SYSTEM_TYPES, TIME, Layout
from penstock.operators.by_start import GIVEN, START
from penstock.operators.run.custom import CustomSpec
from penstock.query.failures import ERROR, STEP
from penstock.query.graph import (
    BatchSpec,
    CoGroupSpec,
    DeduplicateSpec,
    ExplodeSpec,
    FilterSpec,
    FlatMapSpec,
    Graph,
    GroupJoinSpec,
    Input,
    IntervalJoinSpec,
    LookupSpec,
    MatchMergeSpec,
    MatchSetSpec,
    MatchSpec,
    MatchSplitSpec,
    NestedAggregateSpec,
    Node,
    Port,
    ProcessSpec,
    SelectSpec,
    SinkSpec,
    SourceSpec,
    UnionSpec,
    WindowAggregateSpec,
    WindowJoinSpec,
    WindowTopSpec,
    sets_aside,
)
from penstock.query.types import Field, Schema

_STATELESS = (FilterSpec, SelectSpec, ExplodeSpec, FlatMapSpec, BatchSpec, UnionSpec, LookupSpec)
#: Out of these, several events can come that differ in nothing but ``$sub``.
_MULTIPLYING = (
    ExplodeSpec,
    FlatMapSpec,
    BatchSpec,
    ProcessSpec,
    MatchSpec,
    MatchSetSpec,
    CoGroupSpec,
    UnionSpec,
)
#: Their rows are told apart by ``$order`` alone.
_HASHED_ORDER = (
    WindowAggregateSpec,
    NestedAggregateSpec,
    WindowTopSpec,
    WindowJoinSpec,
    IntervalJoinSpec,
    GroupJoinSpec,
)
_ORDER = frozenset((ORDER, SUB))


@dataclass(frozen=True)
class Plan:
    """The layouts of all outputs that are read."""

    layouts: dict[tuple[str, Port], Layout]

    def inputs(self, node: Node) -> tuple[Layout, ...]:
        return tuple(self.layouts[source.node, source.port] for source in node.inputs)

    def outputs(self, node: Node) -> dict[Port, Layout]:
        return {port: self.layouts[node.id, port] for port in Port if (node.id, port) in self.layouts}


def plan(graph: Graph, *, prune_sources: bool = True) -> Plan:
    """Decides the layout of every output, from the sinks upwards."""
    available = _available(graph)
    demands: dict[tuple[str, Port], set[str]] = {}
    for node in reversed(graph.nodes):
        main = demands.get((node.id, Port.MAIN), set())
        if isinstance(node.spec, SourceSpec) and main:
            main |= {node.spec.event_time} if prune_sources else set(node.schema.names)
        late = [demands.get((node.id, port), set()) for port in (Port.LATE, Port.LATE_RIGHT)]
        for index, source in enumerate(node.inputs):
            needed = _needs(graph, node, index, main) | (late[index] if index < 2 else set())
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
    return Plan(layouts)


def time_of(graph: Graph, source: Input) -> str:
    """The name of the column that holds the event time on that output."""
    node = graph[source.node]
    if source.port is Port.LATE:
        return time_of(graph, node.inputs[0])
    if source.port is Port.LATE_RIGHT:
        return time_of(graph, node.inputs[1])
    if source.port is Port.FAILED:
        return TIME if isinstance(node.spec, ProcessSpec) else time_of(graph, node.inputs[0])
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
        elif not isinstance(spec, _HASHED_ORDER) and (
            isinstance(spec, _MULTIPLYING) or any(SUB in names for names in above)
        ):
            system.add(SUB)
        if isinstance(spec, _STATELESS) and any(LATE in names for names in above):
            system.add(LATE)
        result[node.id, Port.MAIN] = frozenset(node.schema.names) | system
        result[node.id, Port.BAD] = frozenset(graph.input_schema(Input(node.id, Port.BAD)).names)
        if above:
            result[node.id, Port.LATE], result[node.id, Port.LATE_RIGHT] = above[0], above[-1]
        if sets_aside(spec):
            known = above[0] | {ERROR.name, STEP.name, TIME, ORDER}
            # Timers that failed are told apart by ``$sub``, and no event that a process function saw is late.
            is_process = isinstance(spec, ProcessSpec)
            result[node.id, Port.FAILED] = (known - {LATE}) | {SUB} if is_process else known
    return result


def _needs(graph: Graph, node: Node, index: int, demanded: set[str]) -> set[str]:
    """What the operator reads of its input ``index`` so that it can make the columns ``demanded``."""
    spec = node.spec
    schema = graph.input_schema(node.inputs[index])
    system = {name for name in demanded if name in SYSTEM_TYPES}
    timed = {TIME, LATE}
    match spec:
        case FilterSpec(predicate):
            return demanded | predicate.columns()
        case SelectSpec(columns):
            return system.union(*(expr.columns() for name, expr in columns if name in demanded))
        case ExplodeSpec(rows, conditions):
            needed = system.union(*(expr.columns() for row in rows for name, expr in row if name in demanded))
            return needed.union(*(condition.columns() for condition in conditions if condition is not None))
        case FlatMapSpec() | BatchSpec():
            return system | set(schema.names)
        case UnionSpec():
            return set(demanded)
        case LookupSpec(_, on, columns, _):
            return (demanded - {name for name, _ in columns}) | {name for name, _ in on}
        case WindowAggregateSpec(keys, _, aggregates):
            needed = timed.union(keys, *(a.columns() for _, a in aggregates))
            return needed | (_ORDER if any(a.function.in_order for _, a in aggregates) else frozenset())
        case NestedAggregateSpec(keys, _, per, inner, _, where):
            needed = timed.union(keys, per, *(a.columns() for _, a in inner))
            needed |= where.columns() if where is not None else frozenset()
            return needed | (_ORDER if any(a.function.in_order for _, a in inner) else frozenset())
        case WindowTopSpec(keys):
            needed = timed | _ORDER | (demanded & set(schema.names)) | set(keys)
            return needed.union(*(by.columns() for by, _ in spec.order))
        case WindowJoinSpec(on, _, columns) | IntervalJoinSpec(on, _, _, columns):
            needed = timed | {pair[index] for pair in on}
            needed |= {theirs for ours, side, theirs in columns if side == index and ours in demanded}
            return needed | (_ORDER if ORDER in demanded else frozenset())
        case CoGroupSpec() | ProcessSpec() | MatchSetSpec():
            return timed | _ORDER | set(schema.names)
        case MatchSpec(keys):
            needed = timed | _ORDER | set(keys) | _asked(spec)
            needed |= set(GIVEN.names) if spec.by_start else set()
            return needed.union(*(expr.columns() for name, expr in spec.columns if name in demanded))
        case MatchSplitSpec(match):
            return timed | _ORDER | _asked(match) | (demanded - system - set(GIVEN.names))
        case MatchMergeSpec():
            return (demanded - system) | {TIME, START} | _ORDER
        case GroupJoinSpec(on, _, pair, where, aggregates, columns):
            read = frozenset() if where is None else where.columns()
            read = read.union(*(a.columns() for _, a in aggregates))
            needed = timed | {one[index] for one in on}
            needed |= {theirs for name, side, theirs in pair if side == index and name in read}
            if index == 0:
                computed = frozenset().union(*(expr.columns() for name, expr in columns if name in demanded))
                return needed | _ORDER | (computed & set(schema.names))
            ordered = any(a.function.in_order for _, a in aggregates)
            return needed | (_ORDER if ordered else frozenset())
        case DeduplicateSpec(keys, _):
            return timed | _ORDER | (demanded - system) | set(keys)
        case SinkSpec():
            return set(schema.names)
        case CustomSpec():
            return spec.needs(index, frozenset(schema.names))
    raise TypeError(f"no such step: {spec!r}")


def _asked(spec: MatchSpec) -> set[str]:
    """The columns that the conditions of a pattern read."""
    conditions = (one.condition for one in spec.pattern.events() if one.condition is not None)
    return set().union(*(condition.columns() for condition in conditions))
