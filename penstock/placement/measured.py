"""The task graph of a run: what its operators were measured to cost, and what travelled between them."""

from __future__ import annotations

from penstock.metrics.run import RunMetrics
from penstock.placement.task_graph import TaskGraph
from penstock.query.graph import Graph, Port


def measured_graph(graph: Graph, metrics: RunMetrics) -> TaskGraph:
    """B is the share of a core that each operator took, E the events per second along each edge.

    An operator with one input took all that came along it. With several, each edge carries what its sender
    emitted. Of side outputs only the reader knows how much came.
    """
    measured = {operator.id: operator for operator in metrics.operators}
    elapsed_s = metrics.elapsed_s or 1.0
    loads = {
        node.id: measured[node.id].busy_ns / 1e9 / elapsed_s for node in graph.nodes if node.id in measured
    }
    rates: dict[tuple[str, str], float] = {}
    for node in graph.nodes:
        if node.id not in measured:  # a projection that only left columns out
            continue
        for source in node.inputs:
            origin, port = _origin(graph, source.node, loads), source.port
            alone = len(node.inputs) == 1 or port is not Port.MAIN
            events = measured[node.id].processed if alone else measured[origin].emitted
            rates[origin, node.id] = rates.get((origin, node.id), 0.0) + events / elapsed_s
    return TaskGraph.of(loads, rates)


def _origin(graph: Graph, node_id: str, known: dict[str, float]) -> str:
    """The operator that runs and whose events these are."""
    while node_id not in known:
        node_id = graph[node_id].inputs[0].node
    return node_id
