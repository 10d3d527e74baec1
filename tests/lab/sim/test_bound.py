"""Simulated threads that own operators: schedules, barriers, rebinds, the shared queue, all by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from lab.sim.arrivals import Poisson
from lab.sim.bound import Rebinding, SimulatedBinding, simulate_bound
from lab.sim.distributions import Exponential
from lab.sim.machine import Machine
from lab.sim.operators import Cost, SimGraph, SimOperator
from lab.sim.results import SimResult
from lab.sim.scheduled import Run
from penstock.binding.barrier import Barrier
from penstock.binding.greedy import Greedy
from penstock.binding.installation import Installation
from penstock.binding.non_blocking import NonBlocking
from penstock.binding.policy import Binding, Load
from penstock.binding.shared_queue import SharedQueue
from penstock.binding.static import Static
from tests.lab.sim.graphs import At, line, side_by_side


@dataclass(frozen=True)
class SwapOnce:
    """Two operators exchange their threads, once."""

    name: str = "swap_once"
    adapts: bool = True

    def initial(self, kinds: Sequence[str], threads: int) -> Binding:
        return (0, 1)

    def plan(self, load: Load, state: Any) -> tuple[Binding, Any]:
        return (load.binding[1], load.binding[0]) if state is None else load.binding, True


def static(
    graph: SimGraph,
    threads: int,
    machine: Machine,
    installation: type[Installation] = NonBlocking,
) -> SimResult:
    return simulate_bound(graph, Rebinding(Static(), installation), machine, threads, Run(1e-3, drain_s=0.0))


def swapped_at_500(installation: type[Installation], machine: Machine) -> SimResult:
    """op0, on thread 0, works from 0 to 1000; the swap is asked for at 500; both get an event at 2000."""
    graph = side_by_side(1_000.0, 100.0, arrivals={0: At(((0, 1), (2_000, 1))), 1: At(((2_000, 1),))})
    rebinding = Rebinding(SwapOnce(), installation, every_ns=500)
    return simulate_bound(graph, rebinding, machine, 2, Run(5e-6, drain_s=0.0))


def test_two_operators_in_a_row_on_two_threads() -> None:
    result = static(line(100.0, 50.0, arrivals=At(((0, 10), (100, 10)))), 2, Machine(2))
    assert result.latency_ns["op1"].tolist() == [1_500, 2_400]
    assert result.thread_busy_ns.tolist() == [2_000, 1_000]


def test_on_one_thread_the_older_task_goes_first() -> None:
    # op0 0-1000 of the first; then op1 of the first (born at 0) before op0 of the second (born at 100)
    result = static(line(100.0, 50.0, arrivals=At(((0, 10), (100, 10)))), 1, Machine(1))
    assert result.latency_ns["op1"].tolist() == [1_500, 2_900]


def test_a_thread_does_not_help_another_without_rebinding() -> None:
    # op0 and op2 are dealt out to thread 0, op1 to thread 1
    arrivals = {number: At(((0, 1),)) for number in range(3)}
    result = static(side_by_side(100.0, 10.0, 100.0, arrivals=arrivals), 2, Machine(2))
    assert [int(result.latency_ns[f"op{n}"][0]) for n in range(3)] == [100, 10, 200]


def test_switching_operators_and_waking_up_cost_exactly_what_they_cost() -> None:
    machine = Machine(1, operator_switch_ns=7, context_switch_ns=100)
    result = static(line(100.0, 50.0, arrivals=At(((0, 10), (5_000, 10)))), 1, machine)
    assert result.latency_ns["op1"].tolist() == [1_614, 1_614]
    assert (result.overheads.operator_switches, result.overheads.context_switches) == (4, 2)


def test_at_a_barrier_everybody_waits_for_the_slowest() -> None:
    result = swapped_at_500(Barrier, Machine(2, barrier_ns=20))
    overheads = result.overheads
    assert (overheads.barriers, overheads.rebinds) == (1, 2)
    # thread 1 waits from 500 to 1000, and the barriers cost both threads 20
    assert overheads.barrier_wait_ns == 500 + 2 * 20
    assert result.latency_ns["op0"].tolist() == [1_000, 1_000]
    assert result.thread_busy_ns.tolist() == [1_000 + 20 + 100, 20 + 1_000]


def test_without_a_barrier_nobody_waits() -> None:
    result = swapped_at_500(NonBlocking, Machine(2, rebind_ns=7))
    overheads = result.overheads
    assert (overheads.barriers, overheads.barrier_wait_ns, overheads.rebinds) == (0, 0, 2)
    assert overheads.rebind_ns == 2 * 7
    assert result.thread_busy_ns.tolist() == [1_000 + 7 + 100, 7 + 1_000]
    assert result.rebinds[0] == (500, 2)


def test_a_task_left_behind_is_forwarded_to_the_new_owner() -> None:
    # op0's second event comes at 400 and is in thread 0's queue when op0 goes to thread 1
    graph = side_by_side(1_000.0, 100.0, arrivals={0: At(((0, 1), (400, 1))), 1: At(((4_000, 1),))})
    rebinding = Rebinding(SwapOnce(), NonBlocking, every_ns=500)
    result = simulate_bound(graph, rebinding, Machine(2), 2, Run(5e-6, drain_s=0.0))
    assert result.overheads.forwarded == 1
    assert result.latency_ns["op0"].tolist() == [1_000, 1_600]
    assert result.thread_busy_ns.tolist() == [1_100, 1_000]


def test_in_a_shared_queue_any_thread_takes_the_oldest_task() -> None:
    arrivals = {number: At(((0, 1),)) for number in range(3)}
    result = static(side_by_side(100.0, 10.0, 100.0, arrivals=arrivals), 2, Machine(2), SharedQueue)
    assert [int(result.latency_ns[f"op{n}"][0]) for n in range(3)] == [100, 10, 110]


def test_a_shared_queue_is_used_by_one_thread_at_a_time_for_every_piece() -> None:
    operators = tuple(SimOperator(f"op{n}", Cost(turn_ns=10.0, batch=4)) for n in range(2))
    graph = SimGraph(operators, ((), ()), {n: At(((0, 8),)) for n in range(2)})
    result = static(graph, 2, Machine(2, serial_ns=5), SharedQueue)
    # two pieces each: 10 in the queue, 20 of work; the other thread waits for its 10 first
    assert sorted([*result.latency_ns["op0"], *result.latency_ns["op1"]]) == [30, 40]
    assert (result.overheads.serial_ns, result.overheads.serial_wait_ns) == (20, 10)


def test_greedy_moves_work_to_the_idle_thread_and_comes_to_rest() -> None:
    # op0 and op2 on thread 0 are too much for it; op1 and op3 on thread 1 have nothing to do
    busy = At(tuple((time_ns, 1) for time_ns in range(0, 100_000, 1_000)))
    graph = side_by_side(700.0, 1.0, 700.0, 1.0, arrivals={0: busy, 2: busy})
    rebinding = Rebinding(Greedy(), NonBlocking, every_ns=10_000)
    simulation = SimulatedBinding(graph, rebinding, Machine(2), 2, Run(1e-4, drain_s=1e-4))
    result = simulation.run()
    owners = simulation.installation.owners
    assert owners[0] != owners[2]
    assert result.overheads.rebinds == 1
    assert result.latency_ns["op0"][-1] == 700
    assert result.latency_ns["op2"][-1] == 700


@pytest.mark.parametrize("installation", [NonBlocking, Barrier, SharedQueue])
def test_nothing_is_lost_and_equal_seeds_give_equal_runs(installation: type[Installation]) -> None:
    operators = tuple(SimOperator(f"op{n}", Cost(Exponential(20_000.0 * (1 + n % 4)))) for n in range(12))
    children = tuple((n + 1,) if n % 2 == 0 else () for n in range(12))
    graph = SimGraph(operators, children, {n: Poisson(5_000.0) for n in range(0, 12, 2)})
    machine = Machine(3, context_switch_ns=100, serial_ns=50, barrier_ns=500, rebind_ns=100)
    rebinding = Rebinding(Greedy(), installation, every_ns=5_000_000, drift_ns=1_000_000)

    def simulated(seed: int) -> SimResult:
        return simulate_bound(graph, rebinding, machine, 3, Run(0.05, seed=seed, drain_s=1.0))

    result, again = simulated(4), simulated(4)
    assert len(result.latencies_ms()) == result.arrived
    assert result.latencies_ms().tolist() == again.latencies_ms().tolist()
    assert (result.overheads, result.rebinds) == (again.overheads, again.rebinds)
    assert simulated(5).latencies_ms().tolist() != result.latencies_ms().tolist()
