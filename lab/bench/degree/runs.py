"""The runs behind the benchmark of degrees: the traffic scenario in virtual time, and who sets the
degree in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lab.bench.measuring.report import progress
from lab.sim.detection import DetectionLoad, DetectionOutcome, simulate_detection
from lab.sim.detection_control import ByCpu, ByQueueing, ConstantDegree, Controller
from lab.sim.queue_lengths import QueueLengths
from lab.workloads.no_passing.data import ENTRY, EXIT, NoPassingSettings, VehicleArrivals, passings
from lab.workloads.no_passing.detector import predicates
from penstock.cep.selections.selections import EventBatch
from penstock.cep.selections.splitter import SelectionSplitter
from penstock.scaling.degree import Requirement
from penstock.scaling.forecast import Forecast, Naive, RateLine
from penstock.scaling.planner import QueueingPlanner
from penstock.scaling.profiles import OperatorProfile, measure_profile
from penstock.scaling.slices import Slicing

Floats = NDArray[np.float64]

REQUIREMENT = Requirement(limit=15, probability=0.95)
HORIZON_S = 60.0
PEAK = 5.0  # cars a second
P99_AT_PEAK_S = 1.25  # the paper's measurement; one comparison costs what this makes of it
INITIAL = 8
RATES = (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0)
SETTLED_S = 1000.0  # from then on the zone is as full as it gets

_PROFILE_SEED = 1000  # no run has the arrivals that the profile was measured with


def load_of(settings: NoPassingSettings, comparison_s: float = 1.0) -> DetectionLoad:
    """The passings as a load: exits are compared, entries are listed."""
    found = passings(settings)
    events = EventBatch(0, found.ts, {"pos": found.pos, "vehicle": found.vehicle})
    return DetectionLoad(events, found.pos == ENTRY, found.pos == EXIT, comparison_s)


@dataclass(frozen=True)
class Scenario:
    """What a comparison costs, and how long an event takes one instance at each rate."""

    comparison_s: float
    profile: OperatorProfile


def measure_scenario(hours: float) -> Scenario:
    """Profiles one instance that has all selections, at steady rates, in units of comparisons; the unit
    is then set so that the 99th percentile at 5 cars a second is the paper's."""
    at_peak = _comparisons(PEAK, hours)
    unit_s = P99_AT_PEAK_S / float(np.percentile(at_peak, 99))
    profile = measure_profile(
        "no_passing", RATES, lambda rate: _comparisons(rate, hours) * unit_s, _selection_s()
    )
    return Scenario(unit_s, profile)


def _comparisons(rate: float, hours: float) -> Floats:
    """Comparisons of every exit, once the zone is full."""
    settings = NoPassingSettings(seconds=SETTLED_S + hours * 3600.0, rate=rate, seed=_PROFILE_SEED)
    load = load_of(settings)
    outcome = simulate_detection(
        load, SelectionSplitter(predicates(), keeps_queue=False), ConstantDegree(), 1
    )
    return outcome.work_s[load.compared & (load.times_s > SETTLED_S)]


def _selection_s() -> float:
    """How long selections are open, as the splitter sees it."""
    load = load_of(NoPassingSettings(seconds=2.0 * SETTLED_S, rate=1.0, seed=_PROFILE_SEED))
    splitter = SelectionSplitter(predicates(), keeps_queue=False)
    splitter.register(0)
    dealt = splitter.split(load.events)
    times = load.times_s
    return float((times[dealt.cuts.stops] - times[dealt.closed_starts]).mean())


@dataclass(frozen=True)
class DegreeRun:
    """One run: its queue and its fleet over time."""

    outcome: DetectionOutcome
    compared: NDArray[np.bool_]
    families: dict[str, int]  # how often arrivals were classified as what

    @cached_property
    def queue(self) -> QueueLengths:
        """Every event that the splitter has not discarded, entries and exits."""
        return self._lengths(np.ones(len(self.compared), np.bool_))

    @cached_property
    def exits_queue(self) -> QueueLengths:
        """Exits only: those that the model of the queue counts."""
        return self._lengths(self.compared)

    def mean(self, name: str) -> float:
        """The mean over time of one of the fleet's degrees."""
        steps = self.outcome.degrees
        at = np.array([step.at_s for step in steps] + [self.outcome.arrived_s[-1]])
        values = np.array([getattr(step, name) for step in steps], np.float64)
        return float((values * np.diff(at)).sum() / (at[-1] - at[0]))

    def typical(self) -> int:
        """The degree that was there for the longest time."""
        spent: dict[int, float] = {}
        steps = self.outcome.degrees
        ends = [step.at_s for step in steps[1:]] + [float(self.outcome.arrived_s[-1])]
        for step, end_s in zip(steps, ends, strict=True):
            spent[step.observed] = spent.get(step.observed, 0.0) + end_s - step.at_s
        return max(spent, key=spent.__getitem__)

    def summary(self) -> dict[str, object]:
        return {
            "share_within_limit": self.queue.share_within(REQUIREMENT.limit),
            "share_within_limit_exits_only": self.exits_queue.share_within(REQUIREMENT.limit),
            "p95_queue": self.queue.percentile(95),
            "p95_queue_exits_only": self.exits_queue.percentile(95),
            "longest_queue": self.queue.longest,
            "mean_degree": self.mean("observed"),
            "typical_degree": self.typical(),
            "highest_degree": max(step.observed for step in self.outcome.degrees),
            "mean_instances_alive": self.mean("alive"),
            "changes_of_degree": sum(
                a.observed != b.observed
                for a, b in zip(self.outcome.degrees, self.outcome.degrees[1:], strict=False)
            ),
            "most_selections_open": self.outcome.most_open,
            "classified_as": self.families,
        }

    def _lengths(self, which: NDArray[np.bool_]) -> QueueLengths:
        arrived, left = self.outcome.arrived_s, self.outcome.acknowledged_s
        return QueueLengths.of(arrived[which], left[which], float(arrived[-1]))


def controllers(scenario: Scenario) -> dict[str, Callable[[], Controller]]:
    """Who sets the degree, by name: ours and the paper's forecast, with slices of 400 and 1,600, and the
    CPU rule."""

    def by_queueing(arrivals: int, forecast: Forecast, as_printed: bool) -> Callable[[], Controller]:
        planner = QueueingPlanner(scenario.profile, REQUIREMENT, HORIZON_S, forecast, as_printed=as_printed)
        return lambda: ByQueueing(planner, Slicing(arrivals=arrivals))

    return {
        "qt_400": by_queueing(400, RateLine(), False),
        "qt_1600": by_queueing(1600, RateLine(), False),
        "qt_400_naive": by_queueing(400, Naive(), True),
        "qt_1600_naive": by_queueing(1600, Naive(), True),
        "cpu": ByCpu,
    }


def run_one(load: DetectionLoad, control: Controller, degree: int = INITIAL) -> DegreeRun:
    splitter = SelectionSplitter(
        predicates(), keeps_queue=False
    )  # the simulation keeps time of acknowledgements itself
    outcome = simulate_detection(load, splitter, control, degree)
    families: dict[str, int] = {}
    if isinstance(control, ByQueueing):
        for _, plan in control.plans:
            name = plan.classified.distribution.family.value
            families[name] = families.get(name, 0) + 1
    return DegreeRun(outcome, load.compared, families)


def least_fixed(load: DetectionLoad, most: int = 20) -> tuple[int, dict[int, DegreeRun]]:
    """The smallest constant degree that would have kept the limit, and what every smaller one came to."""
    tried: dict[int, DegreeRun] = {}
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        tried[middle] = run_one(load, ConstantDegree(), middle)
        if tried[middle].queue.share_within(REQUIREMENT.limit) >= REQUIREMENT.probability:
            high = middle
        else:
            low = middle + 1
    progress(f"degree: a constant {high} is the least that keeps the limit")
    return high, tried


def arrivals_settings(rush: bool, seconds: float, seed: int) -> NoPassingSettings:
    kind = VehicleArrivals.RUSH if rush else VehicleArrivals.CONSTANT
    return NoPassingSettings(kind, seconds=seconds, rate=PEAK, seed=seed)
