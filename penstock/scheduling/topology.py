"""The graph as policies see it: who reads whom, and what lies between an operator and its sinks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

_MOST_PATHS = 4096  # of a graph with many diamonds, the paths beyond these are left out


@dataclass(frozen=True)
class Lists:
    """A list for each operator, end to end: that of i is ``items[starts[i]:starts[i + 1]]``."""

    starts: NDArray[np.int64]
    items: NDArray[np.int64]

    @classmethod
    def of(cls, lists: tuple[tuple[int, ...], ...]) -> Lists:
        starts = np.zeros(len(lists) + 1, np.int64)
        np.cumsum([len(items) for items in lists], out=starts[1:])
        return cls(starts, np.array([item for items in lists for item in items], np.int64))


@dataclass(frozen=True)
class Topology:
    """The operators of a run by number; an operator's readers have larger numbers than it has.

    >>> kinds = ("source", "map", "filter", "filter", "sink")
    >>> Topology(((1,), (2, 3), (4,), (4,), ()), kinds).descendants[1]
    (2, 3, 4)
    """

    children: tuple[tuple[int, ...], ...]  # who reads what it emits
    kinds: tuple[str, ...]  # "source", "sink" or another

    def __post_init__(self) -> None:
        for operator, children in enumerate(self.children):
            if any(child <= operator for child in children):
                raise ValueError(f"operator {operator} is read by {children}: readers have larger numbers")

    def __len__(self) -> int:
        return len(self.children)

    @cached_property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """Whose output it reads."""
        parents: list[list[int]] = [[] for _ in self.children]
        for operator, children in enumerate(self.children):
            for child in children:
                parents[child].append(operator)
        return tuple(tuple(dict.fromkeys(found)) for found in parents)

    @cached_property
    def descendants(self) -> tuple[tuple[int, ...], ...]:
        """All that its events can reach, each once, without itself."""
        found: list[frozenset[int]] = [frozenset()] * len(self)
        for operator in reversed(range(len(self))):
            children = self.children[operator]
            found[operator] = frozenset(children).union(*(found[child] for child in children))
        return tuple(tuple(sorted(reached)) for reached in found)

    @cached_property
    def sinks(self) -> tuple[tuple[int, ...], ...]:
        """The sinks that its events can reach, itself if it is one: the queries it works for."""
        return tuple(
            tuple(other for other in (operator, *reached) if self.kinds[other] == "sink")
            for operator, reached in enumerate(self.descendants)
        )

    @cached_property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """The ways from operators that read nothing to those that nobody reads."""
        found: list[tuple[int, ...]] = []
        unfinished: list[tuple[int, ...]] = [
            (operator,) for operator in reversed(range(len(self))) if not self.parents[operator]
        ]
        while unfinished and len(found) < _MOST_PATHS:
            path = unfinished.pop()
            children = dict.fromkeys(self.children[path[-1]])
            if not children:
                found.append(path)
            unfinished.extend((*path, child) for child in reversed(children))
        return tuple(found)

    @cached_property
    def child_lists(self) -> Lists:
        return Lists.of(tuple(tuple(dict.fromkeys(children)) for children in self.children))

    @cached_property
    def own_and_descendant_lists(self) -> Lists:
        """Each operator with its descendants, itself first."""
        return Lists.of(tuple((operator, *reached) for operator, reached in enumerate(self.descendants)))

    @cached_property
    def sink_lists(self) -> Lists:
        return Lists.of(self.sinks)

    @cached_property
    def path_lists(self) -> Lists:
        """The paths, by their number."""
        return Lists.of(self.paths)
