"""Minimum cost: box by box in post-order from the sinks, so that each is called least often (Aurora)."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.scheduling.cyclic import Cyclic, places
from penstock.scheduling.policy import Integers, Plan, Snapshot
from penstock.scheduling.topology import Topology


@dataclass(frozen=True)
class MinCost(Cyclic):
    """Goes round in post-order: an operator comes after all that feed it, so a round takes everything along
    and calls nobody twice."""

    name: str = "min_cost"

    def initial_state(self, topology: Topology) -> Integers:
        return places(post_order(topology))

    def plan(self, snapshot: Snapshot, state: Integers) -> tuple[Plan, Integers]:
        return self.plan_round(snapshot, state), state


def post_order(topology: Topology) -> tuple[int, ...]:
    """The operators by post-order traversals, each from one that nobody reads, as the root, to what it reads.

    >>> post_order(Topology(((2,), (2,), (3, 4), (), ()), ("source", "source", "union", "sink", "sink")))
    (0, 1, 2, 3, 4)
    """
    order: dict[int, None] = {}
    for root in (operator for operator in range(len(topology)) if not topology.children[operator]):
        unfinished = [(root, iter(topology.parents[root]))]
        while unfinished:
            operator, parents = unfinished[-1]
            parent = next((other for other in parents if other not in order), None)
            if parent is None:
                order[operator] = None
                unfinished.pop()
            else:
                unfinished.append((parent, iter(topology.parents[parent])))
    return tuple(order)
