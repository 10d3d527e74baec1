"""The groupings by the names that users write."""

from __future__ import annotations

from collections.abc import Callable

from penstock.query.errors import PenstockError
from penstock.routing.grouping import Grouping
from penstock.routing.hashed import HashGrouping
from penstock.routing.partial_key import PartialKeyGrouping
from penstock.routing.popularity import PopularityGrouping
from penstock.routing.shuffle import ShuffleGrouping
from penstock.routing.two_tier import TwoTierGrouping

#: Enough for a hot partition to have little in it besides its hot key.
DEFAULT_PARTITIONS_PER_TASK = 16

GROUPINGS: dict[str, Callable[[int], Grouping]] = {
    "hash": HashGrouping,
    "shuffle": ShuffleGrouping,
    "partial_key": PartialKeyGrouping,
    "popularity": PopularityGrouping,
    "two_tier": lambda tasks: TwoTierGrouping(tasks, tasks * DEFAULT_PARTITIONS_PER_TASK),
}


def grouping_named(name: str, tasks: int) -> Grouping:
    """A new grouping of that name for so many tasks."""
    if name not in GROUPINGS:
        raise PenstockError(f"unknown grouping: '{name}'; groupings are {', '.join(sorted(GROUPINGS))}")
    return GROUPINGS[name](tasks)
