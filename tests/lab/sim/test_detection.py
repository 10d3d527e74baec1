"""Simulated detection: comparisons are the real detector's, acknowledgements those of the real queue."""

from __future__ import annotations

import numpy as np
import pytest

from lab.baselines.cpu_rule import CpuRule
from lab.sim.detection import DetectionLoad, simulate_detection
from lab.sim.detection_control import ByCpu, ByQueueing, ConstantDegree, Frame
from lab.sim.queue_lengths import QueueLengths
from lab.workloads.no_passing.data import ENTRY, EXIT, NoPassingSettings, passings
from lab.workloads.no_passing.detector import NoPassing, predicates
from penstock.cep.selections.assignment import Assignment
from penstock.cep.selections.instances import Assigned, EventBuffer, work_on
from penstock.cep.selections.selections import EventBatch
from penstock.cep.selections.splitter import SelectionSplitter
from penstock.scaling.degree import Requirement
from penstock.scaling.planner import QueueingPlanner
from penstock.scaling.profiles import measure_profile
from penstock.scaling.slices import Slicing


def load_of(settings: NoPassingSettings, comparison_s: float = 1.0) -> DetectionLoad:
    found = passings(settings)
    events = EventBatch(0, found.ts, {"pos": found.pos, "vehicle": found.vehicle})
    return DetectionLoad(events, found.pos == ENTRY, found.pos == EXIT, comparison_s)


@pytest.mark.parametrize("degree", [1, 3])
def test_comparisons_are_those_that_the_detector_makes(degree: int) -> None:
    load = load_of(NoPassingSettings(rate=0.2, seconds=4000.0, seed=3, cut=False))
    outcome = simulate_detection(
        load, SelectionSplitter(predicates(), keeps_queue=False), ConstantDegree(), degree
    )
    splitter, detector, buffer = SelectionSplitter(predicates()), NoPassing(), EventBuffer()
    splitter.register(0)
    buffer.add(load.events)
    dealt = splitter.split(load.events)
    work_on(
        detector,
        Assigned(dealt.cuts.closed, dealt.closed_starts, dealt.cuts.stops, dealt.cuts.closers),
        buffer,
    )
    assert len(dealt.cuts.closed) == len(dealt.cuts.starts)
    assert outcome.work_s.sum() == detector.comparisons > 10_000


def test_an_event_leaves_when_its_last_holder_has_acknowledged_it() -> None:
    """The same in the small with the splitter's own queue, one event at a time."""
    rule = Assignment.ROUND_ROBIN  # the other looks at batches
    load = load_of(NoPassingSettings(rate=0.05, seconds=4000.0, seed=5, cut=False), comparison_s=3.0)
    outcome = simulate_detection(
        load, SelectionSplitter(predicates(), rule, keeps_queue=False), ConstantDegree(), 3
    )
    splitter = SelectionSplitter(predicates(), rule)
    for instance in range(3):
        splitter.register(instance)
    times, open_by = load.times_s, {0: [], 1: [], 2: []}  # type: ignore[var-annotated]
    free = [0.0] * 3
    left = []
    entries: list[int] = []
    owner: dict[int, int] = {}
    for k in range(len(times)):
        columns = {name: column[k : k + 1] for name, column in load.events.columns.items()}
        dealt = splitter.split(EventBatch(k, load.events.times[k : k + 1], columns))
        for number in dealt.cuts.closed.tolist():
            open_by[owner.pop(number)].remove(number)
        for number, instance in enumerate(dealt.opened_by.tolist(), dealt.cuts.first_number):
            owner[number] = instance
            open_by[instance].append(number)
            entries.append(k)
        done = times[k]
        for instance, held in open_by.items():
            assert splitter.queue.holds(instance) == bool(held)
            if held:
                cost = 3.0 * sum(len(entries) - 1 - number for number in held) if load.compared[k] else 0.0
                begins = max(times[k], free[instance])
                done = max(done, begins + cost)
                if load.compared[k]:
                    free[instance] = begins + cost
                splitter.queue.acknowledge(instance, k + 1)
        assert splitter.queue.length == 0
        left.append(done)
    assert outcome.acknowledged_s == pytest.approx(left)


def test_the_simulation_does_not_depend_on_how_often_it_looks() -> None:
    load = load_of(NoPassingSettings(rate=0.5, seconds=5000.0, seed=2), comparison_s=2e-5)

    class Often(ConstantDegree):
        def next_s(self, now_s: float) -> float:
            return now_s + 7.0

    outcomes = [
        simulate_detection(
            load, SelectionSplitter(predicates(), Assignment.ROUND_ROBIN, keeps_queue=False), how, 3
        )
        for how in (ConstantDegree(), Often())
    ]
    assert (outcomes[0].acknowledged_s == outcomes[1].acknowledged_s).all()
    assert outcomes[0].most_open == outcomes[1].most_open


def test_queueing_theory_changes_the_degree_and_the_cpu_rule_sees_no_load_at_first() -> None:
    load = load_of(NoPassingSettings(rate=1.0, seconds=2500.0, seed=2), comparison_s=1.2e-6)
    profile = measure_profile("x", [0.5, 1.0, 2.0], lambda r: 1.0 * r**2 * np.linspace(0.9, 1.0, 50), 900.0)
    control = ByQueueing(QueueingPlanner(profile, Requirement(15, 0.95)), Slicing(arrivals=200))
    outcome = simulate_detection(load, SelectionSplitter(predicates(), keeps_queue=False), control, 4)
    assert {step.observed for step in outcome.degrees} > {4, 2}
    assert all(step.requested == step.planned for step in outcome.degrees)
    assert all(step.alive >= step.observed for step in outcome.degrees)
    by_cpu = simulate_detection(load, SelectionSplitter(predicates(), keeps_queue=False), ByCpu(CpuRule()), 4)
    assert min(step.observed for step in by_cpu.degrees if step.at_s < 700.0) == 1


def test_the_cpu_rule_averages_the_parts_of_a_frame() -> None:
    control = ByCpu()
    nothing = np.zeros(0)
    assert control.plan(Frame(0.0, 2.0, nothing, np.array([1.0]), 3)) is None
    assert control.plan(Frame(2.0, 5.0, nothing, np.array([0.8]), 3)) == 3
    assert control.next_s(5.0) == 10.0
    assert control.plan(Frame(5.0, 10.0, nothing, np.array([0.9]), 3)) == 4


def test_queue_lengths_are_a_staircase() -> None:
    found = QueueLengths.of(np.array([1.0, 2.0, 3.0]), np.array([4.0, 6.0, 9.0]), 8.0)
    assert found.share_within(0) == pytest.approx(1 / 8)
    assert found.share_within(2) == pytest.approx(7 / 8)
    assert (found.percentile(50), found.percentile(99), found.longest) == (1, 3, 3)
    assert found.sampled(2.5).tolist() == [2, 2, 1]
