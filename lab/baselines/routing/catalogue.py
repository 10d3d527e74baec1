"""The groupings by the names that users write."""

from __future__ import annotations

from collections.abc import Callable

from lab.baselines.routing.grouping import Grouping
from lab.baselines.routing.hashed import HashGrouping
from lab.baselines.routing.partial_key import PartialKeyGrouping
from lab.baselines.routing.popularity import PopularityGrouping
from lab.baselines.routing.shuffle import ShuffleGrouping
from lab.baselines.routing.two_tier import TwoTierGrouping
from penstock.query.errors import PenstockError

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
