"""Assignment: which instance a selection goes to. It never changes a result, only who works on it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np

from penstock.cep.selections.selections import Ints
from penstock.compiled.fixed import fixed


class Assignment(Enum):
    """How selections are dealt out to the registered instances.

    Fewest open lets a new instance catch up with the others, but gives it selections of one age: where their
    cost grows with age, all of them become expensive at the same time. Round robin mixes ages.
    """

    ROUND_ROBIN = "round_robin"
    FEWEST_OPEN = "fewest_open"  # counted at the batch's begin


def assign(rule: Assignment, count: int, instances: Sequence[int], open_counts: Ints, turn: int) -> Ints:
    """The instances of ``count`` selections that open one after the other.

    ``open_counts`` holds the open selections by instance number and is brought up to date; ``turn`` is how
    many selections were dealt out before.
    """
    registered = np.array(instances, np.int64)
    if rule is Assignment.ROUND_ROBIN or len(registered) == 1:
        chosen = registered[(turn + np.arange(count)) % len(registered)]
        np.add.at(open_counts, chosen, 1)
        return chosen
    chosen = np.empty(count, np.int64)
    _to_fewest(registered, open_counts, chosen)
    return chosen


@fixed("void(int64[::1], int64[::1], int64[::1])")
def _to_fewest(registered: Ints, open_counts: Ints, chosen: Ints) -> None:
    for place in range(len(chosen)):
        best = registered[0]
        for instance in registered:
            if open_counts[instance] < open_counts[best]:
                best = instance
        chosen[place] = best
        open_counts[best] += 1
