"""The baseline without a scheduler: one thread per operator, and the operating system decides."""

from __future__ import annotations

from penstock.sim.clock import Clock
from penstock.sim.flow import Feed, Flow
from penstock.sim.machine import Machine, Processor, Serial
from penstock.sim.operators import Group, SimGraph
from penstock.sim.results import SimResult
from penstock.sim.scheduled import Run

_NS = 1_000_000_000


class ThreadPerOperator:
    """A thread blocks until its operator has events, takes them and blocks again; cores are shared."""

    def __init__(self, graph: SimGraph, machine: Machine, run: Run) -> None:
        self._run = run
        self.clock = Clock()
        self.flow = Flow(graph, self.clock, run.seed, run.capacity)
        size = len(graph.operators)
        overheads = self.flow.recorder.overheads
        self._processor = Processor(self.clock, machine, size, overheads)
        self._serial = Serial(machine, overheads)
        self._feed = Feed(self.flow, int(run.seconds * _NS), run.mark_every_ns)
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
        cost_ns = flow.cost(operator, taken)
        self._running[operator] = groups
        work_ns = self._serial.turn_ns(operator, self.clock.now_ns, cost_ns, flow.fixed_ns(operator))
        self._processor.run(operator, work_ns, self._end, operator, taken, groups, cost_ns)
        if flow.capacity is not None:  # it has made room in its input
            for parent in self._parents[operator]:
                self._start(parent)

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
