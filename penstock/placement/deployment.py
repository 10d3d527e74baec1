"""Deployment by descending maximum padding: the heaviest group goes where most room is left (Algorithm 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.placement.nodes import Host
from penstock.query.errors import PenstockError

#: ξ: no node is filled beyond this share of what it can do (ms-stream 7.3).
DEFAULT_THRESHOLD = 0.8


@dataclass(frozen=True)
class Deployment:
    """What Algorithm 3 came to. Groups that fit nowhere are named, not left out in silence."""

    node_of: Mapping[int, int]  # group → node
    unplaced: Mapping[int, str]  # group → why it fits nowhere
    activated: tuple[int, ...]  # nodes that are woken for it

    @property
    def complete(self) -> bool:
        return not self.unplaced

    def loads(self, group_loads: Sequence[float], nodes: Sequence[Host]) -> dict[int, float]:
        """The share of its capacity that every activated node then uses."""
        found = {number: node.load for number, node in enumerate(nodes) if node.active}
        for group, number in self.node_of.items():
            found[number] = found.get(number, nodes[number].load) + group_loads[group]
        return {number: load / nodes[number].capacity for number, load in found.items()}


def deploy(
    group_loads: Sequence[float], nodes: Sequence[Host], threshold: float = DEFAULT_THRESHOLD
) -> Deployment:
    """A node for every group: at most one group each (eq. 22), activated nodes first.

    Groups come by descending load and activated nodes by descending padding, which is ξ · capacity − load:
    for nodes of one size that is the paper's ascending load. The first of each are compared (eq. 37); if they
    do not fit, no activated node fits this group, and an inactive one takes it. The printed algorithm puts
    inactive nodes in front of the activated ones, and may give ``in_1`` away twice.
    """
    if not 0.0 < threshold <= 1.0:
        raise PenstockError(f"threshold must be a share above 0 and at most 1: got {threshold}")
    for group, load in enumerate(group_loads):
        if not (math.isfinite(load) and load >= 0.0):
            raise PenstockError(f"load of group {group} must be a number of at least 0: got {load}")

    def padding(number: int) -> float:
        return threshold * nodes[number].capacity - nodes[number].load

    def by_padding(active: bool) -> list[int]:
        chosen = [number for number, node in enumerate(nodes) if node.active is active]
        return sorted(chosen, key=lambda number: (-padding(number), number))

    activated, asleep = by_padding(True), by_padding(False)
    node_of: dict[int, int] = {}
    unplaced: dict[int, str] = {}
    for group in sorted(range(len(group_loads)), key=lambda group: (-group_loads[group], group)):
        for free in (activated, asleep):
            if free and fits(group_loads[group], nodes[free[0]], threshold):
                node_of[group] = free.pop(0)
                break
        else:
            unplaced[group] = _why(group_loads[group], [*activated, *asleep], nodes, threshold)
    woken = tuple(sorted(number for number in node_of.values() if not nodes[number].active))
    return Deployment(dict(sorted(node_of.items())), unplaced, woken)


def fits(group_load: float, node: Host, threshold: float) -> bool:
    """R_g + R_cn ≤ ξ (eq. 37), for a node of any capacity."""
    return group_load + node.load <= threshold * node.capacity + 1e-12  # sums that differ by rounding only


def _why(load: float, free: Sequence[int], nodes: Sequence[Host], threshold: float) -> str:
    if not free:
        return "every node has a group already: fewer groups, or more nodes"
    room = max(threshold * nodes[number].capacity - nodes[number].load for number in free)
    return (
        f"its load is {load:.3g}, and the most that a free node can take is {max(room, 0.0):.3g}: "
        "more groups, or a larger node"
    )
