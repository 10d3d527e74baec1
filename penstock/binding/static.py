"""Static binding: round robin at the start, in one of three orders, and no change after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any

from penstock.binding.policy import Binding, Load


class DealingOrder(Enum):
    """In which order the operators are dealt out to the threads."""

    INTERLEAVED = "interleaved"  # as in the graph, so query by query
    BY_TYPE = "by_type"  # all of one kind, then all of the next
    SHUFFLED = "shuffled"


def round_robin(
    kinds: Sequence[str], threads: int, order: DealingOrder = DealingOrder.INTERLEAVED, seed: int = 0
) -> Binding:
    """Deals the operators out to the threads, one each in turn.

    >>> round_robin(["source", "filter", "sink", "filter", "sink"], 2)
    (0, 1, 0, 1, 0)
    >>> round_robin(["source", "filter", "sink", "filter", "sink"], 2, DealingOrder.BY_TYPE)
    (0, 1, 1, 0, 0)
    """
    operators = list(range(len(kinds)))
    if order is DealingOrder.BY_TYPE:
        # kinds in the order in which they first appear, so that a source stays on the first thread
        first = {kind: position for position, kind in reversed(list(enumerate(kinds)))}
        operators.sort(key=lambda operator: first[kinds[operator]])
    elif order is DealingOrder.SHUFFLED:
        Random(seed).shuffle(operators)
    binding = [0] * len(kinds)
    for position, operator in enumerate(operators):
        binding[operator] = position % threads
    return tuple(binding)


@dataclass(frozen=True)
class Static:
    """The binding that it starts with stays."""

    order: DealingOrder = DealingOrder.INTERLEAVED
    seed: int = 0

    @property
    def name(self) -> str:
        return f"static_{self.order.value}"

    @property
    def adapts(self) -> bool:
        return False

    def initial(self, kinds: Sequence[str], threads: int) -> Binding:
        return round_robin(kinds, threads, self.order, self.seed)

    def plan(self, load: Load, state: Any) -> tuple[Binding, Any]:
        return load.binding, state
