"""Sources that others wait for: nothing has come from them for a while, and windows stay open."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.query.graph import Graph
from penstock.query.steps import SourceSpec

#: How long a source may say nothing before somebody is told.
SILENT_AFTER_S = 30.0


def meetings(graph: Graph) -> dict[str, dict[str, str]]:
    """By source, the others that wait for its time, each with a step in which they meet."""
    above: dict[str, frozenset[str]] = {}
    meeting: dict[str, dict[str, str]] = {}
    for node in graph:
        if isinstance(node.spec, SourceSpec):
            above[node.id] = frozenset((node.id,))
            continue
        sources = above[node.id] = frozenset[str]().union(*(above[one.node] for one in node.inputs))
        if not node.spec.timed:
            continue
        for source in sources:
            for other in sources - {source}:
                meeting.setdefault(source, {}).setdefault(other, node.id)
    return meeting


class Silence:
    """Notices sources that hold others back; a pure step from what was heard to what is told."""

    def __init__(self, meeting: Mapping[str, Mapping[str, str]], after_s: float = SILENT_AFTER_S) -> None:
        self._meeting, self._after_s = meeting, after_s
        self._heard: dict[str, object] = {}
        self._since_s: dict[str, float] = {}
        self._told: set[str] = set()

    def look(self, now_s: float, heard: Mapping[str, object]) -> list[str]:
        """Warnings. ``heard`` has, of each source that has not ended, what changes when something comes."""
        for source, sign in heard.items():
            if source not in self._since_s or self._heard[source] != sign:
                self._heard[source], self._since_s[source] = sign, now_s
                self._told.discard(source)
        warnings = []
        for source in heard:
            silent_s = now_s - self._since_s[source]
            if silent_s < self._after_s or source in self._told:
                continue
            waiting = {
                other: step
                for other, step in self._meeting.get(source, {}).items()
                if other in self._since_s and self._since_s[other] > self._since_s[source]
            }
            if waiting:
                self._told.add(source)
                other, step = min(waiting.items())
                warnings.append(
                    f"source '{source}' holds '{other}' back: nothing has come from it for {silent_s:.0f} s, "
                    f"and step '{step}' waits for its time; results come when it goes on or ends"
                )
        return warnings
