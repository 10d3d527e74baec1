"""Tasks of one keyed operator under any grouping: the router and the rebalancer of ``penstock.routing``
decide, a virtual clock says what it comes to.

Time passes in batches. A task's time in a batch is what its rows cost; where a grouping splits keys, the
partial results of every batch are merged by tasks that are found by hashing, which is time of theirs. State
that moves is written by its old owner and read by its new one. A batch takes as long as its slowest task.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lab.baselines.routing.grouping import Grouping
from lab.baselines.routing.two_tier import TwoTierGrouping
from penstock.kernels.hashing import hash_i64
from penstock.routing.imbalance import load_imbalance
from penstock.routing.route import Move
from penstock.routing.router import Hashes, Tasks

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RowCosts:
    """What things cost a task, in ns."""

    row_ns: float
    merge_ns: float = 0.0  # a partial result, in the task that merges
    result_ns: float = 0.0  # what becomes of a key's result at the end of a batch, in the task that has it
    moved_ns: float = 0.0  # a key's state, in its old task and in its new one


@dataclass(frozen=True)
class BatchOutcome:
    """One batch: how long each task took, and what the rebalancer then did."""

    rows: int
    task_ns: tuple[float, ...]
    lit: float
    sent: int = 0  # rows, or partial results, that went from task to task
    merged: int = 0  # partial results that a second step put together
    moves: int = 0  # virtual partitions that changed their owner after it
    lit_expected: float | None = None  # what the plan behind those moves said

    @property
    def elapsed_ns(self) -> float:
        return max(self.task_ns)


@dataclass(frozen=True)
class RoutingRun:
    """All batches of a run."""

    batches: tuple[BatchOutcome, ...]

    @property
    def moves(self) -> int:
        return sum(batch.moves for batch in self.batches)

    @property
    def settled(self) -> tuple[BatchOutcome, ...]:
        """The second half of the batches, when routes have come to rest."""
        return self.batches[len(self.batches) // 2 :]

    def rows_per_s(self, batches: Sequence[BatchOutcome] | None = None) -> float:
        """What was processed in the time that it took; of the settled batches, if not told otherwise."""
        counted = self.settled if batches is None else batches
        return sum(batch.rows for batch in counted) / sum(batch.elapsed_ns for batch in counted) * 1e9

    def lit(self) -> float:
        """The mean imbalance of the settled batches."""
        return sum(batch.lit for batch in self.settled) / len(self.settled)


def simulate(
    grouping: Grouping,
    batches: Iterable[Hashes],
    tasks: int,
    costs: RowCosts,
    *,
    pre_aggregated: bool = False,
    jitter: float = 0.05,
    seed: int = 0,
) -> RoutingRun:
    """Runs batches of rows, given by the hashes of their keys.

    ``pre_aggregated``: every task reads an equal part of the rows and counts them itself; a partial result
    for each of its keys is what is grouped, and costs a merge where it arrives.
    ``jitter``: how much a task's measured time varies around what its rows cost, as a standard deviation.
    """
    random = np.random.default_rng(seed)
    outcomes: list[BatchOutcome] = []
    moving: Floats = np.zeros(tasks)  # state that the next batch has to write and read
    seen: list[Hashes] = []  # the keys of each batch so far: what has a state
    for hashes in batches:
        seen.append(hashes)
        sent = _partial(hashes, tasks) if pre_aggregated else hashes
        given = grouping.assign(sent)
        each_ns = costs.merge_ns if pre_aggregated else costs.row_ns
        spent: Floats = np.bincount(given, minlength=tasks).astype(np.float64) * each_ns
        if pre_aggregated:
            spent += len(hashes) / tasks * costs.row_ns
        lit = load_imbalance(spent.tolist())
        merged = 0
        if grouping.splits_keys:
            merges = merges_by_task(sent, given, tasks)
            merged = int(merges.sum())
            spent += merges * costs.merge_ns
        if costs.result_ns:
            spent += results_by_task(sent, given, tasks, merged=grouping.splits_keys) * costs.result_ns
        spent *= random.normal(1.0, jitter, tasks).clip(0.5, 1.5)
        took = spent + moving
        moving = np.zeros(tasks)
        moves, expected = 0, None
        if isinstance(grouping, TwoTierGrouping):
            decision = grouping.look(tuple(spent.tolist()))
            if decision.moves:
                moves, expected = len(decision.moves), decision.planned.lit_expected
                seen = [np.unique(np.concatenate(seen))]
                moving = _moving(decision.moves, seen[0], grouping, tasks) * costs.moved_ns
        outcomes.append(
            BatchOutcome(len(hashes), tuple(took.tolist()), lit, len(sent), merged, moves, expected)
        )
    return RoutingRun(tuple(outcomes))


def hashed(keys: NDArray[np.int64], seed: int) -> Hashes:
    """The hashes that Spark's ``xxhash64`` would give these keys if it began with another seed."""
    found: Hashes = np.empty(len(keys), np.int64)
    _hash(keys, np.uint64(seed), found)
    return found


def best_share(shares: Floats, tasks: int) -> float:
    """The least share of all work that the fullest task can have, whatever the routing: the larger of the top
    key's and of one in ``tasks``.

    >>> best_share(np.array([0.5, 0.3, 0.2]), 4), best_share(np.array([0.25] * 4), 2)
    (0.5, 0.5)
    """
    return max(float(shares.max()), 1.0 / tasks)


def merges_by_task(hashes: Hashes, given: Tasks, tasks: int) -> Floats:
    """Partial results by the task that merges them: that of the key's hash."""
    keys, places = np.unique(hashes, return_inverse=True)
    pairs = np.unique(places.astype(np.int64) * tasks + given)
    return np.bincount(keys[pairs // tasks] % tasks, minlength=tasks).astype(np.float64)


def results_by_task(hashes: Hashes, given: Tasks, tasks: int, *, merged: bool) -> Floats:
    """Whole results by the task that has them: that of the key's hash if they were ``merged``, else the one
    that the key was given to."""
    keys, first = np.unique(hashes, return_index=True)
    owners = keys % tasks if merged else given[first]
    return np.bincount(owners, minlength=tasks).astype(np.float64)


def _partial(hashes: Hashes, tasks: int) -> Hashes:
    """The keys of the partial results that tasks make of equal parts of the rows."""
    return np.concatenate([np.unique(hashes[task::tasks]) for task in range(tasks)])


def _moving(moves: Sequence[Move], keys: Hashes, grouping: TwoTierGrouping, tasks: int) -> Floats:
    """Keys that move, by the task that writes or reads them."""
    partitions = len(grouping.router.route)
    held = np.bincount(keys % partitions, minlength=partitions)
    found: Floats = np.zeros(tasks)
    for move in moves:
        for task in (move.source, move.target):
            found[task] += held[move.partition]
    return found


@njit(nogil=True, cache=True)
def _hash(keys, seed, found):  # type: ignore[no-untyped-def]
    for row in range(keys.size):
        found[row] = np.int64(hash_i64(keys[row], seed))
