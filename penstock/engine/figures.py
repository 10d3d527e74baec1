"""The figures that scheduling needs of every operator, in shared arrays that turns update in place.

Whoever ran an operator writes its figures when the turn ends, so that a snapshot of hundreds of operators is
one compiled loop and a few copies. Counts are written as they are, never added up here: a figure that was
overlooked once is right again after the next turn.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from penstock.engine.board import (
    BLOCKED,
    DUE_NS,
    KNOWN,
    LAST_TURN_NS,
    LOOK_NS,
    NEVER_NS,
    PER_NS,
    SINCE_NS,
    SOURCE,
    UNWRITTEN,
    Board,
    view,
)
from penstock.engine.vertex import Vertex
from penstock.memory.edges import Outlet
from penstock.scheduling.policy import Floats, Integers


class Figures:
    """Arrays by operator, by edge and by outlet.

    A source's pending events are not known without asking it. ``due`` says when its next event is due; 0: it
    should be asked. After that, what has come is estimated by its rate so far.
    """

    def __init__(self, vertices: list[Vertex], board: Board | None = None) -> None:
        count = len(vertices)
        self.board = board = board or Board(count)
        self._vertices = vertices
        outlets = [outlet for vertex in vertices for outlet in vertex.outlets]
        place = {id(outlet): number for number, outlet in enumerate(outlets)}
        edges = [edge for vertex in vertices for edge in vertex.edges]
        self._edge_starts = np.zeros(count + 1, np.int64)
        np.cumsum([len(vertex.edges) for vertex in vertices], out=self._edge_starts[1:])
        self._edge_outlets = np.array([place[id(edge.outlet)] for edge in edges], np.int64)
        self._sent = np.zeros(len(outlets), np.int64)  # events and marks written
        self._taken = np.zeros(len(edges), np.int64)  # events and marks read
        self._left = np.zeros(count, np.int64)  # rows and marks that did not fit into an outlet
        self._blocked = board.flags[BLOCKED]
        self._unwritten = board.flags[UNWRITTEN]
        self._due_ns = board.integers[DUE_NS]
        self._known = board.integers[KNOWN]
        self._look_ns = board.integers[LOOK_NS]
        self._expected_per_ns = board.floats[PER_NS]
        self.last_turn_ns = board.integers[LAST_TURN_NS]
        self.waiting_since_ns = board.integers[SINCE_NS]
        self.least_cost_ns = np.zeros(count)  # per event in large turns; 0: none yet
        self._sent_view = view(self._sent)
        self._taken_view = view(self._taken)
        self._left_view = view(self._left)
        self._due_view = view(self._due_ns)
        self._known_view = view(self._known)
        self._last_view = view(self.last_turn_ns)
        self._since_view = view(self.waiting_since_ns)
        self._least_view = view(self.least_cost_ns)
        self._unwritten_view = view(self._unwritten)
        starts = self._edge_starts.tolist()
        self._edges = [
            list(zip(range(starts[number], starts[number + 1]), vertex.edges, strict=True))
            for number, vertex in enumerate(vertices)
        ]
        self._outlets: list[list[tuple[int, Outlet]]] = [
            [(place[id(outlet)], outlet) for outlet in vertex.outlets] for vertex in vertices
        ]
        self._readers: list[Integers] = []
        for vertex in vertices:
            vertex.board = board.blocked
            numbers = dict.fromkeys(reader.index for reader in vertex.readers)
            self._readers.append(np.array(list(numbers), np.int64))
            if vertex.source is not None:
                self._due_view[vertex.index] = 0  # so far nobody has asked
                board.flags[SOURCE, vertex.index] = 1

    def begin_turn(self, vertex: Vertex) -> int:
        """Since when the operator had had work and no turn; 0 if that is not known."""
        return int(self._since_view[vertex.index])

    def end_turn(self, vertex: Vertex, now_ns: int) -> bool:
        """Writes the figures of a turn that ended; whether it has sent something to its readers."""
        self._last_view[vertex.index] = now_ns
        return self._write(vertex)

    def end_quietly(self, vertex: Vertex, now_ns: int) -> None:
        """A turn has ended and left nothing to do; what it has taken and sent is written later."""
        index = vertex.index
        self._last_view[index] = now_ns
        self._since_view[index] = 0
        self._unwritten_view[index] = 1

    def write_rest(self) -> None:
        """Writes the figures of turns that only said when they ended."""
        if self._unwritten.any():
            for index in self._unwritten.nonzero()[0].tolist():
                self._write(self._vertices[index])

    def _write(self, vertex: Vertex) -> bool:
        index = vertex.index
        sent = self._sent_view
        has_sent = False
        for place, outlet in self._outlets[index]:
            count = outlet.written + outlet.marked
            if sent[place] != count:
                sent[place] = count
                has_sent = True
        taken = self._taken_view
        for place, edge in self._edges[index]:
            taken[place] = edge.consumed + edge.passed
        self._left_view[index] = vertex.left
        self._least_view[index] = vertex.counters.least_cost_ns
        self._unwritten_view[index] = 0
        return has_sent

    def wait_from(self, index: int, since_ns: int) -> None:
        """The operator has work and no turn since then; 0: it has no work."""
        self._since_view[index] = since_ns

    def readers_wait_from(self, vertex: Vertex, now_ns: int) -> None:
        """Its readers have got work now, those that had none."""
        readers = self._readers[vertex.index]
        if len(readers) > 4:
            _set_where_zero(readers, self.waiting_since_ns, now_ns)
        else:
            since = self._since_view
            for reader in vertex.readers:
                if since[reader.index] == 0:
                    since[reader.index] = now_ns

    def wait_where(self, pending: Integers, now_ns: int) -> None:
        """Operators with something pending have work now, those that had none."""
        _set_where_pending(pending, self.waiting_since_ns, now_ns)

    def expect(self, index: int, due_ns: int, known: int = 0) -> None:
        """The next event of this source is due then; ``known`` of them are there already."""
        self._due_view[index] = due_ns
        self._known_view[index] = known

    def expected(self, index: int, now_ns: int) -> int:
        """How many events this source has by its rate so far, at least one."""
        since_ns = max(0, now_ns - self._due_view[index])
        return max(1 + int(since_ns * self._expected_per_ns[index]), int(self._known_view[index]))

    def due(self, index: int) -> int:
        return int(self._due_view[index])

    def last_turn(self, index: int) -> int:
        return int(self._last_view[index])

    def count_idle_from(self, index: int, since_ns: int) -> None:
        """From then on the operator counts as idle, whenever its last turn ended."""
        self._last_view[index] = since_ns

    def set_rates(self, per_ns: NDArray[np.float64]) -> None:
        """How many events each source reads per ns, by what it has read lately."""
        self._expected_per_ns[:] = per_ns

    def pending(self, now_ns: int) -> Integers:
        """What each operator could take now, as in a ``Snapshot``; of sources, what is expected."""
        result = np.empty(len(self._left), np.int64)
        _pending(
            self._edge_starts,
            self._edge_outlets,
            self._sent,
            self._taken,
            self._left,
            self._blocked,
            self._due_ns,
            self._known,
            self._expected_per_ns,
            now_ns,
            result,
        )
        return result

    def is_put_off(self, pending: Integers, priority: Floats) -> bool:
        """Whether somebody has work and is neither eligible nor a source that is read at a known time."""
        return bool(_is_put_off(pending, priority, self._blocked, self._look_ns))


# Without ``nogil``: for a microsecond it is not worth to let another thread in.
@numba.njit(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1],"
    " float64[::1], int64, int64[::1])",
    cache=True,
)
def _pending(
    edge_starts: Integers,
    edge_outlets: Integers,
    sent: Integers,
    taken: Integers,
    left: Integers,
    blocked: Integers,
    due_ns: Integers,
    known: Integers,
    expected_per_ns: NDArray[np.float64],
    now_ns: int,
    result: Integers,
) -> None:
    for operator in range(len(left)):
        count = left[operator]
        for edge in range(edge_starts[operator], edge_starts[operator + 1]):
            count += sent[edge_outlets[edge]] - taken[edge]
        if now_ns >= due_ns[operator]:
            expected = 1 + np.int64((now_ns - due_ns[operator]) * expected_per_ns[operator])
            count += max(expected, known[operator])
        result[operator] = 0 if blocked[operator] else count


@numba.njit("boolean(int64[::1], float64[::1], int64[::1], int64[::1])", cache=True)
def _is_put_off(pending: Integers, priority: Floats, blocked: Integers, look_ns: Integers) -> bool:
    for operator in range(len(pending)):
        waits = pending[operator] > 0 and priority[operator] <= 0.0 and look_ns[operator] == NEVER_NS
        if waits or blocked[operator]:
            return True
    return False


@numba.njit("void(int64[::1], int64[::1], int64)", cache=True)
def _set_where_zero(places: Integers, values: Integers, value: int) -> None:
    for place in places:
        if values[place] == 0:
            values[place] = value


@numba.njit("void(int64[::1], int64[::1], int64)", cache=True)
def _set_where_pending(pending: Integers, values: Integers, value: int) -> None:
    for place in range(len(pending)):
        if pending[place] > 0 and values[place] == 0:
            values[place] = value
