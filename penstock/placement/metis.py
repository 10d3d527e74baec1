"""METIS: multilevel graph partitioning, the default partitioner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.placement.partitioner import Groups, check_groups, renumbered
from penstock.placement.quality import group_loads, objective
from penstock.placement.task_graph import TaskGraph
from penstock.query.extras import Extra, needed

#: METIS counts in integers of 32 bits; sums of all weights stay far below their end.
_WEIGHT_SUM = 1_000_000


@dataclass(frozen=True)
class Metis:
    """Takes the best, by eq. 13, of METIS's two ways: recursive bisection and k ways at once.

    ``unevenness`` is how far a group may be above the mean in METIS's own search, in thousandths. Where a
    task is heavier than that by itself METIS gives up on balance, and may leave all tasks in one group. So
    such a task is also tried in a group of its own, with METIS dividing the others.
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
        found.add(self._apart(graph, groups))
        return self._best(graph, found, groups)

    def _apart(self, graph: TaskGraph, groups: int) -> Groups:
        """Tasks heavier than an even group alone, the others divided among the groups that are left."""
        heaviest_first = sorted(range(len(graph)), key=lambda task: (-graph.loads[task], task))
        load, alone = graph.total_load, 0
        while alone < groups - 1 and graph.loads[heaviest_first[alone]] * (groups - alone) > load:
            load -= graph.loads[heaviest_first[alone]]
            alone += 1
        others = sorted(heaviest_first[alone:])
        left = groups - alone
        rest = graph.part(others)
        if left == 1:
            of: Groups = (0,) * len(others)
        elif len(others) <= left:
            of = tuple(range(len(others)))
        else:
            ways = {self._divided(rest, left, recursive) for recursive in (True, False)}
            of = self._best(rest, ways, left)
        found = dict(zip(others, of, strict=True))
        found |= {task: left + place for place, task in enumerate(heaviest_first[:alone])}
        return renumbered([found[task] for task in range(len(graph))])

    def _best(self, graph: TaskGraph, found: set[Groups], groups: int) -> Groups:
        """By eq. 13; beside a heavy group that is the same however the others are divided: evenly then."""

        def key(of: Groups) -> tuple[float, float]:
            loads = group_loads(graph, of, groups)
            return round(objective(graph, of, groups, self.weight), 12), float(loads @ loads)

        return min(sorted(found), key=key)

    def _divided(self, graph: TaskGraph, groups: int, recursive: bool) -> Groups:
        with needed(Extra.SPARK, "METIS"):
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
