"""What an operator of the simulator costs and emits, and the graph that operators form."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from lab.sim.arrivals import Arrivals
from lab.sim.distributions import Constant, RandomDuration
from penstock.scheduling.topology import Topology

#: Events that travel together: when the last of them was born, how many they are, and whether a latency
#: marker follows them. No events and a marker is a marker alone.
Group = tuple[int, int, bool]

#: Turns the groups that a turn took into those it emits; remembers what it must between turns.
Emitter = Callable[[list[Group]], list[Group]]


#: By when an operator's code and state have left the caches.
COLD_AFTER_NS = 10_000_000

_NOTHING = Constant(0.0)


@dataclass(frozen=True)
class Cost:
    """What a turn on n events takes: ``turn_ns`` + n draws of ``event`` + ``sort_ns`` · n · log2 n.

    ``batch`` cuts the n events into ⌈n / batch⌉ hand-overs that each cost ``turn_ns``; without it there is
    one. ``cold_ns`` is added to it for an operator that was idle for ``COLD_AFTER_NS`` or longer, whose code
    and state others have taken from the caches, and the less the shorter it was. ``jitter`` multiplies the
    whole by a log-normal factor of mean 1: no turn is quite like another.
    """

    event: RandomDuration = _NOTHING
    turn_ns: float = 0.0
    sort_ns: float = 0.0
    batch: int | None = None
    cold_ns: float = 0.0
    jitter: float = 0.0

    def fixed_ns(self, idle_ns: int = 0) -> float:
        """What a hand-over costs whatever its size."""
        return self.turn_ns + self.cold_ns * min(1.0, idle_ns / COLD_AFTER_NS)

    def handovers(self, count: int) -> int:
        """How many hand-overs bring so many events."""
        return 1 if self.batch is None else max(1, -(-count // self.batch))

    def of(self, count: int, random: np.random.Generator, idle_ns: int = 0) -> int:
        """One turn's duration, drawn."""
        duration = self.fixed_ns(idle_ns) * self.handovers(count) + self.event.total_ns(count, random)
        if self.sort_ns and count > 1:
            duration += self.sort_ns * count * math.log2(count)
        if self.jitter:
            duration *= math.exp(self.jitter * float(random.standard_normal()) - self.jitter**2 / 2)
        return round(duration)

    def mean_ns(self, count: int) -> float:
        """One turn's duration on average."""
        sorting = self.sort_ns * count * math.log2(count) if count > 1 else 0.0
        return self.turn_ns * self.handovers(count) + self.event.mean_ns * count + sorting


class Selectivity(Protocol):
    """How many events come out for those that went in."""

    def emitter(self) -> Emitter: ...


@dataclass(frozen=True)
class Ratio:
    """So many out per event in; fractions add up over turns."""

    out_per_in: float = 1.0

    def emitter(self) -> Emitter:
        rest = 0.0

        def emit(groups: list[Group]) -> list[Group]:
            nonlocal rest
            out: list[Group] = []
            born_ns, count = 0, 0
            for born_ns, events, marked in groups:
                count += events
                if marked:
                    due = count * self.out_per_in + rest
                    rest = due % 1.0
                    out.append((born_ns, int(due), True))
                    count = 0
            if count:
                due = count * self.out_per_in + rest
                rest = due % 1.0
                if due >= 1.0:
                    out.append((born_ns, int(due), False))
            return out

        return emit


@dataclass(frozen=True)
class SimulatedWindow:
    """Emits ``groups`` events when an event beyond the window's end closes it, nothing before.

    Latency markers pass at once, so that the wait for the end of a window is not counted as latency. Closing
    costs ``closing_ns`` more than the turn would. With ``tells_time`` every turn emits a group without
    events, as an operator sends watermarks: whoever reads it and is not an end gets a turn for that.
    """

    period_ns: int
    groups: int
    closing_ns: float = 0.0
    tells_time: bool = False

    def closings(self) -> Callable[[list[Group]], int]:
        """Counts the windows that groups close; remembers which one is open."""
        open_window = -1

        def count(groups: list[Group]) -> int:
            nonlocal open_window
            closed = 0
            for born_ns, _, _ in groups:
                window = born_ns // self.period_ns
                closed += window > open_window >= 0
                open_window = max(open_window, window)
            return closed

        return count

    def emitter(self) -> Emitter:
        open_window = -1

        def emit(groups: list[Group]) -> list[Group]:
            nonlocal open_window
            out: list[Group] = []
            for born_ns, _, marked in groups:
                window = born_ns // self.period_ns
                closes = window > open_window >= 0
                open_window = max(open_window, window)
                if closes or marked:
                    out.append((born_ns, self.groups if closes else 0, marked))
            if self.tells_time and groups and not out:
                out.append((groups[-1][0], 0, False))
            return out

        return emit


@dataclass(frozen=True)
class PerGroup:
    """A fixed number of events out for every group in, such as one result per frame."""

    events: int = 1

    def emitter(self) -> Emitter:
        def emit(groups: list[Group]) -> list[Group]:
            return [(born_ns, self.events if events else 0, marked) for born_ns, events, marked in groups]

        return emit


_ONE_TO_ONE = Ratio(1.0)


@dataclass(frozen=True)
class SimOperator:
    """One operator: its name, what it costs and what it emits. ``kind``: for bindings that go by type."""

    name: str
    cost: Cost
    selectivity: Selectivity = _ONE_TO_ONE
    kind: str = "operator"


@dataclass(frozen=True)
class SimGraph:
    """Operators, who reads what each emits, and the arrivals by operator number.

    An operator's readers have larger numbers. An operator without readers is where a query ends.
    """

    operators: tuple[SimOperator, ...]
    children: tuple[tuple[int, ...], ...]
    arrivals: Mapping[int, Arrivals]

    def __post_init__(self) -> None:
        for number, readers in enumerate(self.children):
            if any(reader <= number for reader in readers):
                raise ValueError(
                    f"readers need larger numbers: operator {number} is read by {readers}; "
                    "number operators from sources to sinks"
                )

    @cached_property
    def topology(self) -> Topology:
        """As the dispatcher sees it: to whom events come is a source, else whom nobody reads is a sink."""
        kinds = [
            "source" if number in self.arrivals else self.operators[number].kind if readers else "sink"
            for number, readers in enumerate(self.children)
        ]
        return Topology(self.children, tuple(kinds))

    def ends(self) -> tuple[int, ...]:
        """Operators that nobody reads: the queries' results."""
        return tuple(number for number, readers in enumerate(self.children) if not readers)

    def ends_reached(self) -> tuple[tuple[int, ...], ...]:
        """The queries' ends that each operator's events lead to."""
        reached: list[set[int]] = [set() for _ in self.operators]
        for number in reversed(range(len(self.operators))):
            readers = self.children[number]
            reached[number] = set().union(*(reached[reader] for reader in readers)) if readers else {number}
        return tuple(tuple(sorted(ends)) for ends in reached)

    def at_rate(self, factor: float) -> SimGraph:
        """The same graph with all arrivals scaled."""
        return replace(self, arrivals={op: process.scaled(factor) for op, process in self.arrivals.items()})

    def repeated(self, times: int) -> SimGraph:
        """So many copies beside one another: as many independent queries."""
        size = len(self.operators)
        return SimGraph(
            tuple(
                replace(operator, name=f"{operator.name}_{copy}")
                for copy in range(times)
                for operator in self.operators
            ),
            tuple(
                tuple(reader + copy * size for reader in readers)
                for copy in range(times)
                for readers in self.children
            ),
            {op + copy * size: process for copy in range(times) for op, process in self.arrivals.items()},
        )
