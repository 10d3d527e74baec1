"""When sources have events: asked as seldom as possible, since every question costs as much as a decision."""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np
from numpy.typing import NDArray

from penstock.engine.board import (
    BEAT_NS,
    EPOCH_NS,
    LOOK_NS,
    NEVER_NS,
    NEXT_LOOK_NS,
    PACED,
    PATIENCE_NS,
    SLACK_NS,
    view,
)
from penstock.engine.figures import Figures
from penstock.engine.quick_steps import next_read_ns
from penstock.engine.vertex import Vertex

_next_read_ns = next_read_ns.py_func
#: The share of a source's wait by which it may come too early, if another one is due.
_SLACK = 0.25


class Arrivals:
    """Keeps in the figures when each source's next event is due.

    A paced source that was read empty waits for an epoch, or as long as the policy wants it to
    (``patience_ns``), so that a turn reads a millisecond's events rather than ten. A source that cannot tell
    when it has more is asked at every epoch.
    """

    def __init__(self, vertices: list[Vertex], figures: Figures, epoch_ns: int) -> None:
        self._sources = [vertex for vertex in vertices if vertex.source is not None]
        self._figures = figures
        self._epoch_ns = epoch_ns
        self._unpaced: set[int] = set()  # those that cannot tell
        self._vertices = vertices
        self._board = board = figures.board
        board.number[EPOCH_NS] = epoch_ns
        self._looks = board.integers[LOOK_NS]
        self._paced = view(board.flags[PACED])
        self._patience_ns = 0
        self.polls = False  # there are some that have to be asked again and again

    @property
    def patience_ns(self) -> int:
        """How long a source that was read empty waits, if that is longer than an epoch."""
        return self._patience_ns

    @patience_ns.setter
    def patience_ns(self, patience_ns: int) -> None:
        self._patience_ns = patience_ns
        self._board.number[PATIENCE_NS] = max(self._epoch_ns, patience_ns)
        self._board.number[SLACK_NS] = int(_SLACK * max(self._epoch_ns, patience_ns))

    def after_turn(self, vertex: Vertex, now_ns: int) -> int:
        """Looks at a source whose turn ended, or that has room again; how many events it should read at
        once."""
        index, source = vertex.index, vertex.source
        assert source is not None
        if vertex.blocked or vertex.finished:
            self._figures.wait_from(index, now_ns if vertex.blocked else 0)
            return 0
        due_ns = None if index in self._unpaced else source.next_due_ns()
        if due_ns is None:
            self._unpaced.add(index)
            pending = source.available(now_ns)
            self.note(vertex, now_ns, pending)
            return pending
        self._paced[index] = 1
        self._figures.expect(index, due_ns)
        self._figures.wait_from(index, due_ns if due_ns < now_ns else 0)
        read_ns = max(due_ns, _next_read_ns(self._board.number, self._board.given_ns[index], now_ns))
        self._figures.count_idle_from(index, read_ns - self._board.number[PATIENCE_NS])
        self.look_after(index, read_ns)
        is_late = 2 * (now_ns - due_ns) >= max(self._epoch_ns, self.patience_ns)  # then it need not wait
        return source.available(now_ns) if is_late else 0

    def look_after(self, index: int, when_ns: int, due_ns: int = 0) -> None:
        """Looks at this source then, or when its next event is due."""
        board = self._board
        when_ns = max(when_ns, due_ns)
        board.look_ns[index] = when_ns
        if when_ns < board.number[NEXT_LOOK_NS]:
            board.number[NEXT_LOOK_NS] = when_ns

    def note(self, vertex: Vertex, now_ns: int, pending: int) -> None:
        """The source was asked and has so many events; notes when it has the next, as far as it knows."""
        assert vertex.source is not None
        due_ns = now_ns if pending else vertex.source.next_due_ns()
        self._figures.expect(vertex.index, NEVER_NS if due_ns is None else due_ns, pending)
        if due_ns is not None:
            self.look_after(vertex.index, due_ns)
        self._figures.wait_from(vertex.index, now_ns if pending else 0)

    def poll(self, now_ns: int) -> None:
        """Asks the sources that cannot tell when they have more, or should be asked."""
        self.polls = False
        for vertex in self._sources:
            if self._figures.due(vertex.index) in (0, NEVER_NS) and not vertex.finished:
                self.polls = True
                if not self._board.running[vertex.index] and not vertex.blocked:
                    assert vertex.source is not None
                    self.note(vertex, now_ns, vertex.source.available(now_ns))

    def due(self, now_ns: int) -> Iterator[tuple[Vertex, int]]:
        """The sources that can read something by now, and how much, as far as that is known."""
        board, looked_at = self._board, []
        until_ns = now_ns
        while self.next_look_ns <= until_ns:
            index = _take_look(self._looks, board.numbers, until_ns)
            if index < 0:
                break
            looked_at.append(index)
            until_ns = now_ns + board.number[SLACK_NS]
        for index in looked_at:
            vertex = self._vertices[index]
            if not (board.running[index] or vertex.blocked or vertex.finished):
                yield vertex, self._figures.expected(index, now_ns)

    @property
    def next_look_ns(self) -> int:
        """When the next source should be looked at."""
        return int(self._board.number[NEXT_LOOK_NS])

    def next_beat_ns(self, now_ns: int) -> int:
        """When the next source could be read of those that workers have, at the earliest."""
        number = self._board.number
        is_known = number[BEAT_NS] > now_ns and number[PATIENCE_NS] > self._epoch_ns
        return int(number[BEAT_NS]) if is_known else now_ns + int(number[PATIENCE_NS])

    def ask_all(self) -> None:
        """Every source should be asked: something has happened to them."""
        for vertex in self._sources:
            if not vertex.finished:
                self._figures.expect(vertex.index, 0)


@numba.njit("int64(int64[::1], int64[::1], int64)", cache=True)
def _take_look(look_ns: NDArray[np.int64], numbers: NDArray[np.int64], now_ns: int) -> int:
    """A source to look at by now, once; −1 if there is none. Notes when the next one is to be looked at."""
    found, least_ns = -1, NEVER_NS
    for source in range(len(look_ns)):
        if look_ns[source] <= now_ns and found < 0:
            found = source
            look_ns[source] = NEVER_NS
        least_ns = min(least_ns, look_ns[source])
    numbers[NEXT_LOOK_NS] = least_ns
    return found
