"""Compute nodes as they were measured, and how uneven their loads are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.query.errors import PenstockError


@dataclass(frozen=True)
class Host:
    """A machine. ``load`` is what runs there without the tasks to be placed, in the unit of ``capacity``."""

    name: str
    load: float = 0.0
    capacity: float = 1.0
    active: bool = True  # runs something already; others sleep, and waking them costs energy

    def __post_init__(self) -> None:
        if not (math.isfinite(self.load) and self.load >= 0.0):
            raise PenstockError(f"load of node '{self.name}' must be a number of at least 0: got {self.load}")
        if not (math.isfinite(self.capacity) and self.capacity > 0.0):
            raise PenstockError(f"capacity of node '{self.name}' must be above 0: got {self.capacity}")
        if not self.active and self.load > 0.0:
            raise PenstockError(f"node '{self.name}' is not active, but has a load of {self.load}")


def node_load(cpu: float, memory: float, mu: float = 0.5) -> float:
    """a = μ · CPU + (1 − μ) · memory, both as shares of what the node has (eq. 24).

    >>> node_load(0.75, 0.25, mu=0.5)
    0.5
    """
    if not 0.0 <= mu <= 1.0:
        raise PenstockError(f"mu must be between 0 and 1: got {mu}")
    return mu * cpu + (1.0 - mu) * memory


def node_imbalance(loads: Iterable[float]) -> float:
    """LIN: how far the busiest node is above the mean, or the idlest below, as a share of it (eq. 38).

    ``loads`` are those of activated nodes only: a node that sleeps would make it 1 or more for ever.

    >>> node_imbalance([0.75, 0.25, 0.5])
    0.5
    """
    values = list(loads)
    total = math.fsum(values)
    if total <= 0.0:
        return 0.0
    return max(len(values) * max(values) / total - 1.0, 1.0 - len(values) * min(values) / total)
