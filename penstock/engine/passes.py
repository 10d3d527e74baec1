"""Passes: an operator and all operators behind it, which one worker runs in one go."""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np

from penstock.engine.board import CHAIN, LEADING, TOGETHER, Board, view
from penstock.engine.vertex import Vertex
from penstock.scheduling.policy import Floats, Integers

_MOST = 16  # operators behind the first


class Passes:
    """Who stands behind whom, and whether a policy would run them right after it anyway.

    ``starts`` and ``members`` say the same to compiled code: behind operator i stand
    ``members[starts[i]:starts[i + 1]]``.
    """

    def __init__(self, vertices: list[Vertex], board: Board) -> None:
        self._behind = [_behind(vertex, vertices) for vertex in vertices]
        self.starts = np.zeros(len(vertices) + 1, np.int64)
        np.cumsum([len(behind) for behind in self._behind], out=self.starts[1:])
        self.members = np.array([reader.index for behind in self._behind for reader in behind], np.int64)
        self._together = board.flags[TOGETHER]
        self._together_view = view(self._together)
        # Whether a worker has got with an operator all that are behind it.
        self.leading = view(board.flags[LEADING])
        self.lengths = [1 + len(behind) for behind in self._behind]  # of passes, if they are
        self._chain = view(board.flags[CHAIN])
        for vertex, behind in zip(vertices, self._behind, strict=True):
            self._chain[vertex.index] = all(len(one.readers) <= 1 for one in (vertex, *behind))

    def plan(self, potential: Floats) -> None:
        """Looks at who may go together by these priorities."""
        _together(self.starts, self.members, potential, self._together)

    def behind(self, vertex: Vertex) -> tuple[Vertex, ...]:
        """The operators behind this one, in order, if the policy puts all of them before it; else none."""
        return self._behind[vertex.index] if self._together_view[vertex.index] else ()

    def is_chain(self, vertex: Vertex) -> bool:
        """Whether this one and all behind it stand in a row, so that only one could run at a time."""
        return bool(self._chain[vertex.index])

    def lead(self, vertex: Vertex) -> None:
        """A worker gets this operator and all behind it."""
        self.leading[vertex.index] = 1

    def length(self, vertex: Vertex) -> int:
        """How many operators a worker has got with this one, itself included."""
        return self.lengths[vertex.index] if self.leading[vertex.index] else 1

    def end(self, vertices: list[Vertex]) -> Iterator[list[Vertex]]:
        """What a worker gives back, pass by pass."""
        place = 0
        while place < len(vertices):
            leader = vertices[place]
            length = self.length(leader)
            self.leading[leader.index] = 0
            yield vertices[place : place + length]
            place += length

    def turns(self, limit: int) -> list[list[tuple[Vertex, int]]]:
        """Per operator the turns of those behind it, each with this limit."""
        return [[(reader, limit) for reader in behind] for behind in self._behind]


def _behind(first: Vertex, vertices: list[Vertex]) -> tuple[Vertex, ...]:
    """All operators behind this one, if they are few and nobody else writes to them; else none.

    Then one worker can take an operator and all that follows from it in one go, without asking anyone.
    """
    held = {first}
    outlets = set(map(id, first.outlets))
    for vertex in vertices[first.index + 1 :]:
        if vertex.edges and all(id(edge.outlet) in outlets for edge in vertex.edges):
            held.add(vertex)
            outlets.update(map(id, vertex.outlets))
            if len(held) > _MOST:
                return ()
    if any(reader not in held for vertex in held for reader in vertex.readers):
        return ()
    held.discard(first)
    return tuple(sorted(held, key=lambda vertex: vertex.index))


@numba.njit("void(int64[::1], int64[::1], float64[::1], int64[::1])", cache=True)
def _together(starts: Integers, members: Integers, potential: Floats, together: Integers) -> None:
    for operator in range(len(together)):
        follow = starts[operator] < starts[operator + 1]
        for place in range(starts[operator], starts[operator + 1]):
            follow = follow and potential[members[place]] >= potential[operator]
        together[operator] = follow
