"""Simulated workers under a scheduling policy: against queueing theory, and schedules worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from lab.sim.arrivals import Poisson
from lab.sim.distributions import Constant, Exponential, RandomDuration
from lab.sim.machine import Machine
from lab.sim.operators import Cost, Ratio, SimGraph, SimOperator
from lab.sim.results import SimResult
from lab.sim.scheduled import Run, simulate_scheduled
from penstock.scheduling.catalogue import POLICIES, policy_named
from penstock.scheduling.consumption import AtMost
from penstock.scheduling.dispatch.rules import Rules
from penstock.scheduling.thresholds import Adaptation, ThresholdRange
from tests.lab.sim.graphs import At, line, side_by_side
from tests.scheduling.dispatch.checked import Checked

MS = 1_000_000


def stations(count: int, per_second: float, service: RandomDuration) -> SimGraph:
    """Operators that share an arrival rate: with many, nearly no two events of one operator meet."""
    return SimGraph(
        tuple(SimOperator(f"op{number}", Cost(service)) for number in range(count)),
        tuple(() for _ in range(count)),
        {number: Poisson(per_second / count) for number in range(count)},
    )


def first_come(graph: SimGraph, workers: int, seconds: float, seed: int = 1) -> SimResult:
    run = Run(seconds, seed=seed, turn_limit=1, epoch_ns=1_000 * MS)
    return simulate_scheduled(graph, policy_named("first_come"), Machine(workers), workers, run)


# -- queueing theory: the mean time in the system is 1/μ plus the mean wait ---------------------------------


def test_one_server_with_exponential_service_is_m_m_1() -> None:
    # ρ = 0.6, service 1 ms: wait ρ / (1 − ρ) = 1.5 ms
    result = first_come(stations(1, 600.0, Exponential(MS)), workers=1, seconds=60.0)
    assert result.mean_ms() == pytest.approx(2.5, rel=0.05)
    assert result.thread_utilisation[0] == pytest.approx(0.6, rel=0.02)


def test_one_server_with_constant_service_is_m_d_1() -> None:
    # half of M/M/1's wait: 0.75 ms
    result = first_come(stations(1, 600.0, Constant(MS)), workers=1, seconds=60.0)
    assert result.mean_ms() == pytest.approx(1.75, rel=0.03)


def test_many_operators_on_three_workers_are_m_m_3() -> None:
    servers, load = 3, 2.1  # ρ = 0.7
    terms = [load**n / math.factorial(n) for n in range(servers)]
    last = load**servers / math.factorial(servers) / (1 - load / servers)
    wait_ms = last / (sum(terms) + last) / (servers - load)  # Erlang's C over cμ − λ
    result = first_come(stations(200, 2_100.0, Exponential(MS)), workers=servers, seconds=12.0)
    assert result.mean_ms() == pytest.approx(1 + wait_ms, rel=0.06)


def test_two_stations_in_a_row_are_independent() -> None:
    # Burke: with a worker each, both are M/M/1 with ρ = 0.5: 2 ms each
    service = Cost(Exponential(MS))
    graph = SimGraph((SimOperator("a", service), SimOperator("b", service)), ((1,), ()), {0: Poisson(500.0)})
    result = first_come(graph, workers=2, seconds=50.0)
    assert result.mean_ms() == pytest.approx(4.0, rel=0.06)


# -- by hand ------------------------------------------------------------------------------------------------


def run_of(graph: SimGraph, workers: int, machine: Machine | None = None, **settings: object) -> SimResult:
    run = Run(1e-3, drain_s=0.0, **settings)  # type: ignore[arg-type]
    return simulate_scheduled(graph, policy_named("congestion"), machine or Machine(workers), workers, run)


def test_two_operators_in_a_row_on_two_workers() -> None:
    # 10 events at 0, 10 at 100 ns. op0: 0-1000, 1000-2000; op1: 1000-1500, 2000-2500
    result = run_of(line(100.0, 50.0, arrivals=At(((0, 10), (100, 10)))), workers=2)
    assert result.latency_ns["op1"].tolist() == [1_500, 2_400]
    assert result.busy_ns.tolist() == [2_000, 1_000]
    assert result.processed.tolist() == [20, 20]
    assert result.nonempty_ns.tolist() == [2_000, 1_000]


def test_two_operators_in_a_row_on_one_worker() -> None:
    # op0 0-1000; then 10 wait at both, and of equal queues the one put first goes on: op0 -2000, op1 -3000
    result = run_of(line(100.0, 50.0, arrivals=At(((0, 10), (100, 10)))), workers=1)
    assert result.latency_ns["op1"].tolist() == [3_000, 2_900]
    assert result.turns.tolist() == [2, 1]


def test_two_operators_beside_one_another_on_two_workers_take_as_long_as_the_longer() -> None:
    graph = side_by_side(100.0, 30.0, arrivals={0: At(((0, 10),)), 1: At(((0, 10),))})
    result = run_of(graph, workers=2)
    assert (result.latency_ns["op0"].tolist(), result.latency_ns["op1"].tolist()) == ([1_000], [300])


def test_going_on_with_another_operator_costs_a_switch() -> None:
    # op0: 7 + 1000, op1: 7 + 500; then again both
    machine = Machine(1, operator_switch_ns=7)
    result = run_of(line(100.0, 50.0, arrivals=At(((0, 10), (5_000, 10)))), 1, machine)
    assert result.latency_ns["op1"].tolist() == [1_514, 1_514]
    assert result.overheads.operator_switches == 4


def test_waking_up_costs_a_context_switch() -> None:
    machine = Machine(1, context_switch_ns=9)
    result = run_of(side_by_side(10.0, arrivals={0: At(((0, 1), (5, 1), (500, 1)))}), 1, machine)
    # woken at 0: 9 + 10; the second goes on at once: 29 − 5; woken again
    assert result.latency_ns["op0"].tolist() == [19, 24, 19]
    assert result.overheads.context_switches == 2


def test_workers_take_turns_from_the_queue_one_at_a_time() -> None:
    graph = side_by_side(100.0, 100.0, arrivals={0: At(((0, 1),)), 1: At(((0, 1),))})
    result = run_of(graph, 2, Machine(2, serial_ns=20))
    assert sorted([*result.latency_ns["op0"], *result.latency_ns["op1"]]) == [120, 140]
    assert (result.overheads.serial_ns, result.overheads.serial_wait_ns) == (40, 20)


def test_a_turn_takes_what_the_consumption_says_and_the_marker_stays_with_the_last_event() -> None:
    graph = side_by_side(10.0, arrivals={0: At(((0, 10),))})
    result = run_of(graph, 1, consumption=AtMost(4))
    assert result.turns.tolist() == [3]
    assert result.latency_ns["op0"].tolist() == [100]


def test_a_writer_is_held_back_while_its_reader_is_full() -> None:
    graph = line(10.0, 100.0, arrivals=At(((0, 6),)))
    # op0 takes 2 (0-20), now op1 is full; op1 0-2 at 20, and op0 goes on with the next 2 meanwhile: 20-40
    result = run_of(graph, 2, capacity=2, consumption=AtMost(2))
    assert result.latency_ns["op1"].tolist() == [620]
    assert result.processed.tolist() == [6, 6]


def test_a_source_that_is_read_by_epochs_is_looked_at_when_it_is_due_and_then_after_an_epoch() -> None:
    graph = side_by_side(10.0, arrivals={0: At(((100, 1), (150, 1)))})
    result = run_of(graph, 1, reads_by_epoch=True, epoch_ns=1_000)
    assert result.latency_ns["op0"].tolist() == [10, 1_110 - 150 + 10]


def by_state(graph: SimGraph, adaptation: Adaptation, **settings: object) -> SimResult:
    run = Run(1e-4, drain_s=0.0, epoch_ns=1_000, adaptation=adaptation, **settings)  # type: ignore[arg-type]
    return simulate_scheduled(graph, policy_named("state", adaptation), Machine(1), 1, run)


def test_a_patient_source_that_was_read_empty_waits_for_the_beat() -> None:
    # nobody knows yet how busy the worker is: the patience is ten epochs, and the beats are at 10 µs, 20 µs
    graph = side_by_side(90.0, arrivals={0: At(((100, 10), (1_200, 1)))})
    hasty = by_state(graph, Adaptation(), reads_by_epoch=True)
    patient = by_state(graph, Adaptation(), reads_by_epoch=True, rules=Rules(alone=False))
    assert hasty.latency_ns["op0"].tolist() == [900, 2_000 - 1_200 + 90]
    assert patient.latency_ns["op0"].tolist() == [900, 10_000 - 1_200 + 90]


def test_a_pass_takes_those_behind_an_operator_however_few_their_events() -> None:
    operators = (
        SimOperator("source", Cost(Constant(100.0)), Ratio(0.2)),
        SimOperator("sink", Cost(Constant(50.0))),
    )
    graph = SimGraph(operators, ((1,), ()), {0: At(((0, 10),))})
    five = Adaptation(ThresholdRange(5.0, 10.0, 1.0), ThresholdRange(3_000.0, 1e6, 1.0))
    # two events are below the threshold: they go with the pass at 1000, or at the first epoch after 3000
    passes = replace(Rules.none(), passes=True)
    assert by_state(graph, five, rules=passes).latency_ns["sink"].tolist() == [1_100]
    assert by_state(graph, five).latency_ns["sink"].tolist() == [4_100]
    assert by_state(graph, five, rules=replace(passes, bounded=True)).latency_ns["sink"].tolist() == [4_100]


def test_short_sources_are_taken_several_at_once_with_one_decision() -> None:
    arrivals = {number: At(((0, 1), (5_000, 1))) for number in range(3)}
    graph = side_by_side(10.0, 10.0, 10.0, arrivals=arrivals)
    machine = Machine(1, serial_ns=7)
    run = Run(1e-5, drain_s=0.0, rules=replace(Rules.none(), together=True))
    result = simulate_scheduled(graph, policy_named("min_latency"), machine, 1, run)
    # how long they take is known after the first time: three decisions, then one
    assert result.overheads.serial_ns == 4 * 7
    assert sorted(int(result.latency_ns[f"op{number}"][1]) for number in range(3)) == [17, 27, 37]


def test_plans_are_as_far_apart_as_they_take() -> None:
    graph = side_by_side(10.0, arrivals={0: At(tuple((time, 1) for time in range(0, 1_000_000, 10_000)))})
    assert run_of(graph, 1, epoch_ns=100_000).overheads.decisions == 10  # in 1 ms
    assert run_of(graph, 1, epoch_ns=100_000, plan_ns=5_000).overheads.decisions == 2


def test_there_is_no_pass_while_other_workers_have_nothing_to_do() -> None:
    graph = line(100.0, 50.0, arrivals=At(((0, 10), (100, 10))))
    run = Run(1e-3, drain_s=0.0, rules=replace(Rules.none(), passes=True))
    result = simulate_scheduled(graph, policy_named("min_latency"), Machine(2), 2, run)
    # as without: while one worker runs op1, the other goes on with op0
    assert result.latency_ns["op1"].tolist() == [1_500, 2_400]


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("rules", [Rules(), Rules.none(), Rules(alone=False, bounded=True)])
def test_the_simulator_has_no_rule_of_its_own(
    policy: str, rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it runs is what the dispatcher gives out; and that is what its model would."""
    monkeypatch.setattr("lab.sim.scheduled.Dispatcher", Checked)
    before = Checked.exchanges
    operators = (
        SimOperator("source", Cost(Exponential(200.0), turn_ns=5_000.0)),
        SimOperator("half", Cost(Constant(100.0), turn_ns=5_000.0), Ratio(0.5)),
        SimOperator("left", Cost(Constant(300.0))),
        SimOperator("right", Cost(Exponential(100.0))),
    )
    one = SimGraph(operators, ((1,), (2, 3), (), ()), {0: Poisson(300_000.0)})
    adaptation = Adaptation.for_block(384, 4_000)
    run = Run(0.03, drain_s=0.05, capacity=4_000, reads_by_epoch=True, rules=rules, turn_limit=768)
    result = simulate_scheduled(one.repeated(3), policy_named(policy, adaptation), Machine(2), 2, run)
    assert Checked.exchanges > before + 50
    assert sum(len(result.latency_ns[name]) for name in result.latency_ns) > 0


# -- what always holds --------------------------------------------------------------------------------------


@pytest.mark.parametrize("passes", [False, True])
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_no_work_is_lost_or_done_twice_and_equal_seeds_give_equal_runs(policy: str, passes: bool) -> None:
    operators = (
        SimOperator("source", Cost(Exponential(2_000.0), turn_ns=500.0)),
        SimOperator("half", Cost(Constant(1_000.0)), Ratio(0.5)),
        SimOperator("left", Cost(Constant(3_000.0))),
        SimOperator("right", Cost(Exponential(1_000.0))),
    )
    graph = SimGraph(operators, ((1,), (2, 3), (), ()), {0: Poisson(100_000.0)})
    run = Run(0.02, seed=5, drain_s=0.1, rules=replace(Rules.none(), passes=passes))

    def simulated() -> SimResult:
        return simulate_scheduled(graph, policy_named(policy), Machine(2, operator_switch_ns=100), 2, run)

    result, again = simulated(), simulated()
    for query in ("left", "right"):
        assert len(result.latency_ns[query]) == result.arrived  # every marker arrived
        assert result.latency_ns[query].tolist() == again.latency_ns[query].tolist()
    assert result.overheads == again.overheads
    other = simulate_scheduled(graph, policy_named(policy), Machine(2), 2, Run(0.02, seed=6, drain_s=0.1))
    assert other.latency_ns["left"].tolist() != result.latency_ns["left"].tolist()


def test_no_worker_rests_while_work_waits() -> None:
    # three times the load that one worker can do: it is busy all the time
    graph = stations(5, 3_000.0, Constant(MS))
    result = first_come(graph, workers=1, seconds=0.5)
    assert result.thread_busy_ns[0] == pytest.approx(0.5e9, rel=0.01)
    assert result.processed.sum() == pytest.approx(500, abs=5)


def test_markers_that_never_arrive_count_with_their_age() -> None:
    graph = side_by_side(1_000.0, arrivals={0: At(((0, 1), (1, 1)))})
    run = Run(1e-6, drain_s=0.0, turn_limit=1)  # it ends after 1,000 ns: the first is done, the other is not
    result = simulate_scheduled(graph, policy_named("congestion"), Machine(1), 1, run)
    assert result.latency_ns["op0"].tolist() == [1_000, 999]
    assert np.array_equal(result.processed, [1])
