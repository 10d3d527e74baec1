"""Who sets the degree in a simulated detection: queueing theory, the CPU rule, or nobody."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lab.baselines.cpu_rule import CpuHistory, CpuRule
from penstock.scaling.planner import DegreePlan, QueueingPlanner, RateHistory
from penstock.scaling.slices import ArrivalLog, Slicing

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Frame:
    """What can be observed over a stretch of time."""

    since_s: float
    now_s: float
    arrived_s: Floats  # of the events that the profile counts
    loads: Floats  # busy share of every registered instance
    degree: int  # as planned last


class Controller(Protocol):
    """Asked at ``next_s`` what the degree should be; None leaves it."""

    @property
    def horizon_s(self) -> float: ...

    def next_s(self, now_s: float) -> float: ...

    def plan(self, frame: Frame) -> int | None: ...


@dataclass
class ConstantDegree:
    """The degree stays."""

    horizon_s: float = 60.0

    def next_s(self, now_s: float) -> float:
        return float("inf")

    def plan(self, frame: Frame) -> int | None:
        return None


class ByQueueing:
    """The planner of :mod:`penstock.scaling`, at the end of every slice.

    Looks every ``every_s`` whether a slice is complete: a slice that ends in between is acted on that
    much later.
    """

    def __init__(self, planner: QueueingPlanner, slicing: Slicing, every_s: float = 5.0) -> None:
        self.planner = planner
        self.plans: list[tuple[float, DegreePlan]] = []
        self._log = ArrivalLog(slicing)
        self._workload = RateHistory()
        self._every_s = every_s

    @property
    def horizon_s(self) -> float:
        return self.planner.horizon_s

    def next_s(self, now_s: float) -> float:
        return now_s + self._every_s

    def plan(self, frame: Frame) -> int | None:
        wanted = None
        for found in self._log.add(frame.arrived_s, frame.now_s):
            plan, self._workload = self.planner.plan(found, self._workload)
            if plan is not None:
                self.plans.append((frame.now_s, plan))
                wanted = plan.degree.instances
        return wanted


@dataclass
class ByCpu:
    """The CPU rule, once a frame."""

    rule: CpuRule = field(default_factory=CpuRule)
    horizon_s: float = 60.0
    history: CpuHistory = field(default_factory=CpuHistory)
    _busy: float = 0.0
    _since_s: float = 0.0

    def next_s(self, now_s: float) -> float:
        return (math.floor(now_s / self.rule.frame_s + 1e-9) + 1) * self.rule.frame_s

    def plan(self, frame: Frame) -> int | None:
        # a frame may be cut where an instance came or left: its parts are averaged
        self._busy += float(frame.loads.mean()) * (frame.now_s - frame.since_s)
        if frame.now_s < self._since_s + self.rule.frame_s - 1e-6:
            return None
        load = self._busy / (frame.now_s - self._since_s)
        self._busy, self._since_s = 0.0, frame.now_s
        wanted, self.history = self.rule.plan(frame.degree, [load], self.history)
        return wanted
