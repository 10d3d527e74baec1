"""Events on their way through a simulated graph: what waits where, what a turn takes and leaves behind."""

from __future__ import annotations

from collections import deque

import numpy as np

from lab.sim.clock import SimulatedClock
from lab.sim.operators import COLD_AFTER_NS, Group, SimGraph, SimulatedWindow
from lab.sim.results import Recorder

#: What waits at an operator: when it came there, and the group.
Waiting = tuple[int, int, int, bool]


class Flow:
    """The queues of all operators, moved by whoever drives the turns."""

    def __init__(
        self, graph: SimGraph, clock: SimulatedClock, seed: int, capacity: int | None = None
    ) -> None:
        self.graph = graph
        self.clock = clock
        self.capacity = capacity
        self.random = np.random.default_rng(seed)
        self.recorder = Recorder(graph)
        size = len(graph.operators)
        self.queues: list[deque[Waiting]] = [deque() for _ in range(size)]
        #: Invariant: pending[i] is the events in queues[i], a marker without events counting as one.
        self.pending = [0] * size
        self.children = graph.children
        self._costs = [operator.cost for operator in graph.operators]
        # One per operator: its n-th turn costs the same whoever runs it and whatever else is drawn meanwhile.
        self._cost_randoms = [np.random.default_rng([seed, 1, number]) for number in range(size)]
        self._ended_ns = [0] * size  # when each had its last turn
        self._emitters = [operator.selectivity.emitter() for operator in graph.operators]
        self._closings = {
            number: (window.closings(), window.closing_ns)
            for number, operator in enumerate(graph.operators)
            if isinstance(window := operator.selectivity, SimulatedWindow) and window.closing_ns
        }

    def arrive(self, operator: int, group: Group) -> None:
        """Puts a group in front of an operator, now."""
        born_ns, events, marked = group
        if not self.pending[operator]:
            self.recorder.fill(operator, self.clock.now_ns)
        self.queues[operator].append((self.clock.now_ns, born_ns, events, marked))
        self.pending[operator] += events or 1

    def take(self, operator: int, limit: int) -> tuple[int, list[Group]]:
        """Removes at most ``limit`` events from the front; a group may be cut, its marker stays behind."""
        queue, taken, groups, weight = self.queues[operator], 0, [], 0
        while queue and weight < limit:
            came_ns, born_ns, events, marked = queue[0]
            room = limit - weight
            if events > room:
                queue[0] = (came_ns, born_ns, events - room, marked)
                groups.append((born_ns, room, False))
                taken += room
                weight = limit
                break
            queue.popleft()
            groups.append((born_ns, events, marked))
            taken += events
            weight += events or 1
        self.pending[operator] -= weight
        return taken, groups

    def cost(self, operator: int, count: int, groups: list[Group], *, is_cold: bool = False) -> int:
        """What a turn takes on these groups, so many events in all, drawn. ``is_cold``: its thread has not
        run since other threads did, whenever its last turn was."""
        idle_ns = self._idle_ns(operator, is_cold)
        cost_ns = self._costs[operator].of(count, self._cost_randoms[operator], idle_ns)
        if operator in self._closings:
            closed, closing_ns = self._closings[operator]
            cost_ns += round(closed(groups) * closing_ns)
        return cost_ns

    def fixed_ns(self, operator: int, *, is_cold: bool = False) -> float:
        """The part of its next turn's cost that does not depend on the turn's size."""
        return self._costs[operator].fixed_ns(self._idle_ns(operator, is_cold))

    def _idle_ns(self, operator: int, is_cold: bool) -> int:
        return COLD_AFTER_NS if is_cold else self.clock.now_ns - self._ended_ns[operator]

    def handovers(self, operator: int, count: int) -> int:
        """In how many pieces so many events come to the operator."""
        return self._costs[operator].handovers(count)

    def finish(self, operator: int, taken: int, groups: list[Group], cost_ns: int) -> list[Group]:
        """Ends a turn: counts it and returns what it emits. At a query's end markers' ages are latencies."""
        now_ns, recorder = self.clock.now_ns, self.recorder
        out = self._emitters[operator](groups)
        emitted = 0
        for group in out:
            emitted += group[1]
        self._ended_ns[operator] = now_ns
        recorder.turn(operator, taken, emitted, cost_ns)
        if not self.pending[operator]:
            recorder.empty(operator, now_ns)
        if not self.children[operator]:
            for born_ns, _, marked in groups:
                if marked:
                    recorder.sample(operator, born_ns, now_ns - born_ns)
            return []
        return out

    def hand_on(self, operator: int, out: list[Group]) -> None:
        """Puts what an operator emitted in front of its readers."""
        for reader in self.children[operator]:
            is_end = not self.children[reader]
            for group in out:
                if group[1] or group[2] or not is_end:  # an end does not look at the time
                    self.arrive(reader, group)

    def is_blocked(self, operator: int) -> bool:
        """Whether a reader has as much waiting as it may."""
        if self.capacity is not None:
            for reader in self.children[operator]:
                if self.pending[reader] >= self.capacity:
                    return True
        return False

    def waiting_since_ns(self, operator: int) -> int:
        """When the oldest waiting event came; 0 if none waits."""
        queue = self.queues[operator]
        return queue[0][0] if queue else 0

    def left_over(self, in_turns: list[tuple[int, list[Group]]]) -> None:
        """At the end of a run: markers that never arrived count with the age they have reached."""
        reached, now_ns = self.graph.ends_reached(), self.clock.now_ns
        waiting = [
            (op, [(born, n, mark) for _, born, n, mark in queue]) for op, queue in enumerate(self.queues)
        ]
        for operator, groups in waiting + in_turns:
            for born_ns, _, marked in groups:
                if marked:
                    for end in reached[operator]:
                        self.recorder.sample(end, born_ns, now_ns - born_ns)


class MergedArrivals:
    """The arrivals of all sources, in order of time."""

    def __init__(self, flow: Flow, until_ns: int, mark_every_ns: int = 0) -> None:
        """``mark_every_ns``: a latency marker follows the first group of each interval; 0: every group."""
        parts = []
        for operator, process in sorted(flow.graph.arrivals.items()):
            times, counts = process.groups(until_ns, flow.random)
            marked = np.ones(len(times), bool)
            if mark_every_ns and len(times):
                marked[1:] = np.diff(times // mark_every_ns) > 0
            parts.append((times, np.full(len(times), operator), counts, marked))
        times, operators, counts, marks = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(times, kind="stable")
        self._moments = _moments(times[order])
        self._times: list[int] = times[order].tolist()
        self._operators: list[int] = operators[order].tolist()
        self._counts: list[int] = counts[order].tolist()
        self._marks: list[bool] = marks[order].tolist()
        self._next = 0
        self._times_of = {op: times[operators == op].tolist() for op in flow.graph.arrivals}
        self._taken_of = dict.fromkeys(flow.graph.arrivals, 0)
        self.arrived = int(counts.sum())

    def next_ns(self) -> int | None:
        """When the next groups come."""
        return self._times[self._moments[self._next]] if self._next < len(self._moments) - 1 else None

    def next_of(self, source: int) -> int | None:
        """When the next group of one source comes."""
        times, taken = self._times_of[source], self._taken_of[source]
        return times[taken] if taken < len(times) else None

    def take(self) -> list[tuple[int, Group]]:
        """All groups of the next moment, with the operators that they come to."""
        first, last = self._moments[self._next], self._moments[self._next + 1]
        self._next += 1
        for index in range(first, last):
            self._taken_of[self._operators[index]] += 1
        return [
            (self._operators[index], (self._times[index], self._counts[index], self._marks[index]))
            for index in range(first, last)
        ]


def _moments(times: np.ndarray) -> list[int]:
    """Where each distinct time begins in the sorted times, and the end."""
    if not len(times):
        return [0]
    begins = np.concatenate(([0], np.flatnonzero(np.diff(times)) + 1, [len(times)]))
    return list(begins.tolist())
