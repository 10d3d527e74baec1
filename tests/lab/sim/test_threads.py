"""One thread per operator, with fewer cores than threads."""

from __future__ import annotations

import pytest

from lab.sim.distributions import Constant
from lab.sim.machine import Machine
from lab.sim.operators import Cost, SimGraph, SimOperator
from lab.sim.results import SimResult
from lab.sim.scheduled import Run
from lab.sim.threads import simulate_threads
from penstock.scheduling.thresholds import Adaptation
from tests.lab.sim.graphs import At, line, side_by_side


def run_of(graph: SimGraph, machine: Machine, **settings: object) -> SimResult:
    return simulate_threads(graph, machine, Run(1e-3, drain_s=0.0, **settings))  # type: ignore[arg-type]


def test_with_enough_cores_every_operator_runs_when_it_has_events() -> None:
    result = run_of(line(100.0, 50.0, arrivals=At(((0, 10), (100, 10)))), Machine(2, context_switch_ns=3))
    # op0 is woken: 3-1003 and goes on: -2003; op1 is woken twice: 1006-1506, 2006-2506
    assert result.latency_ns["op1"].tolist() == [1_506, 2_406]
    assert result.overheads.context_switches == 3


def test_operators_share_a_core_in_slices() -> None:
    arrivals = {0: At(((0, 25),)), 1: At(((0, 15),))}
    result = run_of(side_by_side(1.0, 1.0, arrivals=arrivals), Machine(1, slice_ns=10, context_switch_ns=2))
    # as worked out for the machine: a 2-12, b 14-24, a 26-36, b 38-43, a 45-50
    assert (result.latency_ns["op0"].tolist(), result.latency_ns["op1"].tolist()) == ([50], [43])
    assert result.overheads.context_switches == 5


def test_a_core_is_never_idle_while_a_thread_has_work() -> None:
    arrivals = {number: At(((0, 1_000),)) for number in range(7)}
    result = run_of(side_by_side(*[20.0] * 7, arrivals=arrivals), Machine(2, slice_ns=500))
    assert result.thread_busy_ns.sum() == 7 * 20_000
    assert result.quantile_ms(1.0) * 1e6 == pytest.approx(70_000, abs=500)


def test_a_full_reader_holds_its_writer_back_until_it_takes_something() -> None:
    result = run_of(line(10.0, 100.0, arrivals=At(((0, 6),))), Machine(2), capacity=2, turn_limit=2)
    assert result.latency_ns["op1"].tolist() == [620]
    assert result.processed.tolist() == [6, 6]


def test_sources_rest_from_turn_to_turn_as_the_engine_s_do() -> None:
    graph = side_by_side(10.0, arrivals={0: At(((0, 1), (100, 1), (200, 1)))})
    adaptation = Adaptation(rest_ns=2_000)
    rested = run_of(graph, Machine(2), adaptation=adaptation, reads_by_epoch=True)
    # the first at once, the others together when 2,000 ns are over
    assert rested.latency_ns["op0"].tolist() == [10, 1_920, 1_820]
    assert run_of(graph, Machine(2), adaptation=adaptation).latency_ns["op0"].tolist() == [10, 10, 10]


def test_threads_queue_for_the_interpreter_lock_at_every_kernel_of_a_turn() -> None:
    operators = tuple(SimOperator(name, Cost(Constant(80.0), turn_ns=20.0)) for name in ("a", "b"))
    graph = SimGraph(operators, ((), ()), {0: At(((0, 1),)), 1: At(((0, 1),))})
    machine = Machine(2, holds_interpreter=True, lock_uses=2)
    # 10 ns with the lock, 40 without, twice. a: 0-10-50, 50-60-100; b has to wait: 10-20-60, 60-70-110
    result = run_of(graph, machine)
    assert [result.latency_ns[name].tolist() for name in ("a", "b")] == [[100], [110]]


def test_a_thread_that_gets_a_core_finds_its_operator_cold() -> None:
    operator = SimOperator("a", Cost(Constant(80.0), turn_ns=20.0, cold_ns=7.0))
    graph = SimGraph((operator,), ((),), {0: At(((0, 1), (200, 1)))})
    assert run_of(graph, Machine(2)).latency_ns["a"].tolist() == [107, 107]
