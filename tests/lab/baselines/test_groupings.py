"""The groupings: who gets a key, how even it is, and what has to be merged."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from lab.baselines.routing.catalogue import GROUPINGS, grouping_named
from lab.baselines.routing.grouping import Grouping, partial_results
from lab.baselines.routing.partial_key import PartialKeyGrouping
from lab.baselines.routing.popularity import PopularityGrouping
from lab.baselines.routing.two_tier import TwoTierGrouping
from penstock.query.errors import PenstockError
from penstock.routing.hot_keys import HotKey, beyond_routing, warning

TASKS = 4


def _keys(count: int = 8_000) -> NDArray[np.int64]:
    """A third of the rows have one key, the rest come from 500."""
    random = np.random.default_rng(5)
    hashes = random.integers(-(2**62), 2**62, 500)
    return np.where(random.random(count) < 1 / 3, hashes[0], hashes[random.integers(0, 500, count)])


def _fullest(tasks: NDArray[np.int32]) -> float:
    return float(np.bincount(tasks, minlength=TASKS).max() / len(tasks))


@pytest.mark.parametrize("name", sorted(GROUPINGS))
def test_every_row_gets_a_task_and_only_those_that_say_so_split_a_key(name: str) -> None:
    grouping: Grouping = grouping_named(name, TASKS)
    keys = _keys()
    tasks = np.concatenate([grouping.assign(keys[:4_000]), grouping.assign(keys[4_000:])])
    assert tasks.min() >= 0
    assert tasks.max() < TASKS
    is_split = partial_results(keys, tasks, TASKS) > len(np.unique(keys))
    assert grouping.name == name
    assert is_split == grouping.splits_keys


def test_groupings_that_split_keys_are_evener_than_hashing_and_merge_more() -> None:
    keys = _keys()
    given = {name: grouping_named(name, TASKS).assign(keys) for name in GROUPINGS}
    fullest = {name: _fullest(tasks) for name, tasks in given.items()}
    merged = {name: partial_results(keys, tasks, TASKS) for name, tasks in given.items()}
    assert fullest["shuffle"] == 0.25
    assert fullest["partial_key"] < fullest["hash"]
    assert fullest["popularity"] < fullest["hash"]
    assert merged["shuffle"] > merged["partial_key"] > merged["popularity"] > merged["hash"] == 500


def test_partial_key_grouping_takes_the_emptier_of_two_by_hand() -> None:
    tasks = PartialKeyGrouping(2).assign(np.array([0, 0, 0, 0]))
    # key 0: both choices of 0 are task 0, for 0 hashes to 0
    assert tasks.tolist() == [0, 0, 0, 0]
    assert len(set(PartialKeyGrouping(TASKS).assign(np.full(100, 12345)).tolist())) <= 2


def test_popularity_finds_the_hot_key() -> None:
    grouping = PopularityGrouping(TASKS)
    keys = _keys()
    grouping.assign(keys)
    values, counts = np.unique(keys, return_counts=True)
    assert values[counts.argmax()] in grouping.hot_keys().tolist()
    assert len(grouping.hot_keys()) < 20


def test_two_tier_routing_moves_partitions_after_a_look() -> None:
    grouping = TwoTierGrouping(2, 32)
    keys = np.repeat(np.arange(0, 64, 2), 10)  # even hashes only: task 0 has them all
    assert set(grouping.assign(keys).tolist()) == {0}
    for _ in range(3):
        decision = grouping.look((1e6, 0.0))
        if decision.moves:
            break
        grouping.assign(keys)
    assert decision.lit == 1.0
    assert decision.planned.lit_expected <= 0.1
    assert _fullest(grouping.assign(keys)) <= 0.55


def test_an_unknown_grouping_is_refused() -> None:
    with pytest.raises(PenstockError, match="unknown grouping: 'fields'"):
        grouping_named("fields", 2)


def test_a_key_hotter_than_a_task_is_named() -> None:
    hot = HotKey("totals", 7, 0.6)
    assert beyond_routing([hot, HotKey("totals", 8, 0.4)], 2) == (hot,)
    assert "step 'totals': key 7 has 60% of the events" in warning(hot, 2)
    assert "no routing can help" in warning(hot, 2)
