"""Which operators have something to do: each has at most one task under way, wherever it is.

The edges of the engine carry order and position themselves: an edge has one cursor, only its reader's turn
moves it, and a turn always starts there. So a task need not carry a block. It says "this operator has input
up to what was written when the task was sent", and a second one of the same operator would add nothing while
it is under way. That is why nothing is copied, and nothing can come too early.
"""

from __future__ import annotations

import time
from threading import Lock

from penstock.binding.installation import Installation
from penstock.engine.turns.vertex import Vertex


class Readiness:
    """Sends a task for an operator that got something to do and has none under way.

    For the installation every operator has one edge, its number, on which these tasks follow each other. A
    task is under way while the operator's flag is held; whoever takes the flag may stamp the next task.
    The flag is given back after the turn and before the last look for work, so no work is overlooked:
    whoever brings some either gets the flag or did so before that look.
    """

    def __init__(self, vertices: list[Vertex], installation: Installation) -> None:
        self._installation = installation
        self._flags = [Lock() for _ in vertices]
        self._told_ns = [0] * len(
            vertices
        )  # since when each has had something to do and no turn; 0: it has not
        for vertex in vertices:
            vertex.on_unblock = self.tell  # by whoever gives memory back to one of its outlets
            vertex.on_call = self.tell  # by whoever sends it something on none of its edges

    def start(self, vertices: list[Vertex]) -> None:
        """Sends the first tasks: those of the sources."""
        for vertex in vertices:
            if vertex.source is not None:
                self.tell(vertex)

    def tell(self, vertex: Vertex) -> None:
        """The operator has something to do."""
        index = vertex.index
        if self._flags[index].acquire(blocking=False):
            now_ns = time.perf_counter_ns()
            if vertex.source is None:  # what a source could read does not wait in a queue
                self._told_ns[index] = now_ns
            self._installation.send(index, priority=now_ns)

    def tell_readers(self, vertex: Vertex) -> None:
        """Tells those for whom a turn left something."""
        for reader in vertex.readers:
            if not self._flags[reader.index].locked() and reader.waiting():
                self.tell(reader)

    def pass_on(self, vertex: Vertex) -> None:
        """Sends the operator's task on, by whoever has it in hand."""
        self._installation.send(vertex.index, priority=time.perf_counter_ns())

    def end_task(self, vertex: Vertex, now_ns: int) -> None:
        """After a turn: from now on others may send its next task; the look for work left over follows."""
        self._flags[vertex.index].release()
        if vertex.source is not None:
            if not vertex.blocked:
                self.tell(vertex)
        elif vertex.work(now_ns):
            self.tell(vertex)

    def begin_turn(self, vertex: Vertex) -> int:
        """Since when it has had something to do; 0 if that is not known."""
        told_ns, self._told_ns[vertex.index] = self._told_ns[vertex.index], 0
        return told_ns

    def open_wait_ns(self, vertex: Vertex, now_ns: int) -> int:
        """How long it has had something to do and no turn, now."""
        told_ns = self._told_ns[vertex.index]
        return max(0, now_ns - told_ns) if told_ns else 0
