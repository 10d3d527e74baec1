"""What a rebinding is decided by: every operator's work since the last one."""

from __future__ import annotations

from penstock.binding.policy import Load
from penstock.engine.turns.vertex import Vertex


class ObservedLoad:
    """Takes op_comp · tuple_count of all operators, each time since the time before.

    op_comp is the mean over the events of that period (w is their number), tuple_count what was processed
    in it plus what still waits: so their product is the time spent plus what the rest will take. A source
    has no input that waits; what it could read is not work that someone brought.
    """

    def __init__(self, vertices: list[Vertex], threads: int) -> None:
        self._vertices = vertices
        self._threads = threads
        self._busy_ns = [0] * len(vertices)
        self._processed = [0] * len(vertices)
        self._cost_ns = [0.0] * len(vertices)  # op_comp; kept while an operator gets no events

    def take(self, binding: list[int]) -> Load:
        """The load under this binding; the next period begins."""
        return Load(tuple(binding), tuple(map(self._work_ns, self._vertices)), self._threads)

    def _work_ns(self, vertex: Vertex) -> float:
        index, counters = vertex.index, vertex.counters
        busy_ns = counters.busy_ns - self._busy_ns[index]
        processed = counters.processed - self._processed[index]
        self._busy_ns[index] += busy_ns
        self._processed[index] += processed
        if processed > 0:
            self._cost_ns[index] = busy_ns / processed  # eq. 2
        if vertex.finished:
            return 0.0
        pending = sum(edge.pending for edge in vertex.edges)
        return busy_ns + self._cost_ns[index] * max(0, pending)
