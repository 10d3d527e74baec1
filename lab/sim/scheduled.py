"""Simulated workers that the dispatcher tells what to run: the very one that the engine has."""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.sim.clock import SimulatedClock
from lab.sim.flow import Flow, MergedArrivals
from lab.sim.machine import Machine, Processor, Serial
from lab.sim.observation import SimCounts, observation_of
from lab.sim.operators import Group, SimGraph
from lab.sim.results import SimResult
from penstock.scheduling.consumption import Consumption
from penstock.scheduling.dispatch.board import NEVER_NS
from penstock.scheduling.dispatch.dispatcher import Dispatcher
from penstock.scheduling.dispatch.rules import Rules
from penstock.scheduling.policy import Policy
from penstock.scheduling.thresholds import Adaptation

_NS = 1_000_000_000


@dataclass(frozen=True)
class Run:
    """How a run is simulated.

    drain_s: how much longer than the arrivals the run may last, to finish what came.
    mark_every_ns: a latency marker in each such interval of every source; 0: one after every group.
    turn_limit: the most events that a turn may take; consumption: how much of its queue it takes.
    adaptation: thresholds of the state-based policy that fit the blocks. epoch_ns: the scheduler's period.
    plan_ns: what a plan takes the processor; the longer, the farther apart the dispatcher has plans.
    capacity: events that may wait at an operator before those that write to it are held back; None: no bound.
    reads_by_epoch: a source that was read empty is read again when the dispatcher has it looked at, as in the
        engine; else as soon as something has come. Threads rest for as long as the engine's.
    rules: what the dispatcher does beside the policy.
    """

    seconds: float
    seed: int = 0
    drain_s: float = 1.0
    mark_every_ns: int = 0
    turn_limit: int = 65_536
    consumption: Consumption = field(default_factory=Consumption)
    adaptation: Adaptation | None = None
    epoch_ns: int = 1_000_000
    plan_ns: int = 0
    capacity: int | None = None
    reads_by_epoch: bool = False
    rules: Rules = field(default_factory=Rules.none)


class Scheduled:
    """Workers on simulated cores. Whoever has nothing to do comes by when the dispatcher says so."""

    def __init__(self, graph: SimGraph, policy: Policy, machine: Machine, workers: int, run: Run) -> None:
        self._run, self._machine = run, machine
        self.clock = SimulatedClock()
        self.flow = Flow(graph, self.clock, run.seed, run.capacity)
        self._overheads = self.flow.recorder.overheads
        self._processor = Processor(self.clock, machine, workers, self._overheads)
        self._serial = Serial(machine, self._overheads)
        self._counts = SimCounts(self.flow)
        self._seen = observation_of(self.flow, workers)
        self._dispatcher = Dispatcher(
            graph.topology, policy, run.turn_limit, run.epoch_ns, workers, run.rules, run.consumption
        )
        self._board = self._dispatcher.board
        self._feed = MergedArrivals(self.flow, int(run.seconds * _NS), run.mark_every_ns)
        self._running: list[list[Group]] = [[] for _ in graph.operators]
        self._took_all = [True] * len(graph.operators)  # the last turn ended because it was to take no more
        self._last_operator = [-1] * workers
        self._idle = list(reversed(range(workers)))  # the first worker is woken first
        self._wakes_ns = NEVER_NS  # when an idle worker comes by
        self._paced = frozenset(graph.arrivals) if run.reads_by_epoch else frozenset()
        #: What a worker has been given, and what of that it has not run yet, the last first.
        self._held: list[list[tuple[int, int]]] = [[] for _ in range(workers)]
        self._ahead: list[list[tuple[int, int]]] = [[] for _ in range(workers)]

    def run(self) -> SimResult:
        """Simulates it all."""
        end_ns = int(self._run.seconds * _NS)
        for source in self._paced:
            due_ns = self._feed.next_of(source)
            if due_ns is not None:
                self._dispatcher.expect(source, due_ns, 0)
        self._plan()
        self._schedule_arrivals()
        self._wake()
        self.clock.run(end_ns)
        self.flow.recorder.freeze(end_ns, self._processor.busy_ns)
        self.clock.run(end_ns + int(self._run.drain_s * _NS))
        self.flow.left_over([(op, groups) for op, groups in enumerate(self._running) if groups])
        return self.flow.recorder.result(self._run.seconds, self._feed.arrived)

    # -- events ----------------------------------------------------------------------------------

    def _schedule_arrivals(self) -> None:
        time_ns = self._feed.next_ns()
        if time_ns is not None:
            self.clock.at(time_ns, self._arrive)

    def _arrive(self) -> None:
        arrived = self._feed.take()
        for operator, group in arrived:
            self.flow.arrive(operator, group)
        self._schedule_arrivals()
        for operator in dict.fromkeys(operator for operator, _ in arrived if operator not in self._paced):
            self._dispatcher.tell(operator, self.flow.pending[operator], self.clock.now_ns)
        self._wake()

    def _plan(self) -> None:
        now_ns = self.clock.now_ns
        if self._seen.is_due(now_ns):
            self._seen.update(now_ns, self._counts.read())
        self._dispatcher.plan(now_ns, self._seen)
        self._dispatcher.await_plan(now_ns, self._run.plan_ns)
        self._overheads.decisions += 1

    def _take_room(self, operator: int) -> None:
        """An operator has taken something: who writes to it may go on."""
        for parent in self.flow.graph.topology.parents[operator]:
            row = self._board.operators[parent]
            if row.blocked and not self.flow.is_blocked(parent):
                self._dispatcher.release(parent, self.flow.pending[parent], self.clock.now_ns)

    def _fill(self, operator: int) -> None:
        """An operator has sent something: who else writes to its readers may have to wait."""
        for reader in self.flow.children[operator]:
            for parent in self.flow.graph.topology.parents[reader]:
                if parent != operator and self.flow.is_blocked(parent):
                    self._dispatcher.hold(parent)

    # -- workers ---------------------------------------------------------------------------------

    def _wake(self) -> None:
        while self._idle and self._start(self._idle[-1], ()):
            pass
        if self._idle:
            wake_ns = max(self._dispatcher.wake_ns(self.clock.now_ns), self.clock.now_ns + 1)
            if wake_ns < self._wakes_ns:
                self._wakes_ns = wake_ns
                self.clock.at(wake_ns, self._come_by)

    def _come_by(self) -> None:
        if self.clock.now_ns >= self._wakes_ns:
            self._wakes_ns = NEVER_NS
        self._wake()

    def _start(self, worker: int, ended: tuple[tuple[int, int], ...]) -> bool:
        """A worker gives back what it has run and begins with what is next; False if nothing is."""
        now_ns, dispatcher, board = self.clock.now_ns, self._dispatcher, self._board
        is_idle = worker in self._idle
        board.head.sleeping = len(self._idle) - is_idle
        returned = self._report(ended)
        if now_ns >= dispatcher.plan_due_ns:
            dispatcher.exchange(returned, now_ns, 0)
            self._plan()
            returned = 0
        turns = []
        for turn in board.given[: dispatcher.exchange(returned, now_ns)]:
            turns.append((turn.operator, turn.limit))
            if turn.leads:
                turns += [(reader, board.operators[reader].allowed) for reader in board.behind[turn.operator]]
        if not turns:
            return False
        if is_idle:
            self._idle.remove(worker)
        self._held[worker], self._ahead[worker] = turns, turns[::-1]
        self._go_on(worker, decides=True)
        return True

    def _report(self, ended: tuple[tuple[int, int], ...]) -> int:
        """Writes down what operators have left whose turns have ended; how many come alone or lead."""
        flow, board = self.flow, self._board
        returned = behind = 0
        for operator, _ in ended:
            row = board.operators[operator]
            row.seen, row.blocked = flow.pending[operator], flow.is_blocked(operator)
            if operator in self._paced:
                self._report_source(operator)
            if behind:
                behind -= 1
                continue
            board.returned[returned] = operator
            returned += 1
            if row.leading:
                behind = len(board.behind[operator])
            else:
                for reader in board.readers[operator]:
                    board.operators[reader].seen = flow.pending[reader]
        return returned

    def _report_source(self, source: int) -> None:
        """As the engine does, which does not know what has come to a source that was read empty."""
        row, since_ns = self._board.operators[source], self.flow.waiting_since_ns(source)
        row.seen = row.limit if self._took_all[source] else 0
        due_ns = since_ns if self.flow.pending[source] else self._feed.next_of(source)
        row.due_ns = NEVER_NS if due_ns is None else due_ns

    def _go_on(self, worker: int, *, decides: bool) -> None:
        """The worker's next turn; all that were held for something that did not come end at once."""
        flow, ahead = self.flow, self._ahead[worker]
        while ahead:
            operator, limit = ahead.pop()
            pending = flow.pending[operator]
            if pending and not flow.is_blocked(operator) and self._is_worth(operator, pending):
                self._turn(worker, operator, limit, decides=decides)
                return
            self._took_all[operator] = False
        ended = tuple(self._held[worker])
        self._held[worker] = []
        if not self._start(worker, ended):
            self._idle.append(worker)
        self._wake()

    def _is_worth(self, operator: int, pending: int) -> bool:
        comes_along = self._board.operators[operator].allowed > 0
        return not comes_along or self._dispatcher.is_worth(operator, pending, self.clock.now_ns)

    def _turn(self, worker: int, operator: int, limit: int, *, decides: bool) -> None:
        flow, machine = self.flow, self._machine
        taken, groups = flow.take(operator, limit)
        self._took_all[operator] = taken >= limit
        cost_ns = flow.cost(operator, taken, groups)
        fixed_ns = flow.fixed_ns(operator)
        work_ns = self._serial.turn_ns(self.clock.now_ns, cost_ns, fixed_ns, decides=decides)
        if self._last_operator[worker] != operator:
            self._overheads.operator_switches += 1
            work_ns += machine.operator_switch_ns
            self._last_operator[worker] = operator
        self._running[operator] = groups
        self._processor.run(worker, work_ns, self._end, worker, operator, taken, groups, cost_ns)
        if flow.capacity is not None:
            self._take_room(operator)

    def _end(self, worker: int, operator: int, taken: int, groups: list[Group], cost_ns: int) -> None:
        flow = self.flow
        flow.hand_on(operator, flow.finish(operator, taken, groups, cost_ns))
        self._counts.turn(operator, taken, cost_ns)
        self._running[operator] = []
        if flow.capacity is not None:
            self._fill(operator)
        self._go_on(worker, decides=False)


def simulate_scheduled(
    graph: SimGraph, policy: Policy, machine: Machine, workers: int, run: Run
) -> SimResult:
    """One run of a graph under a scheduling policy."""
    return Scheduled(graph, policy, machine, workers, run).run()
