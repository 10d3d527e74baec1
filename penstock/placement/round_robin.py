"""Round robin: tasks are dealt out to the groups in turn, as Storm's scheduler does."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.placement.partitioner import Groups, check_groups
from penstock.placement.task_graph import TaskGraph


@dataclass(frozen=True)
class RoundRobinPlacement:
    """Even in number, blind to load and traffic.

    >>> RoundRobinPlacement().partition(TaskGraph((1.0, 9.0, 1.0), ()), 2)
    (0, 1, 0)
    """

    name: str = "round_robin"

    def partition(self, graph: TaskGraph, groups: int) -> Groups:
        check_groups(groups)
        return tuple(task % groups for task in range(len(graph)))
