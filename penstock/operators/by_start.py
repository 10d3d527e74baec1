"""A match by start as three steps: a splitter, a match whose keys are its instances, and a merger.

What one event leads to as the first of a match does not depend on other first events, as long as matches
take no events away from each other. So first events can be dealt out, and with the steps of a graph like any
other both runtimes route, keep and move the instances as they do keys.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.query.graph import Graph, Input, Port, QueryVertex
from penstock.query.patterns.by_start import GIVEN, INSTANCE, START
from penstock.query.steps import MatchMergeSpec, MatchSpec, MatchSplitSpec
from penstock.query.steps.spec import Spec
from penstock.query.types import DataType, Field, Schema

SPLITTER, INSTANCES = ".splitter", ".instances"


def with_instances(graph: Graph) -> Graph:
    """The graph with three steps in place of every match that has a degree; the merger keeps its id."""
    if not any(isinstance(node.spec, MatchSpec) and node.spec.degree for node in graph):
        return graph
    nodes: list[QueryVertex] = []
    splitters: dict[str, str] = {}
    for node in graph.nodes:
        # The late events of a match are those that its splitter leaves out.
        inputs = tuple(
            replace(source, node=splitters[source.node])
            if source.port is Port.LATE and source.node in splitters
            else source
            for source in node.inputs
        )
        node = replace(node, inputs=inputs) if inputs != node.inputs else node
        if isinstance(node.spec, MatchSpec) and node.spec.degree is not None:
            made = _steps(graph, node, node.spec)
            splitters[node.id] = made[0].id
            nodes += made
        else:
            nodes.append(node)
    return Graph(tuple(nodes))


def is_by_instance(spec: Spec) -> bool:
    """Whether its keys are instances: no user has heard of them, so none is ever called too hot."""
    return isinstance(spec, MatchSpec) and spec.by_start


def _steps(graph: Graph, node: QueryVertex, spec: MatchSpec) -> tuple[QueryVertex, QueryVertex, QueryVertex]:
    assert spec.degree is not None
    plain = replace(spec, degree=None)
    (source,) = node.inputs
    events, time = graph.input_schema(source), _time_column(graph, source)
    splitter = replace(
        node,
        id=node.id + SPLITTER,
        spec=MatchSplitSpec(plain, spec.degree),
        schema=Schema([*events, *GIVEN]),
        time_column=time,
        step=node.id,
    )
    instances = replace(
        node,
        id=node.id + INSTANCES,
        spec=replace(plain, keys=(INSTANCE,), by_start=True),
        inputs=(Input(splitter.id),),
        schema=Schema([*node.schema, Field(START, DataType.INT64)]),
        step=node.id,
    )
    return splitter, instances, replace(node, spec=MatchMergeSpec(), inputs=(Input(instances.id),))


def _time_column(graph: Graph, source: Input) -> str | None:
    """The visible column that holds the event time on an output, if one does."""
    assert source.port is Port.MAIN, "late events and bad records cannot be matched"
    return graph[source.node].time_column
