"""METIS: multilevel graph partitioning, the default partitioner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.placement.partitioner import Groups, check_groups, renumbered
from penstock.placement.quality import objective
from penstock.placement.task_graph import TaskGraph

#: METIS counts in integers of 32 bits; sums of all weights stay far below their end.
_WEIGHT_SUM = 1_000_000


@dataclass(frozen=True)
class Metis:
    """Takes the better, by eq. 13, of METIS's two ways: recursive bisection and k ways at once.

    ``unevenness`` is how far a group may be above the mean in METIS's own search, in thousandths. A task
    heavier than that makes its group heavier, whoever divides.
    """

    unevenness: int = 30
    seed: int = 0
    weight: float = 0.5  # λ of eq. 13: traffic against evenness
    name: str = "metis"

    def partition(self, graph: TaskGraph, groups: int) -> Groups:
        check_groups(groups)
        if groups == 1 or len(graph) == 0:
            return (0,) * len(graph)
        if len(graph) <= groups:
            return tuple(range(len(graph)))
        found = {self._divided(graph, groups, recursive) for recursive in (True, False)}
        return min(sorted(found), key=lambda of: objective(graph, of, groups, self.weight))

    def _divided(self, graph: TaskGraph, groups: int, recursive: bool) -> Groups:
        import pymetis

        traffic, neighbours = graph.traffic(), graph.neighbours()
        starts = [0, *np.cumsum([len(tasks) for tasks in neighbours]).tolist()]
        rates = [float(traffic[task, other]) for task, tasks in enumerate(neighbours) for other in tasks]
        options = pymetis.Options(seed=self.seed, ufactor=self.unevenness)
        _, of = pymetis.part_graph(
            groups,
            pymetis.CSRAdjacency(starts, [other for tasks in neighbours for other in tasks]),
            vweights=_whole(graph.loads),
            eweights=_whole(rates) if rates else None,
            recursive=recursive,
            options=options,
        )
        return renumbered(of)


def _whole(weights: tuple[float, ...] | list[float]) -> list[int]:
    """Weights in proportion, as integers of at least 1: METIS takes no other."""
    total = sum(weights)
    scale = _WEIGHT_SUM / total if total > 0.0 else 0.0
    return [max(1, round(weight * scale)) for weight in weights]
