"""What a partitioner is: a pure function from a task graph to the group of every task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.placement.task_graph import TaskGraph
from penstock.query.errors import PenstockError

#: Task → group.
Groups = tuple[int, ...]


class Partitioner(Protocol):
    """Divides tasks into groups: much traffic inside them, little between, and load alike."""

    @property
    def name(self) -> str: ...

    def partition(self, graph: TaskGraph, groups: int) -> Groups:
        """The group of each task, from 0. A group may stay empty, and does where there are fewer tasks."""
        ...


def check_groups(groups: int) -> None:
    """Raises unless a graph can be divided into that many groups."""
    if groups < 1:
        raise PenstockError(f"groups must be at least 1: got {groups}")


def members(of: Groups, groups: int) -> list[list[int]]:
    """The tasks of each group.

    >>> members((0, 1, 0), 3)
    [[0, 2], [1], []]
    """
    found: list[list[int]] = [[] for _ in range(groups)]
    for task, group in enumerate(of):
        found[group].append(task)
    return found


def renumbered(of: Sequence[int]) -> Groups:
    """The same groups, numbered in the order in which they first appear.

    >>> renumbered([2, 0, 2, 1])
    (0, 1, 0, 2)
    """
    numbers: dict[int, int] = {}
    return tuple(numbers.setdefault(group, len(numbers)) for group in of)
