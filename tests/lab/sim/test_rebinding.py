"""The rebinding experiments on a small scale: the same queries, fewer threads, a few seconds."""

from __future__ import annotations

import numpy as np
import pytest

from lab.sim.rebinding import (
    STATIC,
    VARIANTS,
    Setting,
    compare,
    highest_agents,
    run_variant,
    share_in_time,
)
from lab.sim.traffic_load import TrafficLoad, skewed_shares, wandering
from penstock.binding.static import DealingOrder, round_robin

#: Twelve triples on eight threads: four threads get every top-k of the interleaved order.
SMALL = TrafficLoad(100_000, triples=12)
SETTING = Setting(threads=8, seconds=4.0, every_s=0.5)


def test_a_query_is_two_operators_and_a_triple_six() -> None:
    graph = TrafficLoad(220_000).graph()
    assert len(graph.operators) == 300
    assert len(graph.arrivals) == len(graph.ends()) == 150
    assert [operator.kind for operator in graph.operators[:6]] == [
        "collect_count",
        "count",
        "collect_speed",
        "speed",
        "collect_top",
        "top",
    ]


def test_the_interleaved_order_puts_every_top_k_on_four_of_24_threads() -> None:
    kinds = [operator.kind for operator in TrafficLoad(1).graph().operators]
    binding = round_robin(kinds, 24, DealingOrder.INTERLEAVED)
    assert {binding[number] for number, kind in enumerate(kinds) if kind == "top"} == {5, 11, 17, 23}


def test_a_top_k_sorts_all_agents() -> None:
    top = TrafficLoad(2**17, sort_ns=1.0).graph().operators[5]
    assert top.cost.mean_ns(2**17) == pytest.approx(2**17 * 17 + 1_000)


def test_every_variant_runs_on_the_same_arrivals() -> None:
    results = compare(SMALL, setting=SETTING)
    assert set(results) == set(VARIANTS)
    assert len({result.arrived for (result,) in results.values()}) == 1
    assert {len(result.latencies_ms()) for (result,) in results.values()} == {36 * 100}


def test_greedy_spreads_what_the_interleaved_order_piles_up() -> None:
    # with four times the cost per tuple the top-ks are too much for four threads of eight
    load = TrafficLoad(100_000, triples=12, sort_ns=8.0)
    piled, greedy = (run_variant(name, load, SETTING) for name in ("static_interleaved", "greedy"))
    assert piled.under(60.0, since_s=2.0) < greedy.under(60.0, since_s=2.0)
    assert greedy.overheads.rebinds > 0
    assert greedy.thread_utilisation.std() < piled.thread_utilisation.std()


def test_the_single_queue_is_limited_by_its_pieces() -> None:
    # 24 collecting operators × 196 blocks × 10 µs are more than a frame's 40 ms; whole frames are not
    slow = Setting(threads=8, seconds=2.0, machine=Setting().machine.__class__(cores=8, serial_ns=10_000))
    pieces = run_variant("single_queue", SMALL, slow)
    whole = run_variant("single_queue", TrafficLoad(100_000, triples=12, block=1_000_000), slow)
    assert pieces.under(20.0) < 0.5 < whole.under(20.0)


def test_the_highest_load_is_where_results_begin_to_be_late() -> None:
    setting = Setting(threads=2, seconds=3.0, settled_s=1.0)
    most = highest_agents("static_by_type", TrafficLoad(200_000, triples=2), setting, accuracy=0.1)
    fits, late = (
        run_variant("static_by_type", TrafficLoad(round(most * factor), triples=2), setting)
        for factor in (1.0, 1.5)
    )
    assert share_in_time(late, setting) < 0.99 <= share_in_time(fits, setting)


def test_agents_may_differ_by_triple_and_by_frame() -> None:
    agents = wandering(1_000, 2.0, triples=5, seed=3)
    assert agents.shape == (50, 5)
    assert agents.sum(1).tolist() == pytest.approx([5_000] * 50, abs=3)
    graph = TrafficLoad(agents, triples=5).graph()
    _, counts = graph.arrivals[6].groups(2 * 10**9, np.random.default_rng(0))
    assert counts.tolist() == agents[:, 1].tolist()
    assert np.mean(skewed_shares(50)) == pytest.approx(1.0)


def test_the_static_orders_are_among_the_variants() -> None:
    assert set(STATIC) < set(VARIANTS)


def test_an_operator_s_nth_turn_costs_the_same_whoever_runs_it() -> None:
    results = compare(SMALL, ("static_by_type", "greedy", "greedy_blocking"), SETTING, seeds=(5,))
    busy_ns = [result.busy_ns.tolist() for (result,) in results.values()]
    assert busy_ns[0] == busy_ns[1] == busy_ns[2]


def test_every_seed_shuffles_anew() -> None:
    policies = [VARIANTS["static_shuffled"](DealingOrder.INTERLEAVED, seed).policy for seed in (0, 1)]
    assert len({policy.initial(["a"] * 12, 4) for policy in policies}) == 2


def test_collecting_may_cost_per_tuple() -> None:
    operators = TrafficLoad(1_000, gather_ns=3.0, block=500, block_ns=10.0).graph().operators
    assert operators[2].cost.mean_ns(1_000) == 3_000 + 2 * 10
    assert operators[0].cost.mean_ns(1_000) == 10
