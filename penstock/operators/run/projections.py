"""Projections that only leave columns out cost nothing: pruning does their work, so they need no operator."""

from __future__ import annotations

from dataclasses import replace

from penstock.query.expr import Column
from penstock.query.graph import Graph, Input, Port, QueryVertex
from penstock.query.steps import SelectSpec


def without_plain_projections(graph: Graph) -> Graph:
    """The same graph without selections of existing columns whose readers name what they read."""
    replaced: dict[str, Input] = {}
    kept: list[QueryVertex] = []
    for node in graph.nodes:
        inputs = tuple(_origin(source, replaced) for source in node.inputs)
        node = replace(node, inputs=inputs) if inputs != node.inputs else node
        if _is_plain(node) and all(
            _names_its_columns(graph, reader) for reader, _ in graph.consumers(node.id)
        ):
            replaced[node.id] = node.inputs[0]
        else:
            kept.append(node)
    return Graph(tuple(kept)) if replaced else graph


def _origin(source: Input, replaced: dict[str, Input]) -> Input:
    return replaced.get(source.node, source) if source.port is Port.MAIN else source


def _is_plain(node: QueryVertex) -> bool:
    return isinstance(node.spec, SelectSpec) and all(
        isinstance(expr, Column) and expr.name == name for name, expr in node.spec.columns
    )


def _names_its_columns(graph: Graph, reader: QueryVertex) -> bool:
    # A late output carries the whole events of the step's input.
    side_outputs = (Port.LATE, Port.LATE_RIGHT)
    return reader.spec.names_columns and not any(graph.consumers(reader.id, port) for port in side_outputs)
