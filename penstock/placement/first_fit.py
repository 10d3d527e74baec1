"""Resource-aware first fit: neighbours after each other into the nearest group with room, as R-Storm does."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from penstock.placement.partitioner import Groups, check_groups
from penstock.placement.task_graph import TaskGraph
from penstock.query.errors import PenstockError


@dataclass(frozen=True)
class FirstFit:
    """R-Storm's rule: tasks in breadth-first order from the sources, each to the nearest group that has room.

    Near is what R-Storm means by network distance from its reference node: the groups are filled one after
    the other. A group has room for its even share of all load and ``slack`` of it more. A task that fits
    nowhere goes where most room is left: CPU is a soft constraint there, and every task must run somewhere.
    """

    slack: float = 0.1
    room: tuple[float, ...] = ()  # what each group can take, nearest first; empty: an even share
    name: str = "first_fit"

    def __post_init__(self) -> None:
        if self.slack < 0.0:
            raise PenstockError(f"slack must be a share of at least 0: got {self.slack!r}")

    def partition(self, graph: TaskGraph, groups: int) -> Groups:
        check_groups(groups)
        if self.room and len(self.room) != groups:
            raise PenstockError(f"room is given of {len(self.room)} groups, but there are {groups}")
        room = list(self.room) or [graph.total_load / groups * (1.0 + self.slack)] * groups
        found = [0] * len(graph)
        for task in breadth_first(graph):
            load = graph.loads[task]
            fitting = (group for group in range(groups) if load <= room[group])
            group = next(fitting, max(range(groups), key=room.__getitem__))
            found[task] = group
            room[group] -= load
        return tuple(found)


def breadth_first(graph: TaskGraph) -> list[int]:
    """All tasks, from those that nobody sends to on; tasks of equal distance by number."""
    readers: list[set[int]] = [set() for _ in graph.loads]
    has_sender = [False] * len(graph)
    for edge in graph.edges:
        if edge.sender != edge.receiver:
            readers[edge.sender].add(edge.receiver)
            has_sender[edge.receiver] = True
    order: list[int] = []
    seen = [False] * len(graph)
    # A cycle that no source leads to is entered at its first task.
    for start in sorted(range(len(graph)), key=lambda task: has_sender[task]):
        waiting = deque([start] if not seen[start] else [])
        seen[start] = True
        while waiting:
            task = waiting.popleft()
            order.append(task)
            for reader in sorted(readers[task]):
                if not seen[reader]:
                    seen[reader] = True
                    waiting.append(reader)
    return order
