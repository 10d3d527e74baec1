"""Algorithm 1 as it is printed, for comparison: it overshoots, moves idle operators, and does not settle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.binding.policy import Binding, Load
from penstock.binding.static import DealingOrder, round_robin
from penstock.binding.workload import average_workload, thread_workloads


@dataclass(frozen=True)
class GreedyLiteral:
    """Line by line, except that the sort keeps the operators' ids, which line 11 needs."""

    order: DealingOrder = DealingOrder.INTERLEAVED
    name: str = "greedy_literal"

    @property
    def adapts(self) -> bool:
        return True

    def initial(self, kinds: Sequence[str], threads: int) -> Binding:
        return round_robin(kinds, threads, self.order)

    def plan(self, load: Load, state: Any) -> tuple[Binding, Any]:
        old, work = load.binding, load.work
        new = list(old)  # line 3
        wl = thread_workloads(old, work, load.threads).tolist()
        avg_wl = average_workload(wl)
        for i in sorted(range(len(work)), key=work.__getitem__):  # lines 9 to 11
            j = old[i]  # line 12
            if wl[j] > avg_wl:  # line 13
                k = wl.index(min(wl))
                new[i] = k
                wl[k] += work[i]
                wl[j] -= work[i]
        return tuple(new), state
