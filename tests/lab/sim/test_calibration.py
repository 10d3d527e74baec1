"""From measured runs to simulated operators."""

from __future__ import annotations

import pytest

import penstock as ps
from lab.sim.calibration import (
    MachineCosts,
    calibrated_graph,
    measure_machine,
    measured_operators,
    readers_of,
)
from lab.sim.distributions import Constant, LogNormal
from lab.sim.operators import Ratio, SimulatedWindow
from penstock import col, count, tumbling
from penstock.metrics.operators import OperatorMetrics
from penstock.metrics.run import RunMetrics


def operator(id_: str, kind: str, turns: int, events: int, busy_ns: int, emitted: int) -> OperatorMetrics:
    return OperatorMetrics(
        id=id_,
        kind=kind,
        pending=0,
        processed=events,
        emitted=emitted,
        turns=turns,
        busy_ns=busy_ns,
        backpressured=0,
        blocks_in_use=0,
        late=0,
        state_bytes=0,
        schedule_wait_ns=0,
        markers=0,
        marker_wait_ns=0,
    )


def run(*operators: OperatorMetrics) -> RunMetrics:
    return RunMetrics(1.0, operators, {})


def test_two_runs_tell_the_cost_of_a_turn_from_that_of_an_event() -> None:
    # 5,000 ns a turn and 20 ns an event: 10 turns of 100 events, and 10 of 10,000
    small = run(operator("f", "filter", 10, 1_000, 70_000, 250))
    large = run(operator("f", "filter", 10, 100_000, 2_050_000, 25_000))
    found = measured_operators([small, large])["f"]
    assert found.cost.turn_ns == pytest.approx(5_000)
    assert found.cost.event.mean_ns == pytest.approx(20)
    assert found.selectivity == Ratio(0.25)


def test_the_cost_of_a_turn_is_the_same_for_all_operators_and_few_events_do_not_tell_it() -> None:
    def measured(turns: int, events: int) -> RunMetrics:
        return run(
            operator("f", "filter", turns, events, turns * 5_000 + events * 20, events),
            operator("w", "window", turns, events, turns * 5_000 + events * 70, 10),
            operator("s", "sink", 2, 10, 3_000_000, 0),  # it opens a file
        )

    found = measured_operators([measured(100, 10_000), measured(20, 100_000)])
    assert [found[id_].cost.turn_ns for id_ in "fws"] == pytest.approx([5_000] * 3)
    assert found["w"].cost.event.mean_ns == pytest.approx(70)
    assert found["s"].cost.event.mean_ns == pytest.approx((6_000_000 - 4 * 5_000) / 20)


def test_with_one_run_the_cost_of_a_turn_is_given() -> None:
    one = run(operator("f", "filter", 10, 1_000, 70_000, 250))
    assert measured_operators([one], turn_ns=2_000)["f"].cost.event == Constant(50.0)
    assert measured_operators([one])["f"].cost.event == Constant(70.0)
    assert measured_operators([one], turn_ns=2_000, sigma=0.5)["f"].cost.event == LogNormal(50.0, 0.5)


def test_a_turn_never_costs_more_than_was_measured() -> None:
    one = run(operator("f", "filter", 10, 10, 5_000, 10))
    found = measured_operators([one], turn_ns=2_000)["f"]
    assert found.cost.turn_ns == 500.0
    assert found.cost.event.mean_ns == 0.0


def test_runs_too_much_alike_fall_back_to_the_cost_per_event() -> None:
    one = run(operator("f", "filter", 10, 1_000, 70_000, 250))
    found = measured_operators([one, one])["f"]
    assert (found.cost.turn_ns, found.cost.event.mean_ns) == (0.0, 70.0)


def test_the_graph_puts_readers_after_what_they_read() -> None:
    measured = measured_operators(
        [
            run(
                operator("sink", "sink", 1, 10, 100, 0),
                operator("source", "source", 1, 100, 1_000, 100),
                operator("window", "window", 1, 100, 3_000, 10),
            )
        ]
    )
    graph = calibrated_graph(
        measured,
        {"source": ["window"], "window": ["sink"]},
        {"source": 5_000.0},
        selectivities={"window": SimulatedWindow(10**9, 10)},
    )
    assert [one.name for one in graph.operators] == ["source", "window", "sink"]
    assert graph.children == ((1,), (2,), ())
    assert graph.operators[1].selectivity == SimulatedWindow(10**9, 10)
    assert sorted(graph.arrivals) == [0]


def test_operators_that_did_not_run_are_passed_through() -> None:
    app = ps.App("calibrated")
    data = {"ts": [0, 1], "n": [1, 2]}
    source = app.source("in", ps.sources.Columns(data, ps.Schema(ts="timestamp", n="int64")), event_time="ts")
    kept = source.filter(col("n") > 0).select("ts", "n")
    app.sink("out", kept.window(tumbling("1s")).agg(n=count()), ps.sinks.Memory())
    graph = app.graph()
    ids = [node.id for node in graph.nodes if node.kind != "select"]
    readers = readers_of(graph, ids)
    assert [readers[id_] for id_ in ids] == [(ids[1],), (ids[2],), (ids[3],), ()]


def test_a_machine_is_measured() -> None:
    costs = measure_machine(repetitions=1)
    assert costs.context_switch_ns > 0
    assert costs.turn_ns > 0
    machine = MachineCosts(5_000.4, 900.0).machine(cores=2)
    assert (machine.cores, machine.context_switch_ns, machine.handover_ns) == (2, 5_000, 5_000)
    assert machine.holds_interpreter
