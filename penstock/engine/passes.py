"""Passes: an operator and all operators behind it, which one worker runs in one go."""

from __future__ import annotations

from penstock.engine.vertex import Vertex
from penstock.scheduling.policy import Floats

_MOST = 16  # operators behind the first


class Passes:
    """Who stands behind whom, and whether a policy would run them right after it anyway."""

    def __init__(self, vertices: list[Vertex]) -> None:
        self._behind = [_behind(vertex, vertices) for vertex in vertices]
        self._potential: Floats | None = None
        self._follow: dict[int, bool] = {}  # by operator, for ``_potential``

    def behind(self, vertex: Vertex, potential: Floats) -> tuple[Vertex, ...]:
        """The operators behind this one, in order, if the policy puts all of them before it; else none."""
        number = vertex.index
        behind = self._behind[number]
        if not behind:
            return ()
        if potential is not self._potential:  # asked once for every set of priorities
            self._potential = potential
            self._follow.clear()
        follow = self._follow.get(number)
        if follow is None:
            follow = all(potential[reader.index] >= potential[number] for reader in behind)
            self._follow[number] = follow
        return behind if follow else ()

    def is_whole(self, vertices: list[Vertex]) -> bool:
        """Whether these are an operator and all behind it."""
        return len(vertices) > 1 and len(vertices) == 1 + len(self._behind[vertices[0].index])


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
