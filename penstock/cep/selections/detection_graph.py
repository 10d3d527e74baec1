"""Detectors in a graph: each step that detects becomes a splitter, its instances and a merger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from penstock.query.errors import QueryError
from penstock.query.graph import Graph, Input, Port, QueryVertex
from penstock.query.steps import DetectSpec
from penstock.query.steps.spec import PartialStep
from penstock.query.types import Schema

SPLITTER, INSTANCES, INSTANCE = ".splitter", ".instances", ".instance"


def for_one_process(graph: Graph) -> Graph:
    """The graph as the node engine runs it: an operator for each instance, and events in one buffer."""
    return _expanded(graph, _shared)


def for_many_tasks(graph: Graph) -> Graph:
    """The graph as tasks of other processes run it: selections travel with their events."""
    return _expanded(graph, _shipped)


def _expanded(
    graph: Graph, parts: Callable[[Graph, QueryVertex, DetectSpec], Sequence[QueryVertex]]
) -> Graph:
    if not any(isinstance(node.spec, DetectSpec) for node in graph.nodes):
        return graph
    nodes: list[QueryVertex] = []
    detectors: set[str] = set()
    for node in graph.nodes:
        # the merger has the step's id; its late events are those of the splitter
        inputs = tuple(
            Input(source.node + SPLITTER, source.port)
            if source.node in detectors and source.port is Port.LATE
            else source
            for source in node.inputs
        )
        node = node if inputs == node.inputs else replace(node, inputs=inputs)
        if isinstance(node.spec, DetectSpec):
            detectors.add(node.id)
            nodes += parts(graph, node, node.spec)
        else:
            nodes.append(node)
    for name, count in Counter(node.id for node in nodes).items():
        if count > 1:
            raise QueryError(
                "duplicate name",
                step=name,
                detail="a part of a detector is called so",
                hint="rename the step",
            )
    return Graph(tuple(nodes))


def _shared(graph: Graph, node: QueryVertex, spec: DetectSpec) -> Sequence[QueryVertex]:
    from penstock.cep.selections.detecting import found_schema
    from penstock.cep.selections.shared_detection import (
        BOUNDS,
        InstancePart,
        MergerPart,
        Shared,
        SharedSplitterPart,
    )

    shared = Shared(spec)
    splitter = _part(node, SPLITTER, SharedSplitterPart(shared), node.inputs, BOUNDS, "closed_at")
    instances = [
        _part(
            node,
            f"{INSTANCE}{place}",
            InstancePart(shared, place),
            [Input(splitter.id)],
            found_schema(node.schema),
            "closed_at",
        )
        for place in range(spec.degree.most)
    ]
    merger = _part(node, "", MergerPart(), [Input(one.id) for one in instances], node.schema, "closed_at")
    return [splitter, *instances, merger]


def _shipped(graph: Graph, node: QueryVertex, spec: DetectSpec) -> Sequence[QueryVertex]:
    from penstock.cep.selections.detecting import found_schema
    from penstock.cep.selections.shared_detection import MergerPart
    from penstock.cep.selections.shipped_detection import (
        AT,
        InstancesPart,
        ShippedSplitterPart,
        shipped_schema,
    )

    shipped = shipped_schema(graph.input_schema(node.inputs[0]))
    splitter = _part(node, SPLITTER, ShippedSplitterPart(spec), node.inputs, shipped, AT)
    instances = _part(
        node,
        INSTANCES,
        InstancesPart(spec),
        [Input(splitter.id)],
        found_schema(node.schema),
        "closed_at",
    )
    return [
        splitter,
        instances,
        _part(node, "", MergerPart(), [Input(instances.id)], node.schema, "closed_at"),
    ]


def _part(
    node: QueryVertex, suffix: str, spec: PartialStep, inputs: Sequence[Input], schema: Schema, time: str
) -> QueryVertex:
    return replace(
        node,
        id=node.id + suffix,
        spec=spec,
        inputs=tuple(inputs),
        schema=schema,
        time_column=time,
        step=node.id,
    )
