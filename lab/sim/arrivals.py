"""When events come: groups of events with the time of their coming, made all at once as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

#: Times in ns, and how many events come at each of them.
Groups = tuple[NDArray[np.int64], NDArray[np.int64]]

#: The rush hour's rise, peak, fall and end as shares of the morning, as in the traffic workload.
MORNING = (0.05, 0.35, 0.55, 0.90)


class Arrivals(Protocol):
    """A process that events come by."""

    def groups(self, until_ns: int, random: np.random.Generator) -> Groups:
        """Everything that comes before ``until_ns``, in order of time."""
        ...

    def scaled(self, factor: float) -> Arrivals:
        """The same process at another rate."""
        ...


@dataclass(frozen=True)
class Regular:
    """A constant rate, handed over every ``every_ns``. The n-th group brings the total to what is due."""

    per_second: float
    every_ns: int = 1_000_000
    phase_ns: int = 0

    def groups(self, until_ns: int, random: np.random.Generator) -> Groups:
        times = np.arange(self.phase_ns, until_ns, self.every_ns, dtype=np.int64)
        due = np.floor((np.arange(len(times)) + 1) * (self.per_second * self.every_ns / 1e9) + 1e-9)
        return _without_empty(times, np.diff(due, prepend=0.0).astype(np.int64))

    def scaled(self, factor: float) -> Regular:
        return Regular(self.per_second * factor, self.every_ns, self.phase_ns)


@dataclass(frozen=True)
class Poisson:
    """Single events, independent of one another."""

    per_second: float

    def groups(self, until_ns: int, random: np.random.Generator) -> Groups:
        expected = self.per_second * until_ns / 1e9
        parts, reached = [], 0.0
        while reached < until_ns:
            gaps = random.exponential(1e9 / self.per_second, int(expected * 1.05) + 64)
            part = reached + np.cumsum(gaps)
            parts.append(part)
            reached = float(part[-1])
        drawn = np.concatenate(parts)
        times = drawn[drawn < until_ns].astype(np.int64)
        return times, np.ones(len(times), np.int64)

    def scaled(self, factor: float) -> Poisson:
        return Poisson(self.per_second * factor)


@dataclass(frozen=True)
class Steps:
    """A rate that changes at given times: pairs of (from when in ns, events per second)."""

    steps: tuple[tuple[int, float], ...]
    every_ns: int = 1_000_000

    def groups(self, until_ns: int, random: np.random.Generator) -> Groups:
        begins = [begin for begin, _ in self.steps[1:]] + [until_ns]
        parts = [
            Regular(rate, self.every_ns, begin).groups(min(end, until_ns), random)
            for (begin, rate), end in zip(self.steps, begins, strict=True)
            if begin < until_ns
        ]
        return np.concatenate([times for times, _ in parts]), np.concatenate([counts for _, counts in parts])

    def scaled(self, factor: float) -> Steps:
        return Steps(tuple((begin, rate * factor) for begin, rate in self.steps), self.every_ns)


@dataclass(frozen=True)
class Frames:
    """One group per frame: what all agents that a query concerns report at one moment.

    ``agents`` has one number per frame and starts again at its end, so one number is a constant load.
    """

    agents: Sequence[int] | NDArray[np.int64]
    period_ns: int = 40_000_000
    phase_ns: int = 0

    def groups(self, until_ns: int, random: np.random.Generator) -> Groups:
        times = np.arange(self.phase_ns, until_ns, self.period_ns, dtype=np.int64)
        agents = np.asarray(self.agents, np.int64)
        return _without_empty(times, agents[np.arange(len(times)) % len(agents)])

    def scaled(self, factor: float) -> Frames:
        agents = np.maximum(np.rint(np.asarray(self.agents) * factor), 1).astype(np.int64)
        return Frames(agents, self.period_ns, self.phase_ns)


def morning(
    peak: int, seconds: float, frames_per_second: int = 25, quiet_share: float = 0.2
) -> NDArray[np.int64]:
    """Agents in each frame of a morning squeezed into so many seconds: the traffic workload's rush hour."""
    frames = max(1, int(seconds * frames_per_second))
    ramp = np.interp(np.arange(frames) / frames, MORNING, (0.0, 1.0, 1.0, 0.0))
    busy = ramp * ramp * (3 - 2 * ramp)
    quiet = peak * quiet_share
    agents: NDArray[np.int64] = np.maximum(np.rint(quiet + (peak - quiet) * busy), 1).astype(np.int64)
    return agents


def _without_empty(times: NDArray[np.int64], counts: NDArray[np.int64]) -> Groups:
    some = counts > 0
    return times[some], counts[some]
