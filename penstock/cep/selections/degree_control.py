"""The degree of a running detector, planned from the events that arrive at its splitter."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.cep.selections.selections import EventBatch
from penstock.cep.selections.splitter_pairs import Condition
from penstock.scaling.forecast import ObservedRate
from penstock.scaling.planner import DegreePlan, QueueingPlanner, RateHistory
from penstock.scaling.slices import ArrivalLog, Slicing


class DegreeControl:
    """Asks the planner at the end of every slice of arrivals.

    Its clock is event time, so that the same stream gives the same degrees. ``counts`` says which events
    the operator's profile counts; by default all.
    """

    def __init__(self, planner: QueueingPlanner, slicing: Slicing, counts: Condition | None = None) -> None:
        self._planner = planner
        self._log = ArrivalLog(slicing)
        self._counts = counts
        self._workload = RateHistory()
        self.plan: DegreePlan | None = None  # the last one

    def observe(self, batch: EventBatch) -> int | None:
        """The degree that these events call for, if a slice ended in them."""
        if not len(batch):
            return None
        counted = batch.times if self._counts is None else batch.times[self._counts(batch)]
        wanted = None
        for found in self._log.add(np.asarray(counted / 1e6), float(batch.times[-1]) / 1e6):
            plan, self._workload = self._planner.plan(found, self._workload)
            if plan is not None:
                self.plan, wanted = plan, plan.degree.instances
        return wanted

    def export(self) -> dict[str, Any]:
        """All that it must know to go on."""
        seen = self._workload.seen
        return {
            **self._log.export(),
            "seen_at": np.array([one.at_s for one in seen], np.float64),
            "seen_rate": np.array([one.rate for one in seen], np.float64),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Takes in what ``export`` gave."""
        self._log.restore(state)
        pairs = zip(state["seen_at"].tolist(), state["seen_rate"].tolist(), strict=True)
        self._workload = RateHistory(tuple(ObservedRate(at_s, rate) for at_s, rate in pairs))
