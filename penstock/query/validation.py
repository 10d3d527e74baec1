"""Checks of a whole graph: every input exists and fits, and nothing goes round in a circle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter

from penstock.query.errors import Origin, QueryError
from penstock.query.graph import Graph, Port, QueryVertex
from penstock.query.steps import SinkSpec, SourceSpec


def checked_graph(nodes: Iterable[QueryVertex]) -> Graph:
    """A graph of these nodes in topological order; refuses cycles and inputs that do not fit."""
    by_id: dict[str, QueryVertex] = {}
    for node in nodes:
        if node.id in by_id:
            raise QueryError(
                "duplicate name", step=node.id, hint="every operator needs an id", origin=node.origin
            )
        by_id[node.id] = node
    for node in by_id.values():
        _check_inputs(node, by_id)
    sorter = TopologicalSorter({node.id: [source.node for source in node.inputs] for node in by_id.values()})
    try:
        order = list(sorter.static_order())
    except CycleError as error:
        raise cycle_error([(node_id, by_id[node_id].origin) for node_id in error.args[1]]) from None
    place = {node_id: index for index, node_id in enumerate(by_id)}
    if all(place[source.node] < place[node.id] for node in by_id.values() for source in node.inputs):
        order = list(by_id)  # in order already: keep it, it is the one the user wrote
    return Graph(tuple(by_id[node_id] for node_id in order))


def _check_inputs(node: QueryVertex, by_id: dict[str, QueryVertex]) -> None:
    wanted, got = node.spec.inputs, len(node.inputs)
    if got == 0 if wanted is None else got != wanted:
        count = {0: "no input", 2: "2 inputs"}.get(1 if wanted is None else wanted, "1 input")
        raise QueryError(
            f"a {node.kind} needs {count}",
            step=node.id,
            detail=f"got {got}",
            hint="connect it to what it reads",
            origin=node.origin,
        )
    for source in node.inputs:
        above = by_id.get(source.node)
        if above is None:
            raise QueryError(
                f"unknown input '{source.node}'",
                step=node.id,
                hint=f"operators here: {', '.join(by_id)}",
                origin=node.origin,
            )
        spec = above.spec
        fits = {
            Port.MAIN: not isinstance(spec, SinkSpec),
            Port.BAD: isinstance(spec, SourceSpec),
            Port.LATE: spec.timed,
            Port.LATE_RIGHT: spec.timed and spec.inputs == 2,
            Port.FAILED: spec.sets_aside,
        }
        if not fits[source.port]:
            raise QueryError(
                f"a {spec.name} has no output '{source.port.value}'",
                step=node.id,
                detail=f"reads it from '{source.node}'",
                hint=f"it has: {', '.join(port.value for port in Port if fits[port]) or 'none'}",
                origin=node.origin,
            )


def cycle_error(around: Sequence[tuple[str, Origin]]) -> QueryError:
    """The error for steps (name, origin) that read each other in a circle; the last is the first again."""
    return QueryError(
        "a cycle: events would go round for ever",
        step=around[0][0],
        detail=" → ".join(name for name, _ in around),
        hint="a step can only read streams that do not depend on it",
        origin=around[0][1],
    )
