"""Greedy rebinding: the smallest operators of overloaded threads move where they make things better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from penstock.binding.policy import Binding, Load
from penstock.binding.static import Order, round_robin


@dataclass(frozen=True)
class Greedy:
    """Algorithm 1 as it is meant: only what has load moves, and only where wl[k] + load < wl[j].

    Such a move never raises the largest workload, and it lowers the sum of their squares. There are
    finitely many bindings, so on constant load it comes to rest; there the threads differ by no more than
    the smallest load on the fullest one. The arithmetic is exact: sums that differ by rounding only
    would let an operator move to and fro for ever.
    """

    order: Order = Order.INTERLEAVED  # of the binding that it starts with
    tolerance: float = 0.0  # threads at most this share above the average are left alone: for noisy loads
    name: str = "greedy"

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
        most = average * (1 + Fraction(self.tolerance))
        for operator in sorted(range(len(work)), key=work.__getitem__):
            moved, j = work[operator], binding[operator]
            if not moved or workloads[j] <= most:
                continue
            k = min(range(load.threads), key=workloads.__getitem__)
            if workloads[k] + moved < workloads[j]:
                binding[operator] = k
                workloads[k] += moved
                workloads[j] -= moved
        return tuple(binding), state
