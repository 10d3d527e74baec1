"""How good a partition is: its cut, how even its groups are, and the paper's objective of both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.placement.partitioner import Groups
from penstock.placement.task_graph import Floats, TaskGraph


@dataclass(frozen=True)
class Quality:
    """The figures of one partition."""

    cut: float  # what travels between groups
    cut_share: float  # of all that travels
    balance: float  # load of the heaviest group over the mean: 1 is even, and as many as groups is the worst

    @classmethod
    def of(cls, graph: TaskGraph, groups: Groups, count: int) -> Quality:
        total = float(np.triu(graph.traffic()).sum())
        found = cut(graph, groups)
        return cls(found, found / total if total else 0.0, balance(graph, groups, count))

    def is_worse(self, other: Quality, tolerance: float = 1e-9) -> bool:
        """Whether it is worse than another on both counts at once."""
        return self.cut > other.cut * (1 + tolerance) + tolerance and self.balance > other.balance * (
            1 + tolerance
        )


def membership(groups: Groups, count: int) -> Floats:
    """V, a row per group: 1 where a task belongs to it (eq. 15)."""
    matrix = np.zeros((count, len(groups)))
    matrix[list(groups), range(len(groups))] = 1.0
    return matrix


def group_loads(graph: TaskGraph, groups: Groups, count: int) -> Floats:
    """The diagonal of W = V B Vᵀ: the load of each group (eq. 25, whose printed order does not multiply)."""
    v = membership(groups, count)
    return np.asarray((v * np.asarray(graph.loads)) @ v.T).diagonal().copy()


def cut(graph: TaskGraph, groups: Groups) -> float:
    """What travels between groups, every pair of tasks once: half of Σ vᵀ (D − E) v (eq. 18 and 19)."""
    traffic = graph.traffic()
    of = np.asarray(groups, np.int64)
    return float(traffic[of[:, None] != of[None, :]].sum() / 2) if len(of) else 0.0


def balance(graph: TaskGraph, groups: Groups, count: int) -> float:
    """The load of the heaviest group over the mean; 1 if there is no load."""
    loads = group_loads(graph, groups, count)
    return float(loads.max() * count / loads.sum()) if loads.sum() > 0 else 1.0


def objective(graph: TaskGraph, groups: Groups, count: int, weight: float = 0.5) -> float:
    """Z of eq. 13: traffic between groups and unevenness of their loads, ``weight`` being λ.

    The two have different units, so each is taken as a share: of all traffic, and of all load.
    """
    traffic = graph.traffic().sum()
    v = membership(groups, count)
    e = graph.traffic()
    between = float(np.einsum("gi,ij,gj->", v, np.diag(e.sum(1)) - e, v))  # eq. 18, summed
    loads = group_loads(graph, groups, count)
    uneven = float(np.abs(loads / count - loads.sum() / count**2).sum())  # the second term of eq. 13
    shares = (between / traffic if traffic else 0.0, uneven * count / loads.sum() if loads.sum() else 0.0)
    return weight * shares[0] + (1.0 - weight) * shares[1]
