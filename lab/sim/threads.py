"""The baseline without a scheduler: one thread per operator, and the operating system decides."""

from __future__ import annotations

from typing import Any

from lab.sim.clock import SimulatedClock
from lab.sim.flow import Flow, MergedArrivals
from lab.sim.machine import Lock, Machine, Processor, Serial
from lab.sim.operators import Group, SimGraph
from lab.sim.results import SimResult
from lab.sim.scheduled import Run

_NS = 1_000_000_000


class ThreadPerOperator:
    """A thread blocks until its operator has events, takes them and blocks again; cores are shared."""

    def __init__(self, graph: SimGraph, machine: Machine, run: Run) -> None:
        self._run = run
        self.clock = SimulatedClock()
        self.flow = Flow(graph, self.clock, run.seed, run.capacity)
        size = len(graph.operators)
        overheads = self.flow.recorder.overheads
        self._processor = Processor(self.clock, machine, size, overheads)
        self._serial = Serial(machine, overheads)
        self._uses = machine.lock_uses if machine.holds_interpreter else 1
        self._lock = Lock()
        self._feed = MergedArrivals(self.flow, int(run.seconds * _NS), run.mark_every_ns)
        self._running: list[list[Group] | None] = [None] * size
        self._parents = graph.topology.parents
        # Sources rest from turn to turn as the engine's do, where a run is to be like the engine's.
        self._rest_ns = run.adaptation.rest_ns if run.reads_by_epoch and run.adaptation else 0
        self._rest_until_ns = dict.fromkeys(graph.arrivals, 0)
        self._wakes_at_ns = dict.fromkeys(graph.arrivals, -1)

    def run(self) -> SimResult:
        """Simulates it all."""
        end_ns = int(self._run.seconds * _NS)
        self._schedule_arrivals()
        self.clock.run(end_ns)
        self.flow.recorder.freeze(end_ns, self._processor.busy_ns)
        self.clock.run(end_ns + int(self._run.drain_s * _NS))
        self.flow.left_over([(op, groups) for op, groups in enumerate(self._running) if groups])
        return self.flow.recorder.result(self._run.seconds, self._feed.arrived)

    def _schedule_arrivals(self) -> None:
        time_ns = self._feed.next_ns()
        if time_ns is not None:
            self.clock.at(time_ns, self._arrive)

    def _arrive(self) -> None:
        arrived = self._feed.take()
        for operator, group in arrived:
            self.flow.arrive(operator, group)
        self._schedule_arrivals()
        for operator, _ in arrived:
            self._start(operator)

    def _start(self, operator: int) -> None:
        flow = self.flow
        if self._running[operator] is not None or not flow.pending[operator] or flow.is_blocked(operator):
            return
        if self._rest_ns and operator in self._rest_until_ns and self._rests(operator):
            return
        taken, groups = flow.take(operator, self._run.turn_limit)
        cost_ns = flow.cost(operator, taken, groups, is_cold=True)
        self._running[operator] = groups
        fixed_ns = flow.fixed_ns(operator, is_cold=True)
        if self._uses > 1:
            uses, inside_ns = self._uses if taken else 1, min(cost_ns, round(fixed_ns))
            parts_ns = inside_ns // uses, (cost_ns - inside_ns) // uses
            self._lock.take(self._hold, operator, parts_ns, uses, taken, groups, cost_ns)
        else:
            work_ns = self._serial.turn_ns(self.clock.now_ns, cost_ns, fixed_ns)
            self._processor.run(operator, work_ns, self._end, operator, taken, groups, cost_ns)
        if flow.capacity is not None:  # it has made room in its input
            for parent in self._parents[operator]:
                self._start(parent)

    def _hold(self, operator: int, parts_ns: tuple[int, int], left: int, *turn: Any) -> None:
        """The interpreter lock is this thread's: the part of a turn that needs it."""
        self._processor.run(operator, parts_ns[0], self._give_up, operator, parts_ns, left, *turn)

    def _give_up(self, operator: int, parts_ns: tuple[int, int], left: int, *turn: Any) -> None:
        """The part of a turn that goes on without the lock; then it is taken again, or the turn has ended."""
        if left > 1:
            self._processor.run(operator, parts_ns[1], self._take, operator, parts_ns, left - 1, *turn)
        else:
            self._processor.run(operator, parts_ns[1], self._end, operator, *turn)
        self._lock.give_up()

    def _take(self, *part: Any) -> None:
        self._lock.take(self._hold, *part)

    def _rests(self, source: int) -> bool:
        """Whether a source rests, and is woken up when it has; if not, its rest begins with this turn."""
        until_ns = self._rest_until_ns[source]
        if self.clock.now_ns >= until_ns:
            self._rest_until_ns[source] = self.clock.now_ns + self._rest_ns
            return False
        if self._wakes_at_ns[source] != until_ns:
            self._wakes_at_ns[source] = until_ns
            self.clock.at(until_ns, self._start, source)
        return True

    def _end(self, operator: int, taken: int, groups: list[Group], cost_ns: int) -> None:
        self._running[operator] = None
        out = self.flow.finish(operator, taken, groups, cost_ns)
        self.flow.hand_on(operator, out)
        self._start(operator)
        for reader in self.flow.children[operator] if out else ():
            self._start(reader)


def simulate_threads(graph: SimGraph, machine: Machine, run: Run) -> SimResult:
    """One run of a graph with one thread per operator."""
    return ThreadPerOperator(graph, machine, run).run()
