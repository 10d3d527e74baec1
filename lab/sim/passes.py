"""Which operators a worker can take together with the one before them: all that follows from its turn."""

from __future__ import annotations

from penstock.scheduling.topology import Topology

MOST_BEHIND = 16  # as in the engine


def operators_behind(topology: Topology, most: int = MOST_BEHIND) -> tuple[tuple[int, ...], ...]:
    """For each operator all operators behind it, if they are few and nobody else writes to them; else none.

    >>> operators_behind(Topology(((1,), (2,), ()), ("source", "filter", "sink")))
    ((1, 2), (2,), ())
    """
    return tuple(_behind(first, topology, most) for first in range(len(topology.children)))


def are_chains(topology: Topology, behind: tuple[tuple[int, ...], ...]) -> tuple[bool, ...]:
    """For each operator whether it and all behind it stand in a row, so that only one could run at a time.

    >>> topology = Topology(((1, 2), (), ()), ("source", "sink", "sink"))
    >>> are_chains(topology, operators_behind(topology))
    (False, True, True)
    """
    return tuple(
        all(len(topology.children[number]) <= 1 for number in (first, *behind[first]))
        for first in range(len(topology.children))
    )


def _behind(first: int, topology: Topology, most: int) -> tuple[int, ...]:
    held = {first}
    for number in range(first + 1, len(topology.children)):
        writers = topology.parents[number]
        if writers and held.issuperset(writers):
            held.add(number)
            if len(held) > most:
                return ()
    if any(reader not in held for number in held for reader in topology.children[number]):
        return ()
    return tuple(sorted(held - {first}))
