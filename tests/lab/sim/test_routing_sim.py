"""Simulated tasks behind a grouping: time by hand, and what a route that follows the load gains."""

from __future__ import annotations

import numpy as np
import pytest

from lab.baselines.routing.catalogue import grouping_named
from lab.baselines.routing.hashed import HashGrouping
from lab.baselines.routing.two_tier import TwoTierGrouping
from lab.sim.routed_queues import QueueSetting, mean_latency_ms
from lab.sim.routing import RowCosts, best_share, hashed, merges_by_task, simulate
from lab.workloads.shop.data import popularity
from penstock.routing.control import RoutingControl


def test_a_batch_takes_as_long_as_its_slowest_task_by_hand() -> None:
    # hashes 0 and 2 belong to task 0, 1 to task 1: three rows of 10 ns against one
    run = simulate(HashGrouping(2), [np.array([0, 0, 2, 1])], 2, RowCosts(10.0), jitter=0.0)
    (batch,) = run.batches
    assert batch.task_ns == (30.0, 10.0)
    assert batch.elapsed_ns == 30.0
    assert batch.lit == pytest.approx(0.5)
    assert run.rows_per_s() == pytest.approx(4 / 30 * 1e9)


def test_groupings_that_split_keys_pay_for_the_merge_by_hand() -> None:
    # four rows of one key, in turn to two tasks; both partial results are merged by task 5 % 2 = 1
    run = simulate(grouping_named("shuffle", 2), [np.full(4, 5)], 2, RowCosts(10.0, 3.0), jitter=0.0)
    (batch,) = run.batches
    assert batch.task_ns == (20.0, 26.0)
    assert batch.merged == 2


def test_partial_aggregation_sends_one_row_a_key_and_task_by_hand() -> None:
    # each task reads two rows of key 5 and sends one count to task 1
    run = simulate(HashGrouping(2), [np.full(4, 5)], 2, RowCosts(10.0, 3.0), pre_aggregated=True, jitter=0.0)
    (batch,) = run.batches
    assert batch.sent == 2
    assert batch.task_ns == (20.0, 26.0)


def test_results_cost_the_task_that_has_them_by_hand() -> None:
    keys = np.array([0, 0, 2, 1])  # two keys of task 0, one of task 1
    run = simulate(HashGrouping(2), [keys], 2, RowCosts(10.0, result_ns=4.0), jitter=0.0)
    assert run.batches[0].task_ns == (38.0, 14.0)


def test_state_that_moves_costs_both_tasks() -> None:
    eager = RoutingControl(chi=0.1, settle=0.0, smoothing=1.0, cooldown=0, least_gain=0.0)
    keys = np.array([0, 2, 0, 2])  # both of task 0, in partitions 0 and 2
    run = simulate(TwoTierGrouping(2, 4, eager), [keys, keys], 2, RowCosts(10.0, moved_ns=7.0), jitter=0.0)
    first, second = run.batches
    assert first.task_ns == (40.0, 0.0)
    assert (first.moves, first.lit_expected) == (1, 0.0)
    assert second.task_ns == (27.0, 27.0)


def test_merges_are_by_the_hash_of_the_key() -> None:
    given = np.array([0, 1, 0, 0], np.int32)
    assert merges_by_task(np.array([4, 4, 4, 7]), given, 2).tolist() == [2.0, 1.0]


def test_other_seeds_hash_differently() -> None:
    keys = np.arange(1000)
    assert (hashed(keys, 1) != hashed(keys, 2)).all()
    np.testing.assert_array_equal(hashed(keys, 1), hashed(keys, 1))


def test_a_route_that_follows_the_load_comes_close_to_the_bound() -> None:
    random = np.random.default_rng(2)
    shares = popularity(2_000, 1.0)
    keys = random.choice(2_000, 20 * 5_000, p=shares)
    hashes = hashed(keys, 3)
    batches = [hashes[start : start + 5_000] for start in range(0, len(hashes), 5_000)]
    bound = 1e9 / 1_000 / best_share(shares, 8)
    plain = simulate(grouping_named("hash", 8), batches, 8, RowCosts(1_000.0), jitter=0.0)
    ours = simulate(grouping_named("two_tier", 8), batches, 8, RowCosts(1_000.0), jitter=0.0)
    assert ours.moves >= 1
    assert ours.lit() < plain.lit()
    assert ours.rows_per_s() > plain.rows_per_s()
    assert 0.8 * bound < ours.rows_per_s() <= bound * 1.02


def test_latency_is_the_work_alone_where_nothing_waits_and_grows_where_a_task_is_too_full() -> None:
    even, one = np.tile(np.arange(2), 500), np.zeros(1_000, np.int64)
    setting = QueueSetting(2, rate=1_000.0)
    costs = RowCosts(1e6)  # 1 ms: two tasks could do 2,000 a second
    assert mean_latency_ms(HashGrouping(2), even, costs, setting) == pytest.approx(1.0)
    slow = RowCosts(1.5e6)
    assert mean_latency_ms(HashGrouping(2), one, slow, setting) > 100.0
