"""The task graph as it was measured: what tasks cost (B) and what they say to each other (E)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.query.errors import PenstockError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TaskEdge:
    """What one task sends to another, in any one unit: rows, messages or bytes per second."""

    sender: int
    receiver: int
    rate: float


@dataclass(frozen=True)
class TaskGraph:
    """Tasks with their loads, and the edges between them. Tasks are numbered in the order of ``loads``."""

    loads: tuple[
        float, ...
    ]  # the diagonal of B: the share of a node, or the time per second, that a task takes
    edges: tuple[TaskEdge, ...]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.names and len(self.names) != len(self.loads):
            raise PenstockError(f"{len(self.loads)} tasks have loads, but {len(self.names)} have names")
        for task, load in enumerate(self.loads):
            if not (math.isfinite(load) and load >= 0.0):
                raise PenstockError(
                    f"load of task {self.name(task)} must be a number of at least 0: got {load}"
                )
        for edge in self.edges:
            if not (0 <= edge.sender < len(self) and 0 <= edge.receiver < len(self)):
                raise PenstockError(
                    f"an edge joins tasks {edge.sender} and {edge.receiver}; tasks are 0 to {len(self) - 1}"
                )
            if not (math.isfinite(edge.rate) and edge.rate >= 0.0):
                raise PenstockError(
                    f"rate between tasks {self.name(edge.sender)} and {self.name(edge.receiver)} must be a "
                    f"number of at least 0: got {edge.rate}"
                )

    @classmethod
    def of(cls, loads: Mapping[str, float], rates: Mapping[tuple[str, str], float]) -> TaskGraph:
        """By the names of the tasks.

        >>> TaskGraph.of({"split": 0.2, "count": 0.6}, {("split", "count"): 100.0}).edges
        (TaskEdge(sender=0, receiver=1, rate=100.0),)
        """
        number = {name: place for place, name in enumerate(loads)}
        edges = tuple(TaskEdge(number[a], number[b], rate) for (a, b), rate in rates.items())
        return cls(tuple(loads.values()), edges, tuple(loads))

    def __len__(self) -> int:
        return len(self.loads)

    def name(self, task: int) -> str:
        """What people call a task."""
        return f"'{self.names[task]}'" if self.names else str(task)

    @property
    def total_load(self) -> float:
        return math.fsum(self.loads)

    def traffic(self) -> Floats:
        """E both ways: what two tasks exchange, whoever sends (eq. 12); what a task tells itself is free."""
        matrix = np.zeros((len(self), len(self)))
        for edge in self.edges:
            if edge.sender != edge.receiver:
                matrix[edge.sender, edge.receiver] += edge.rate
                matrix[edge.receiver, edge.sender] += edge.rate
        return matrix

    def part(self, tasks: Sequence[int]) -> TaskGraph:
        """Some tasks with the edges between them, numbered in the order given."""
        number = {task: place for place, task in enumerate(tasks)}
        edges = tuple(
            TaskEdge(number[edge.sender], number[edge.receiver], edge.rate)
            for edge in self.edges
            if edge.sender in number and edge.receiver in number
        )
        names = tuple(self.names[task] for task in tasks) if self.names else ()
        return TaskGraph(tuple(self.loads[task] for task in tasks), edges, names)

    def neighbours(self) -> list[list[int]]:
        """Who exchanges anything with each task, by number."""
        found: list[set[int]] = [set() for _ in self.loads]
        for edge in self.edges:
            if edge.sender != edge.receiver and edge.rate > 0.0:
                found[edge.sender].add(edge.receiver)
                found[edge.receiver].add(edge.sender)
        return [sorted(tasks) for tasks in found]


def trimmed_rate(samples: Sequence[float]) -> float:
    """The rate of an edge from samples of it: their mean without the largest and the smallest (eq. 5).

    The equation takes two samples from an integral and divides by the whole time; meant is a trimmed mean.

    >>> trimmed_rate([10.0, 1000.0, 20.0, 0.0])
    15.0
    """
    kept: Iterable[float] = sorted(samples)[1:-1] if len(samples) > 2 else samples
    values = list(kept)
    return math.fsum(values) / len(values) if values else 0.0
