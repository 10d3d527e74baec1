"""Which operators do not come back: their turn is the same as when somebody looked before."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.engine.turns.vertex import Vertex


class LongTurns:
    """Looked at from another thread than those that take the turns, which notice nothing of it."""

    def __init__(self, vertices: Iterable[Vertex]) -> None:
        self._vertices = tuple(vertices)
        self._seen: dict[Vertex, int] = {}

    def look(self) -> list[Vertex]:
        """Those in the turn in which they were at the last look."""
        seen = {vertex: vertex.counters.turns for vertex in self._vertices if vertex.in_turn}
        same = [vertex for vertex, turns in seen.items() if self._seen.get(vertex) == turns]
        self._seen = seen
        return same


def left_behind(what: str, grace_s: float) -> str:
    """What is said of a run that ended without ``what``, the steps or sinks that hang."""
    return (
        f"the run was stopped and {what} did not come back within {grace_s:g} s: a function or sink hangs "
        "or needs longer; what it was at does not count; give it more time with e.g. stop_grace='10m', or "
        "stop_grace=None to wait for ever"
    )
