"""Passes: which operators follow from the turn of one before them alone."""

from __future__ import annotations

from penstock.scheduling.topology import Topology

MOST_BEHIND = 16  # operators behind the first


def operators_behind(topology: Topology, most: int = MOST_BEHIND) -> tuple[tuple[int, ...], ...]:
    """For each operator all operators behind it, if they are few and nobody else writes to them; else none.

    Then one worker can take an operator and all that follows from it in one go, without asking anyone.

    >>> operators_behind(Topology(((1,), (2,), ()), ("source", "filter", "sink")))
    ((1, 2), (2,), ())
    """
    return tuple(_behind(first, topology, most) for first in range(len(topology)))


def is_chain(topology: Topology, first: int, behind: tuple[int, ...]) -> bool:
    """Whether an operator and those behind it stand in a row, so that only one could run at a time."""
    return all(len(topology.children[number]) <= 1 for number in (first, *behind))


def _behind(first: int, topology: Topology, most: int) -> tuple[int, ...]:
    group = {first}
    for number in range(first + 1, len(topology)):
        writers = topology.parents[number]
        if writers and group.issuperset(writers):
            group.add(number)
            if len(group) > most:
                return ()
    if any(reader not in group for number in group for reader in topology.children[number]):
        return ()
    return tuple(sorted(group - {first}))
