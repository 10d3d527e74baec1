"""The scheduling benchmark builds its ratios as it says, and its sources and systems are what it compares."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lab.bench.measuring.rates import Paced
from lab.bench.measuring.report import Options
from lab.bench.scheduling.ablation import ablation_figures, ablation_ratios, cases, profile_figures
from lab.bench.scheduling.bench import FULL, MIX_QUERIES, PARTS, SHORT, run
from lab.bench.scheduling.curves import CurvePoint, curve_figures
from lab.bench.scheduling.loads import (
    RULES,
    decision_shares,
    load_figures,
    load_ratios,
    load_systems,
)
from lab.bench.scheduling.plots import draw_ablation, draw_curves, draw_rates, draw_shares, draw_steps
from lab.bench.scheduling.rates import compared_systems, rate_figures, rate_ratios
from lab.bench.scheduling.steps import Sample, step_figures, switching
from lab.bench.scheduling.systems import (
    THREADS,
    WORKLOADS,
    ablation,
    hand_over_sizes,
    handing_over,
    systems,
)
from penstock.engine.node import Node
from penstock.metrics.histogram import LatencyHistogram
from penstock.metrics.operators import OperatorMetrics
from penstock.metrics.run import RunMetrics
from penstock.query.errors import PenstockError
from penstock.scheduling.catalogue import POLICIES
from penstock.scheduling.dispatch.rules import Rules

NOTHING = RunMetrics(1.0, (), {})


def paced(p99_ms: float) -> Paced:
    return Paced(1e6, 1e6, p99_ms / 2, p99_ms, True, NOTHING)


def test_every_policy_and_threads_are_compared_on_the_same_blocks() -> None:
    nodes = systems()
    assert set(nodes) == {*POLICIES, THREADS}
    assert {node.block_events for node in nodes.values()} == {Node().block_events}
    assert {node.memory for node in nodes.values()} == {"blocks"}


def test_the_ablation_combines_threads_or_scheduling_with_queues_or_blocks() -> None:
    forms = {name: (node.threads, node.memory) for name, node in ablation().items()}
    assert forms == {
        "TQ": ("per_operator", "queues"),
        "SQ": ("pool", "queues"),
        "TM": ("per_operator", "blocks"),
        "full": ("pool", "blocks"),
    }
    assert ablation()["full"].scheduling == "state"


def test_small_hand_overs_do_not_make_small_edges() -> None:
    assert hand_over_sizes() == (1, 384, Node().block_events)
    for size in hand_over_sizes():
        node = handing_over(Node(), size)
        assert node.block_events == size
        assert node.max_chunks * node.chunk_blocks * node.block_events >= 4096
        assert node.turn_limit >= 1024
    assert handing_over(Node(), Node().block_events) == Node()


def test_a_mix_keeps_the_proportions_of_the_rates() -> None:
    rates = WORKLOADS["mix"].rates(4, 35.0)
    assert rates == [12.0, 3.0, 8.0, 12.0]
    graph, by_source = WORKLOADS["mix"].graph(4, 35e3)
    assert list(by_source) == ["yahoo-1-events", "linear_road-2-events", "taxi-3-events", "yahoo-4-events"]
    assert {node.id for node in graph.nodes if node.kind == "source"} == set(by_source)


def test_the_best_others_of_the_first_round_stay() -> None:
    highest = {"state": [], "a": [1.0], "b": [3.0], "c": [2.0], THREADS: [9.0]}
    assert compared_systems(highest, 2) == ["state", THREADS, "b", "c"]
    nearest = compared_systems({"state": [8.0], THREADS: [1.0], "a": [3.9], "b": [4.0], "c": [9.0]}, 9, 0.5)
    assert nearest == ["state", THREADS, "c"]  # half of the best, which is 9


def test_rate_ratios_are_medians_of_the_rounds_against_the_best_other() -> None:
    highest = {
        "state": [10.0, 12.0, 11.0],
        THREADS: [5.0, 4.0, 11.0],  # 2, 3, 1
        "a": [10.0, 10.0, 10.0],  # 1, 1.2, 1.1
        "b": [20.0, 6.0, 22.0],  # 0.5, 2, 0.5
        "c": [100.0],  # one round only
    }
    assert rate_ratios(highest) == {"rate_under_100ms_state_vs_threads": 2.0, "state_vs_best_other": 0.5}


def test_a_round_in_which_the_other_sustained_nothing_is_left_out() -> None:
    highest = {"state": [10.0, 10.0, 10.0], THREADS: [5.0, 0.0, 4.0], "a": [10.0, 8.0, 10.0]}
    assert rate_ratios(highest)["rate_under_100ms_state_vs_threads"] == 2.25


def test_where_the_others_sustained_nothing_there_is_no_ratio_and_no_failure() -> None:
    ratios = rate_ratios({"state": [10.0, 10.0], THREADS: [0.0, 0.0], "a": [0.0]})
    assert all(math.isnan(ratio) for ratio in ratios.values())


def test_the_profile_has_the_median_share_and_cost_of_every_operator() -> None:
    runs = [
        RunMetrics(2.0, (OperatorMetrics("a", "filter", 0, 100, 1, 1, busy_ns, 0, 0, 0, 0, 0, 0, 0),), {})
        for busy_ns in (10**9, 4 * 10**9, 5 * 10**8)
    ]
    expected = {"busy_share": 0.5, "event_ns": 1e7}
    assert profile_figures({"yahoo_1": {"TM": runs}}) == {"yahoo_1": {"TM": {"a": expected}}}


def test_the_ablation_ratio_is_the_geometric_mean_over_workloads_of_median_ratios() -> None:
    found = {
        "one_1": {7: {"full": [4.0, 9.0, 8.0], "TM": [2.0, 3.0, 2.0]}},  # 2, 3, 4
        "two_1": {7: {"full": [3.0, 3.0, 3.0], "TM": [4.0, 4.0, 2.0]}},  # 0.75, 0.75, 1.5
        "one_6": {7: {"full": [9.0, 9.0, 9.0], "TM": [1.0, 1.0, 1.0]}},
    }
    ratios = ablation_ratios(found, 7)
    assert (ratios["full_vs_tm_one_1"], ratios["full_vs_tm_two_1"], ratios["full_vs_tm_one_6"]) == (
        3,
        0.75,
        9,
    )
    assert ratios["full_vs_tm"] == pytest.approx(1.5)
    assert ablation_figures(found)["one_1"]["7"]["full"]["median"] == 8.0  # type: ignore[index]


def test_the_ablation_covers_every_size_and_form_and_six_queries_beside_one() -> None:
    short, full = cases(full=False), cases(full=True)
    assert [str(case) for case in short] == ["yahoo_1", "linear_road_1", "yahoo_6", "linear_road_6"]
    assert [str(case) for case in full] == [str(case) for case in short]
    assert all(case.sizes == hand_over_sizes() and len(case.systems) == 4 for case in [*short[:2], *full])
    assert all(case.sizes == (Node().block_events,) for case in short[2:])


def test_the_share_of_decisions_is_told_of_every_policy_at_the_load_it_names() -> None:
    busy = OperatorMetrics("a", "filter", 0, 1, 1, 1, 1000, 0, 0, 0, 0, 0, 0, 0)
    runs = [
        Paced(1.0, 1.0, 1.0, 1.0, True, RunMetrics(1.0, (busy,), {}, decision_ns=ns)) for ns in (1, 3, 50)
    ]
    by_share = {0.1: [], 0.5: [], 0.8: runs}
    shares = decision_shares(
        {"state": by_share, "random": by_share, THREADS: by_share, "no fusion": by_share}
    )
    assert shares == {"state": 0.003, "random": 0.003}


def test_the_default_is_compared_with_the_best_other_at_every_load() -> None:
    def timed(ms: float) -> Paced:
        latency = LatencyHistogram()
        latency.record(int(ms * 1e6))
        return Paced(1.0, 1.0, ms, ms, True, RunMetrics(1.0, (), {"out": latency.snapshot()}))

    loads = {
        name: {share: [timed(value) for value in values] for share in (0.1, 0.5, 0.8)}
        for name, values in {
            "state": (2.0, 3.0, 4.0),
            "random": (9.0, 9.0, 9.0),
            "round_robin": (4.0, 3.0, 2.0),
            THREADS: (0.1, 0.1, 0.1),
        }.items()
    }
    ratios = load_ratios(loads)
    assert ratios["state_p99_over_best_at_0.1"] == 1.0  # 0.5, 1, 2
    assert ratios["state_mean_over_best_at_0.8"] == pytest.approx(1.0, rel=0.1)
    figures = load_figures(loads)
    assert figures["state"]["0.5"]["p99_ms"]["mean"] == 3.0  # type: ignore[index]


def test_every_rule_is_switched_off_by_itself() -> None:
    nodes = load_systems()
    assert {*POLICIES, THREADS} < nodes.keys()
    for rule in RULES:
        assert nodes[f"no {rule}"].rules == replace(Rules(), **{rule: False})
    assert not nodes["no fusion"].fusion
    assert nodes["no fusion"].rules == Rules()


def test_a_part_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    assert list(PARTS) == ["rates", "loads", "ablation", "steps", "queries"]
    with pytest.raises(PenstockError, match="parts rates, loads"):
        run(Options(part="nothing", out=tmp_path))


def test_every_other_stretch_lets_twice_as_many_events_pass() -> None:
    def fill(offset: int, n: int, columns: dict[str, NDArray[np.int64]], start: int) -> None:
        columns["event_type"][start : start + n] = np.arange(offset, offset + n) % 3

    whole = {"event_type": np.full(40, -1)}
    switching(fill, 6)(0, 36, whole, 2)
    types = whole["event_type"][2:38].reshape(6, 6)
    assert (types == 0).sum(axis=1).tolist() == [2, 4, 2, 4, 2, 4]
    assert whole["event_type"][[0, 1, 38, 39]].tolist() == [-1] * 4
    pieces = {"event_type": np.full(36, -1)}
    for offset in range(0, 36, 4):
        switching(fill, 6)(offset, 4, pieces, offset)
    assert np.array_equal(pieces["event_type"], types.ravel())


def test_steps_are_summed_up_one_by_one() -> None:
    samples = [Sample(0.5, 10.0, 10.0, 1.0, 2.0), Sample(1.0, 10.0, 5.0, float("nan"), 2.0)]
    samples += [Sample(1.5, 20.0, 20.0, 4.0, 9.0)]
    assert step_figures({"rate": {"state": samples}}, 1.0) == {
        "rate": {
            "state": [
                {"achieved_share": 0.75, "worst_mean_ms": 1.0},
                {"achieved_share": 1.0, "worst_mean_ms": 4.0},
            ]
        }
    }


def test_the_whole_grid_has_all_numbers_of_queries_and_every_policy_in_every_round() -> None:
    assert FULL.curve_queries == tuple(range(1, 11))
    assert FULL.others == len(POLICIES) - 1
    assert SHORT.rounds == FULL.rounds == 5
    assert max(SHORT.curve_queries) == MIX_QUERIES


def test_figures_are_drawn(tmp_path: Path) -> None:
    point = CurvePoint(2e6, 1e6, 9e5, 1.1e6, 3.0, 9.0)
    curves = {"mix": {"state": {1: point, 10: point}, THREADS: {1: point, 10: point}}}
    at_share = {"state": {0.5: [paced(2.0), paced(3.0)], 0.8: [paced(4.0)]}}
    found = {"yahoo": {1: {"TQ": [1.0, 2.0], "full": [2.0, 3.0]}}}
    steps = {"rate_yahoo": {"state": [Sample(0.1, 2.0, 1.0, 1.0, 1.0)]}}
    rates = {"state": [1e6, 2e6], "random": [1e6]}
    drawn = [
        draw_curves(curves, tmp_path / "deep" / "a.png"),
        draw_shares(at_share, tmp_path / "b.png"),
        draw_ablation(found, tmp_path / "c.png"),
        draw_steps(steps, tmp_path / "d.png"),
        draw_rates(rates, tmp_path / "e.png"),
    ]
    assert all(Path(path).stat().st_size for path in drawn)
    assert rate_figures(rates)["rate_under_100ms_rounds"] == rates
    assert curve_figures(curves)["mix"]["state"]["10"]["achieved"] == 1e6  # type: ignore[index]
