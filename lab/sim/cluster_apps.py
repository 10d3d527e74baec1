"""The applications of ms-stream 7.1 as task graphs: COMMCOUNT and Top_N, with the shares of a grouping.

The paper shows their graphs without numbers. Costs and degrees here are chosen so that a cluster of its size
carries some ten thousand tuples a second, as it reports; everything else follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from penstock.placement.task_graph import TaskEdge, TaskGraph

ITEMS = 100_000
_VIRTUAL_PARTITIONS = 256


@dataclass(frozen=True)
class Stage:
    """One operator: its tasks share what comes in, evenly, or by key with ``shares``."""

    name: str
    tasks: int
    cost_us: float  # of a core, per tuple
    per_tuple: float = 1.0  # tuples that come to it per tuple of the input
    keyed: bool = False


@dataclass(frozen=True)
class Application:
    """A chain of operators; every task sends to all tasks of the next, in proportion to their shares."""

    name: str
    stages: tuple[Stage, ...]
    shares: tuple[tuple[float, ...], ...]  # by stage, of each task

    def task_graph(self, rate: float) -> TaskGraph:
        """B in cores and E in tuples per second at a rate of the input."""
        loads: list[float] = []
        names: list[str] = []
        first: list[int] = []
        for stage, shares in zip(self.stages, self.shares, strict=True):
            first.append(len(loads))
            names += [f"{stage.name}-{number}" for number in range(stage.tasks)]
            loads += [rate * stage.per_tuple * stage.cost_us / 1e6 * share for share in shares]
        edges = [
            TaskEdge(
                first[number] + a,
                first[number + 1] + b,
                rate * self.stages[number + 1].per_tuple * one * other,
            )
            for number in range(len(self.stages) - 1)
            for a, one in enumerate(self.shares[number])
            for b, other in enumerate(self.shares[number + 1])
        ]
        return TaskGraph(tuple(loads), tuple(edges), tuple(names))


def comm_count(zipf: float, grouping: str = "hash", seed: int = 0) -> Application:
    """Counts browsed items: source → parse → count by item → store."""
    stages = (
        Stage("source", 2, 15.0),
        Stage("parse", 6, 60.0),
        Stage("count", 8, 150.0, keyed=True),
        Stage("store", 2, 10.0),
    )
    return _application("COMMCOUNT", stages, zipf, grouping, seed)


def top_n(zipf: float, grouping: str = "hash", seed: int = 0) -> Application:
    """Items with the most purchases: source → split → count by item → partial ranks → total rank."""
    stages = (
        Stage("source", 2, 15.0),
        Stage("split", 6, 70.0),
        Stage("count", 8, 150.0, keyed=True),
        Stage("rank", 4, 60.0, 0.5, keyed=True),
        Stage("total", 1, 10.0, 0.1),
    )
    return _application("Top_N", stages, zipf, grouping, seed)


APPLICATIONS = {"comm_count": comm_count, "top_n": top_n}
#: A grouping that divides a key's state needs its parts brought together again, at this many tuples more.
MERGE = {"hash": 0.0, "two_tier": 0.0, "partial_key": 0.3, "popularity": 0.2}


def _application(name: str, stages: tuple[Stage, ...], zipf: float, grouping: str, seed: int) -> Application:
    merged: list[Stage] = []
    for stage in stages:
        merged.append(stage)
        if stage.keyed and MERGE[grouping]:
            merged.append(Stage(f"{stage.name}-merge", 2, 40.0, stage.per_tuple * MERGE[grouping]))
    shares = tuple(
        task_shares(zipf, stage.tasks, grouping, seed) if stage.keyed else (1.0 / stage.tasks,) * stage.tasks
        for stage in merged
    )
    return Application(name, tuple(merged), shares)


@lru_cache(maxsize=1024)
def task_shares(zipf: float, tasks: int, grouping: str, seed: int = 0) -> tuple[float, ...]:
    """The share of the tuples that each task of a keyed operator gets, in the long run.

    ``hash``: by key. ``two_tier``: by virtual partition, each to the least loaded task, the heaviest first:
    where the rebalancer comes to rest. ``partial_key``: a key goes to the less loaded of two tasks.
    ``popularity``: keys above a share of 1 in 10 tasks' worth are shuffled, the others hashed.
    """
    weights: NDArray[np.float64] = np.arange(1, ITEMS + 1, dtype=np.float64) ** -zipf
    weights /= weights.sum()
    random = np.random.default_rng(seed)  # the hash function
    match grouping:
        case "hash":
            loads = _summed(random.integers(0, tasks, ITEMS), weights, tasks)
        case "two_tier":
            partitions = _summed(random.integers(0, _VIRTUAL_PARTITIONS, ITEMS), weights, _VIRTUAL_PARTITIONS)
            loads = np.zeros(tasks)
            for share in np.sort(partitions)[::-1]:
                loads[loads.argmin()] += share
        case "partial_key":
            choices = random.integers(0, tasks, (ITEMS, 2))
            loads = _two_choices(weights, choices, tasks)
        case "popularity":
            hot = weights > 0.1 / tasks
            loads = _summed(random.integers(0, tasks, ITEMS)[~hot], weights[~hot], tasks)
            loads += weights[hot].sum() / tasks
        case _:
            raise ValueError(f"unknown grouping: {grouping!r}; groupings are {', '.join(MERGE)}")
    return tuple((loads / loads.sum()).tolist())


def _summed(owner: NDArray[np.int64], weights: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    return np.bincount(owner, weights, count).astype(np.float64)


def _two_choices(weights: NDArray[np.float64], choices: NDArray[np.int64], tasks: int) -> NDArray[np.float64]:
    """Tuple by tuple the less loaded of two: in the long run a key is divided so that both are as even as it
    can make them."""
    loads = np.zeros(tasks)
    for weight, (one, other) in zip(weights.tolist(), choices.tolist(), strict=True):
        gap = loads[other] - loads[one]
        first = min(max((weight + gap) / 2, 0.0), weight) if one != other else weight
        loads[one] += first
        loads[other] += weight - first
    return loads
