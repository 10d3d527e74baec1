"""The planner: a slice of arrivals becomes a degree, by classification, forecast, profile and queueing theory
(buffer limits figure 3)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from penstock.scaling.classification import FEWEST_TIMES, Classified, classify
from penstock.scaling.degree import DegreeEstimate, Requirement, least_degree
from penstock.scaling.distributions import Distribution
from penstock.scaling.forecast import Forecast, Naive, ObservedRate
from penstock.scaling.profiles import OperatorProfile
from penstock.scaling.slices import TimeSlice

#: No forecast goes below this share of what was seen last: a line may fall to zero.
_LEAST_SHARE = 0.05


@dataclass(frozen=True)
class RateHistory:
    """The rates that were seen: what a planner remembers from slice to slice."""

    seen: tuple[ObservedRate, ...] = ()


@dataclass(frozen=True)
class DegreePlan:
    """What was seen, what is expected, and how many instances that takes."""

    classified: Classified
    expected: Distribution  # of inter-arrival times, a horizon ahead
    service: Distribution
    degree: DegreeEstimate


@dataclass(frozen=True)
class QueueingPlanner:
    """``plan(slice, workload) → (plan, workload)``, pure.

    ``horizon_s`` is TH, how long an instance takes to be there: the forecast is for that far ahead. A
    selection stays with the instance that it was given to, so what is decided now still counts when the
    selections that open then are about to close, and by then they cost most. Unless ``as_printed``, the
    degree is therefore that for the highest rate expected from TH until TH and a selection's length ahead.
    """

    profile: OperatorProfile
    requirement: Requirement = field(default_factory=Requirement)
    horizon_s: float = 60.0
    forecast: Forecast = field(default_factory=Naive)
    percentile: int = 99
    as_printed: bool = False  # look TH ahead and no further
    remembers: int = 4096  # slices

    def plan(self, found: TimeSlice, workload: RateHistory) -> tuple[DegreePlan | None, RateHistory]:
        """No plan while there are too few arrivals to tell anything from."""
        if len(found.between_s) < FEWEST_TIMES or found.rate <= 0.0:
            return None, workload
        classified = classify(found.between_s)
        seen = (*workload.seen, ObservedRate(found.end_s, found.rate))[-self.remembers :]
        workload = replace(workload, seen=seen)
        rate = self.forecast.ahead(seen, self.horizon_s)
        if not self.as_printed and self.profile.selection_s > 0.0:
            rate = max(rate, self.forecast.ahead(seen, self.horizon_s + self.profile.selection_s))
        rate = max(rate, _LEAST_SHARE * found.rate)
        # all times grow alike: the family stays, and with it the ratio of deviation and mean
        expected = classified.distribution.scaled(found.rate / rate)
        service = self.profile.service(rate, self.percentile)
        degree = least_degree(expected, service, self.requirement)
        return DegreePlan(classified, expected, service, degree), workload
