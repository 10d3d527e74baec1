"""The rebinding benchmark's own arithmetic, on figures made by hand, and small runs of what it measures."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from lab.bench.measuring.rates import Paced
from lab.bench.rebinding.bench import FULL, assumed, headline, ratios, simulated_figures
from lab.bench.rebinding.costs import FrameCosts, frame_graph_costs, frames_graph
from lab.bench.rebinding.experiments import (
    EAGER,
    INSTALLATIONS,
    SEARCH_SEEDS,
    RebindingExtent,
    Simulated,
    changed,
    simulate_all,
)
from lab.bench.rebinding.frames import FramePace
from lab.bench.rebinding.machine import ServerCosts, measure_server
from lab.bench.rebinding.measured import (
    SYSTEMS,
    distribution_of,
    measured_of,
    measured_summary,
    operators_by_kind,
    queries_graph,
)
from lab.bench.rebinding.plots import draw_blocking, draw_constant, draw_measured, draw_varying
from lab.bench.rebinding.simulated import (
    PairedDifference,
    SimulatedOutcome,
    SimulatedRun,
    Simulations,
    installations_compared,
    late_from_s,
    mean_over_seeds,
    simulate,
    summary,
)
from lab.sim.rebinding import SERVER, VARIANTS, Setting
from lab.sim.traffic_load import TrafficLoad
from penstock.app import App
from penstock.connectors.memory.discard import Discard
from penstock.connectors.memory.generator import Generator
from penstock.connectors.paced import PacedReader
from penstock.connectors.reader import Reader
from penstock.engine.node import Node
from penstock.engine.seat.assembly import assemble
from penstock.engine.seat.settings import Settings
from penstock.memory.coordinator import MemoryCoordinator
from penstock.memory.edges import LatencyMarker, Mark
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.metrics.histogram import LatencyHistogram
from penstock.metrics.operators import OperatorMetrics
from penstock.metrics.rebinding import RebindMetrics
from penstock.metrics.run import RunMetrics

MS = 1_000_000
RUN = SimulatedOutcome(
    under_20ms=1.0,
    under_20ms_whole=0.9,
    mean_ms=5.0,
    p50_ms=4.0,
    p99_ms=10.0,
    active_threads=4.0,
    rebinds=30.0,
    rebinds_per_plan=3.0,
    rebind_ms_per_plan=0.5,
    seconds=(0.0, 1.0, 2.0, 3.0),
    means_ms=(5.0, 25.0, 25.0, 25.0),
    distribution={"0-10": 0.9, "10+": 0.1},
)


class Scripted(Simulations):
    """Instead of simulating: results are in time up to so many agents, and jobs are remembered."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.jobs: list[SimulatedRun] = []

    def run(self, jobs: Sequence[SimulatedRun]) -> list[SimulatedOutcome]:
        self.jobs += jobs
        return [replace(RUN, under_20ms=1.0 if job.load.most_agents <= self.most else 0.5) for job in jobs]


# -- over the seeds ------------------------------------------------------------------------------


def test_a_difference_within_seeds_is_significant_where_seeds_differ_more_than_variants() -> None:
    theirs = [10.0, 20.0, 30.0]
    lower = PairedDifference.of([9.9, 19.85, 29.9], theirs)
    assert lower.mean == pytest.approx(-0.35 / 3)
    assert (lower.verdict, PairedDifference.of(theirs, [9.9, 19.85, 29.9]).verdict) == ("lower", "higher")
    assert PairedDifference.of([9.0, 21.0, 30.0], theirs).verdict == "no significant difference"


def test_one_seed_says_nothing_of_a_difference() -> None:
    assert PairedDifference.of([1.0], [2.0]).verdict == "no significant difference"


def test_the_paper_s_claim_on_installations_has_two_parts() -> None:
    barrier = [replace(RUN, p50_ms=4.0 + seed, p99_ms=10.0 + seed) for seed in range(3)]
    same = [replace(run, p99_ms=run.p99_ms - 1 - 0.1 * seed) for seed, run in enumerate(barrier)]
    found = installations_compared({"greedy": same, "greedy_blocking": barrier})
    assert found["p50_ms"]["difference"] == [0.0, 0.0, 0.0]
    assert found["p99_ms"]["difference"][0] == pytest.approx(-1.1)
    assert (found["p50_ms"]["significant"], found["p99_ms"]["significant"]) == (False, True)
    assert (found["median_not_worse"], found["p99_better"]) == (True, True)
    assert found["rebinds"] == {"non_blocking": [30.0, 30.0, 30.0], "blocking": [30.0, 30.0, 30.0]}
    found = installations_compared({"greedy": barrier, "greedy_blocking": same})
    assert (found["median_not_worse"], found["p99_better"]) == (True, False)


def test_seeds_are_averaged_second_by_second() -> None:
    other = replace(RUN, seconds=(0.0, 1.0), means_ms=(15.0, 5.0))
    assert mean_over_seeds([RUN, other]) == ([0.0, 1.0], [10.0, 15.0])
    figures = summary([RUN, replace(RUN, p99_ms=12.0, distribution={"0-10": 0.7, "10+": 0.3})])
    assert figures["p99_ms"][0] == 11.0
    assert figures["distribution"] == pytest.approx({"0-10": 0.8, "10+": 0.2})


def test_results_are_late_from_the_second_after_which_they_stay_late() -> None:
    blip = replace(RUN, seconds=tuple(map(float, range(6))), means_ms=(50.0, 5.0, 5.0, 21.0, 22.0, 23.0))
    assert (late_from_s([RUN]), late_from_s([blip])) == (1.0, 3.0)
    assert late_from_s([replace(RUN, means_ms=(5.0, 5.0, 5.0, 5.0))]) is None


# -- simulated -----------------------------------------------------------------------------------


def test_an_outcome_counts_from_when_bindings_have_settled() -> None:
    setting = Setting(threads=2, seconds=2.0, every_s=0.25, settled_s=1.0)
    greedy, static = (
        simulate(SimulatedRun(variant, TrafficLoad(100_000, triples=2, sort_ns=2.0), setting, 0))
        for variant in ("greedy", "static_interleaved")
    )
    assert len(greedy.seconds) == 2
    assert sum(greedy.distribution.values()) == pytest.approx(1.0)
    assert greedy.under_20ms >= greedy.under_20ms_whole
    assert static.rebinds_per_plan == static.rebind_ms_per_plan == 0.0


def test_the_highest_load_is_found_with_the_seeds_given() -> None:
    scripted = Scripted(most=300_000)
    told: list[int] = []
    found = scripted.highest_agents(
        "greedy", TrafficLoad(220_000), Setting(), (7, 8), tell=lambda agents, _: told.append(agents)
    )
    assert 300_000 / 1.02 <= found <= 300_000
    assert {job.seed for job in scripted.jobs} == {7, 8}
    assert told[:2] == [220_000, 275_000]


def test_the_load_is_evaluated_with_other_seeds_than_it_was_found_with() -> None:
    assert not set(SEARCH_SEEDS) & set(range(FULL.seeds))
    scripted = Scripted(most=300_000)
    plan = RebindingExtent(20.0, 40.0, 3, 2, FULL.measured, 1, 2.0)
    simulated = simulate_all(scripted, plan, FrameCosts(3.0, 8.0, 1.0), SERVER)
    evaluated = [job for job in scripted.jobs if job.load.most_agents == simulated.highest]
    assert {job.seed for job in evaluated} == set(range(3)) | set(SEARCH_SEEDS)  # the last try, and the rest
    assert {job.load.sort_ns for job in evaluated} == {1.0}
    assert {name: len(runs) for name, runs in simulated.at_highest.items()} == {
        name: 3 if name in (*EAGER, "greedy") else 2 for name in VARIANTS
    }
    assert {name: len(simulated.wandering[name]) for name in INSTALLATIONS} == dict.fromkeys(INSTALLATIONS, 3)
    assert headline(simulated)["under_20ms_greedy"] == 1.0
    assert [found["seeds"] for found in headline(simulated)["non_blocking_vs_blocking"].values()] == [6, 3, 3]
    assert simulated_figures(simulated)["sensitivity"]["tasks of 512 tuples"] == {"single_queue": 1.0}
    json.dumps([headline(simulated), simulated_figures(simulated), ratios(simulated.at_highest), assumed()])


def test_what_is_assumed_is_changed_one_by_one() -> None:
    load, setting = TrafficLoad(1_000, sort_ns=0.7), Setting()
    for what, (other, its_setting, variants) in changed(load, setting).items():
        differing = [
            name
            for name in ("load", "setting")
            if {"load": other, "setting": its_setting}[name] != {"load": load, "setting": setting}[name]
        ]
        assert len(differing) == 1, what
        assert set(variants) <= set(VARIANTS)
    queue = changed(load, setting)["queue costs five times as much"][1].machine
    assert queue == replace(SERVER, serial_ns=5 * SERVER.serial_ns)


def test_the_best_static_order_is_what_greedy_is_held_against() -> None:
    shares = {"static_by_type": 0.8, "static_shuffled": 0.6, "static_interleaved": 0.4, "greedy": 0.96}
    outcomes = {variant: [replace(RUN, under_20ms=shares.get(variant, 0.5))] * 2 for variant in VARIANTS}
    roads = {"greedy": [RUN], "greedy_blocking": [RUN]}
    simulated = Simulated(
        300_000, outcomes, outcomes, outcomes, outcomes, roads, {"tasks of 512": {"q": 0.1}}
    )
    found = headline(simulated)
    assert found["under_20ms_greedy"] == pytest.approx(0.96)
    assert (found["static_best"], found["under_20ms_static_best"]) == ("static_by_type", 0.8)
    assert found["under_20ms_single_queue"] == 0.5
    assert ratios(outcomes)["under_20ms_greedy_vs_static_best"] == pytest.approx(1.2)
    assert ratios(outcomes)["p99_non_blocking_vs_blocking"] == 1.0
    assert simulated_figures(simulated)["sensitivity"] == {"tasks of 512": {"q": 0.1}}


# -- measured ------------------------------------------------------------------------------------


def test_frames_are_due_at_once() -> None:
    pace = FramePace(100, frames_per_second=25)
    assert pace.when(1) is None
    assert [pace.due(now_ns) for now_ns in (5, 5 + 39 * MS, 5 + 40 * MS, 5 + 80 * MS)] == [100, 100, 200, 300]
    assert [pace.when(count) for count in (1, 100, 101, 200, 201)] == [
        5,
        5,
        5 + 40 * MS,
        5 + 40 * MS,
        5 + 80 * MS,
    ]


class Bursts(Generator):
    """A hundred events every 40 ms."""

    def open(self, layout: Layout, strings: StringPool) -> list[Reader]:
        readers = super().open(layout, strings)
        for reader in readers:
            assert isinstance(reader, PacedReader)
            reader._pace = reader._came_at = FramePace(100, frames_per_second=25)
        return readers


def test_latency_counts_from_the_frame_and_not_from_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(offset: int, n: int, columns: dict[str, Any], start: int) -> None:
        columns["ts"][start : start + n] = offset

    app = App("bursts")
    app.sink("all", app.source("bursts", Bursts(fill, {"ts": "timestamp"}), event_time="ts"), Discard())
    memory = MemoryCoordinator(background=False)
    source = assemble(app.graph(), Settings(workers=1), memory)[0].source
    assert source is not None
    source.open()
    reads = [1 * MS, 42 * MS, 83 * MS, 125 * MS]  # the first starts the clock
    clock = iter(reads)
    monkeypatch.setattr("penstock.engine.turns.source.time.perf_counter_ns", lambda: next(clock))
    born_ms = []
    for _ in reads:
        outbox: deque[Mark] = deque()
        assert source.read(1_000, outbox) == 100
        born_ms += [mark.created_ns // MS for mark in outbox if isinstance(mark, LatencyMarker)]
    assert born_ms == [1, 81, 121]  # a marker every 50 ms at most, none at 42


def test_every_way_of_binding_is_both_measured_and_simulated() -> None:
    assert set(VARIANTS) - set(SYSTEMS) == {"greedy_eager_blocking"}
    assert not set(SYSTEMS) - set(VARIANTS)


def test_150_queries_have_300_operators_besides_the_shared_filters() -> None:
    kinds = operators_by_kind(queries_graph(20_000, real_time=True))
    assert kinds["source"] == 1
    assert kinds["filter"] == 50
    assert kinds["sink"] == 150
    assert sum(kinds.values()) == 351


def test_latencies_are_shared_out_by_steps_of_ten_ms() -> None:
    histogram = LatencyHistogram()
    for ms in (1, 5, 15, 500):
        histogram.record(ms * MS)
    shares = distribution_of(histogram.snapshot())
    assert list(shares)[:2] == ["0-10", "10-20"]
    assert (shares["0-10"], shares["10-20"], shares["90+"]) == (0.5, 0.25, 0.25)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert math.isnan(LatencyHistogram().snapshot().share_within(20.0))


def test_a_measured_run_tells_what_rebinding_cost() -> None:
    histogram = LatencyHistogram()
    for ms in (10, 30):
        histogram.record(ms * MS)
    metrics = RunMetrics(
        elapsed_s=1.0,
        operators=(),
        latency={"count_0": histogram.snapshot()},
        decision_ns=3 * MS,
        rebinding=RebindMetrics(rebinds=4, stored_ns=8 * MS, waited_ns=5 * MS, forwarded=2),
    )
    found = measured_of(Paced(100.0, 100.0, 10.0, 30.0, True, metrics))
    assert (found.under_20ms, found.under_40ms, found.rebinds, found.stored_ms) == (0.5, 1.0, 4, 2.0)
    assert (found.waited_ms, found.decision_ms, found.forwarded) == (5.0, 3.0, 2)
    averaged = measured_summary([found, replace(found, rebinds=6, kept_up=False)])
    assert (averaged["rebinds"][0], averaged["kept_up"]) == (5.0, 1)


def test_costs_are_per_tuple_and_a_ranking_s_per_doubling() -> None:
    names = [field.name for field in fields(OperatorMetrics) if field.name not in ("id", "kind")]

    def operator(kind: str, busy_ns: int) -> OperatorMetrics:
        counts = {**dict.fromkeys(names, 0), "processed": 2 * 1_024, "busy_ns": busy_ns}
        return OperatorMetrics(id=kind, kind=kind, **counts)

    operators = (operator("filter", 2_048), operator("agg", 4_096), operator("top", 40_960))
    assert frame_graph_costs(RunMetrics(1.0, operators, {}), 1_024) == FrameCosts(1.0, 2.0, 2.0)


def test_the_operators_that_are_timed_give_a_result_for_every_frame() -> None:
    metrics = Node(workers=1).run(frames_graph(200, 4)).metrics
    assert (metrics["speed"].processed, metrics["top"].processed) == (4, 20)
    assert frame_graph_costs(metrics, 200).sort_ns > 0.0


def test_queues_and_rebinds_are_timed_on_the_engine_s_own_code() -> None:
    costs = measure_server(repetitions=1)
    assert min(costs.context_switch_ns, costs.serial_ns, costs.barrier_ns, costs.rebind_ns) > 0
    machine = ServerCosts(1, 2, 3, 4).machine(SERVER)
    assert (machine.context_switch_ns, machine.serial_ns, machine.barrier_ns, machine.rebind_ns) == (
        1,
        2,
        3,
        4,
    )
    assert machine.operator_switch_ns == SERVER.operator_switch_ns


def test_costs_replace_those_that_were_chosen() -> None:
    load = FrameCosts(3.0, 8.0, 1.5).load(TrafficLoad(1_000))
    assert (load.gather_ns, load.scan_ns, load.sort_ns, load.agents) == (3.0, 8.0, 1.5, 1_000)


def test_plots_are_written(tmp_path: Path) -> None:
    outcomes = {variant: [RUN, RUN] for variant in VARIANTS}
    paths = [
        draw_blocking({"greedy": [RUN], "greedy_blocking": [RUN]}, 100, tmp_path / "2.png"),
        draw_constant(outcomes, 100, tmp_path / "3.png"),
        draw_varying(outcomes, [50, 100, 50, 20], 4.0, tmp_path / "4.png"),
        draw_measured(dict.fromkeys(VARIANTS, RUN.distribution), 100, tmp_path / "measured.png"),
    ]
    assert all(Path(path).stat().st_size > 1_000 for path in paths)
