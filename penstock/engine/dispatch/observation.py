"""What the scheduling policies see of vertices: the graph, and what they have counted."""

from __future__ import annotations

import numpy as np

from penstock.engine.turns.vertex import Vertex
from penstock.query.windows import Window
from penstock.scheduling.observation import Counts, Observation
from penstock.scheduling.policy import Floats
from penstock.scheduling.topology import Topology


class VertexCounts:
    """Reads the counters of all vertices."""

    def __init__(self, vertices: list[Vertex]) -> None:
        self._counters = [vertex.counters for vertex in vertices]
        outlets = [vertex.operator.out for vertex in vertices]
        self._outlets = [outlet for outlet in outlets if outlet is not None]
        self._writing = np.array([outlet is not None for outlet in outlets], bool)
        self._histograms = [vertex.latency for vertex in vertices if vertex.latency is not None]
        self._timed = np.array([vertex.latency is not None for vertex in vertices], bool)

    def read(self) -> Counts:
        """All of them, now."""
        counters = self._counters
        emitted, markers, latency_ns = np.zeros((3, len(counters)))
        emitted[self._writing] = [outlet.written for outlet in self._outlets]
        markers[self._timed] = [histogram.recorded for histogram in self._histograms]
        latency_ns[self._timed] = [histogram.total_ns for histogram in self._histograms]
        columns: Floats = np.array(
            [(count.processed, count.busy_ns, count.turns, count.least_cost_ns) for count in counters], float
        ).reshape(-1, 4)
        taken, busy_ns, turns, least_cost_ns = columns.T.copy()
        return Counts(taken, emitted, busy_ns, turns, markers, latency_ns, least_cost_ns)


def observation_of(
    vertices: list[Vertex], topology: Topology, workers: int, *, by_least: bool = True
) -> Observation:
    """Nothing is observed of the vertices so far. What sources and ends send says nothing of their
    selectivity."""
    windows_ns = np.array([window_ns(vertex) for vertex in vertices])
    counted = np.array([bool(vertex.outlets) and vertex.source is None for vertex in vertices], bool)
    return Observation(topology, workers, windows_ns, counted, by_least=by_least)


def window_ns(vertex: Vertex) -> float:
    """The length of an operator's windows; 0 if it has none."""
    window = getattr(vertex.operator.node.spec, "window", None)
    return window.length_us * 1e3 if isinstance(window, Window) else 0.0


def topology_of(vertices: list[Vertex]) -> Topology:
    """The graph of the vertices as policies see it."""
    readers: dict[int, list[int]] = {}
    for number, vertex in enumerate(vertices):
        for edge in vertex.edges:
            readers.setdefault(id(edge.outlet), []).append(number)
    children = tuple(
        tuple(dict.fromkeys(reader for outlet in vertex.outlets for reader in readers.get(id(outlet), ())))
        for vertex in vertices
    )
    return Topology(children, tuple(map(_kind, vertices)))


def _kind(vertex: Vertex) -> str:
    """Where the events of a source come in that another process reads, it is no source."""
    if vertex.source is not None:
        return "source"
    kind = vertex.operator.node.kind
    return "inlet" if kind == "source" else kind
