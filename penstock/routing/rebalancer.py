"""The rebalancer: which virtual partitions move where, so that no task is much fuller than the others
(ms-stream section 5.1, equation 29).

Equation 29 says how much the fullest task must give: enough to come down to (1 + χ) of the mean. Its
partitions are taken by ascending load until that is reached; then those stay that turn out not to be needed,
so that no part of the set would suffice. Each goes to the task that is emptiest at that moment, and only if
that task then stays below what the giver had. Such a move lowers the larger of the two loads and raises the
smaller, so a plan never raises LIT; and it lowers the sum of the squares, so planning comes to an end.

Two cares. LIT also has a second term, the emptiest task: where only that one is out of bounds, the same moves
are made until it is not. And whoever comes down to exactly (1 + χ) is above it again at the next noise: once
triggered by χ, a plan goes on to ``settle`` · χ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.query.errors import PenstockError
from penstock.routing.imbalance import load_imbalance, mean_load
from penstock.routing.load import task_loads
from penstock.routing.route import Move, Route, moves_between

DEFAULT_CHI = 0.2


@dataclass(frozen=True)
class RoutePlan:
    """A route that is planned, with what it is expected to bring, stated before anything moves."""

    route: Route
    moves: tuple[Move, ...]
    lit_before: float
    lit_expected: float
    #: Virtual partitions that alone are more than a task may have: no route can help against those.
    too_heavy: tuple[int, ...] = ()


@dataclass(frozen=True)
class Rebalancer:
    """Plans when LIT exceeds ``chi``; ``settle`` is the share of it that a plan then aims at.

    >>> Rebalancer(settle=1.0).plan((0, 0, 0, 1), 2, (4.0, 2.0, 1.0, 1.0)).moves
    (Move(partition=1, source=0, target=1), Move(partition=2, source=0, target=1))
    """

    chi: float = DEFAULT_CHI
    settle: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 < self.chi < float("inf"):
            raise PenstockError(f"chi must be a share above 0: got {self.chi!r}; write e.g. {DEFAULT_CHI}")
        if not 0.0 <= self.settle <= 1.0:
            raise PenstockError(f"settle must be between 0 and 1: got {self.settle!r}; write e.g. 0.5")

    def plan(self, route: Route, tasks: int, loads: Sequence[float]) -> RoutePlan:
        """The next route, given the load of every virtual partition; the same one if it is good enough."""
        totals = task_loads(route, tasks, loads)
        before = load_imbalance(totals)
        mean = mean_load(totals)
        heavy = tuple(
            partition for partition, load in enumerate(loads) if mean > 0 and load > (1 + self.chi) * mean
        )
        if tasks == 1 or before <= self.chi:
            return RoutePlan(route, (), before, before, heavy)
        planned = _Balancing(route, loads, list(totals), self.chi * self.settle).run()
        expected = load_imbalance(task_loads(planned, tasks, loads))
        if expected >= before:
            return RoutePlan(route, (), before, before, heavy)
        return RoutePlan(planned, moves_between(route, planned), before, expected, heavy)


class _Balancing:
    """The making of one plan."""

    def __init__(self, route: Route, loads: Sequence[float], totals: list[float], margin: float) -> None:
        self._owners, self._loads, self._totals = list(route), loads, totals
        self._mean = mean_load(totals)
        self._most, self._least = (1 + margin) * self._mean, (1 - margin) * self._mean
        self._owned: list[set[int]] = [set() for _ in totals]
        for partition, task in enumerate(route):
            self._owned[task].add(partition)

    def run(self) -> Route:
        totals = self._totals
        givers = set(range(len(totals)))
        while givers:
            fullest = max(givers, key=totals.__getitem__)
            above = totals[fullest] - self._mean
            # eq. 29; or what the emptiest lacks, of which nobody gives more than it has above the mean
            needed = max(totals[fullest] - self._most, min(self._least - min(totals), above))
            if needed <= 0:
                break
            if not self._give(fullest, needed):
                givers.discard(fullest)
        return tuple(self._owners)

    def _give(self, giver: int, needed: float) -> bool:
        """Moves the smallest sufficient set of a task's partitions; False if none of them can go anywhere."""
        moved = False
        for partition in sorted(self._sufficient(giver, needed), key=self._heavier_first):
            target = self._emptiest(giver)
            if self._fits(partition, giver, target):
                self._move(partition, giver, target)
                moved = True
        return moved

    def _sufficient(self, giver: int, needed: float) -> list[int]:
        """By ascending load until it is enough; then without those it is enough without, largest first."""
        target = self._emptiest(giver)
        chosen: list[int] = []
        given = 0.0
        for partition in sorted(self._owned[giver], key=lambda one: (self._loads[one], one)):
            if given >= needed:
                break
            if self._loads[partition] > 0 and self._fits(partition, giver, target):
                chosen.append(partition)
                given += self._loads[partition]
        for partition in sorted(chosen, key=self._heavier_first):
            if given - self._loads[partition] >= needed:
                chosen.remove(partition)
                given -= self._loads[partition]
        return chosen

    def _heavier_first(self, partition: int) -> tuple[float, int]:
        return (-self._loads[partition], partition)

    def _emptiest(self, giver: int) -> int:
        return min((t for t in range(len(self._totals)) if t != giver), key=self._totals.__getitem__)

    def _fits(self, partition: int, giver: int, target: int) -> bool:
        # Rounding must not let a partition go to and fro between loads that are equal.
        return self._totals[target] + self._loads[partition] < self._totals[giver] * (1 - 1e-9)

    def _move(self, partition: int, giver: int, target: int) -> None:
        self._owners[partition] = target
        self._owned[giver].discard(partition)
        self._owned[target].add(partition)
        self._totals[giver] -= self._loads[partition]
        self._totals[target] += self._loads[partition]
