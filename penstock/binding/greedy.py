"""Greedy rebinding: the smallest operators of overloaded threads move where they make things better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from penstock.binding.policy import Binding, Load
from penstock.binding.static import DealingOrder, round_robin
from penstock.query.errors import PenstockError

#: More than measured loads vary by from one look to the next; threads this uneven still meet their deadlines.
DEFAULT_TOLERANCE = 0.1


@dataclass(frozen=True)
class Greedy:
    """Algorithm 1 as it is meant: only what has load moves, and only where wl[k] + load < wl[j].

    Such a move never raises the largest workload, and it lowers the sum of their squares. There are
    finitely many bindings, so on constant load it comes to rest; without a tolerance the threads then differ
    by no more than the smallest load on the fullest one. The arithmetic is exact: sums that differ by
    rounding only would let an operator move to and fro for ever.

    Measured loads are noisy, and smallest first means that many move for little. With ``tolerance`` a thread
    gives nothing away until it is that share above the average, and then comes down to the average, so that
    the next noise does not make it give again. Operators so small that all of them together would be less
    than that share of an average thread stay where they are.
    """

    order: DealingOrder = DealingOrder.INTERLEAVED  # of the binding that it starts with
    tolerance: float = DEFAULT_TOLERANCE
    name: str = "greedy"

    def __post_init__(self) -> None:
        if not 0.0 <= self.tolerance < float("inf"):
            raise PenstockError(f"tolerance must be a share of at least 0: got {self.tolerance!r}")

    @property
    def adapts(self) -> bool:
        return True

    def initial(self, kinds: Sequence[str], threads: int) -> Binding:
        return round_robin(kinds, threads, self.order)

    def plan(self, load: Load, state: Any) -> tuple[Binding, Any]:
        binding = list(load.binding)
        work = [Fraction(load_ns) for load_ns in load.work]
        workloads = [Fraction(0)] * load.threads
        for operator, thread in enumerate(binding):
            workloads[thread] += work[operator]  # eq. 3
        average = sum(workloads) / load.threads  # eq. 4
        tolerated = average * Fraction(self.tolerance)
        gives = [False] * load.threads  # whether it was found above what is tolerated
        for operator in sorted(range(len(work)), key=work.__getitem__):
            moved, j = work[operator], binding[operator]
            gives[j] |= workloads[j] > average + tolerated
            if not gives[j] or workloads[j] <= average or moved * len(work) <= tolerated:
                continue
            k = min(range(load.threads), key=workloads.__getitem__)
            if moved and workloads[k] + moved < workloads[j]:
                binding[operator] = k
                workloads[k] += moved
                workloads[j] -= moved
        return tuple(binding), state
