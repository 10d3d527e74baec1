"""Drives a scheduling policy: workers take the operator with the highest priority, by epochs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.scheduling.consumption import All, Consumption
from penstock.scheduling.policy import Plan, Policy, Snapshot
from penstock.scheduling.queue import SchedulingQueue
from penstock.scheduling.thresholds import Adaptation
from penstock.sim.clock import Clock
from penstock.sim.flow import Feed, Flow
from penstock.sim.machine import Machine, Processor, Serial
from penstock.sim.observation import Observer
from penstock.sim.operators import Group, SimGraph
from penstock.sim.passes import operators_behind
from penstock.sim.results import SimResult

_NS = 1_000_000_000
_ROUND = 64  # the most turns that a worker takes at once, as in the engine


@dataclass(frozen=True)
class Run:
    """How a run is simulated.

    drain_s: how much longer than the arrivals the run may last, to finish what came.
    mark_every_ns: a latency marker in each such interval of every source; 0: one after every group.
    turn_limit: the most events that a turn may take; consumption: how much of its queue it takes.
    adaptation: thresholds of the state-based policy that fit the blocks. epoch_ns: the scheduler's period.
    capacity: events that may wait at an operator before those that write to it are held back; None: no bound.
    reads_by_epoch: what comes to a source is read when an epoch begins, as the engine does, or when it has
        waited for half of one and the source's turn ends; else as soon as a worker is free. A policy's
        patience stands for the epoch where it is longer; threads rest for as long as the state-based policy.
    alone_below_ns: when the turns at hand are mostly shorter than this, one worker takes them all, as the
        engine does, since a second would lose more by handing the interpreter over; 0: never.
    passes: a worker takes an operator together with all behind it where the engine does: nobody else writes
        to them, none has priority or runs, the policy puts them first, and no other worker sleeps. One that
        takes all turns because they are short takes a round of them, and gives them back together.
    """

    seconds: float
    seed: int = 0
    drain_s: float = 1.0
    mark_every_ns: int = 0
    turn_limit: int = 65_536
    consumption: Consumption = field(default_factory=All)
    adaptation: Adaptation | None = None
    epoch_ns: int = 1_000_000
    capacity: int | None = None
    reads_by_epoch: bool = False
    alone_below_ns: int = 0
    passes: bool = False


class Scheduled:
    """Workers that share a scheduling queue (enjima, Algorithm 2)."""

    def __init__(self, graph: SimGraph, policy: Policy, machine: Machine, workers: int, run: Run) -> None:
        self._run, self._machine, self._policy = run, machine, policy
        self.clock = Clock()
        self.flow = Flow(graph, self.clock, run.seed, run.capacity)
        self._overheads = self.flow.recorder.overheads
        self._processor = Processor(self.clock, machine, workers, self._overheads)
        self._serial = Serial(machine, self._overheads)
        self._observer = Observer(self.flow, run.turn_limit, run.epoch_ns, workers)
        self._feed = Feed(self.flow, int(run.seconds * _NS), run.mark_every_ns)
        size = len(graph.operators)
        self._queue = SchedulingQueue(size)
        self._state: Any = policy.initial_state(graph.topology)
        self._plan: Plan
        self._at_work = 0  # workers inside turns
        self._alone = False
        self._running: list[list[Group] | None] = [None] * size
        self._last_operator = [-1] * workers
        self._idle = list(reversed(range(workers)))  # the first worker is woken first
        self._behind = operators_behind(graph.topology) if run.passes else ((),) * size
        self._held: list[list[int]] = [[] for _ in range(workers)]  # what a worker gives back together
        #: Those of them that it has not run yet, with their limits, the last first.
        self._ahead: list[list[tuple[int, int]]] = [[] for _ in range(workers)]

    def run(self) -> SimResult:
        """Simulates it all."""
        end_ns = int(self._run.seconds * _NS)
        self._epoch()
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
        if not self._run.reads_by_epoch:
            self._refresh(operator for operator, _ in arrived)
            self._wake()

    def _epoch(self) -> None:
        """The scheduler's period: priorities are computed anew, and whoever sleeps looks again."""
        snapshot = self._observer.snapshot(self.clock.now_ns)
        self._plan, self._state = self._policy.plan(snapshot, self._state)
        self._overheads.decisions += 1
        self._queue.load(self._plan.priority)
        for operator, groups in enumerate(self._running):
            if groups is not None:
                self._queue.put(operator, 0.0)
        self._alone = self._is_better_alone(snapshot)
        self.clock.at(self.clock.now_ns + self._run.epoch_ns, self._epoch)
        self._wake()

    def _refresh(self, operators: Iterable[int]) -> None:
        """Operators that have got events and stand in no line may be eligible now."""
        for operator in operators:
            if self._running[operator] is None and self._queue.priority(operator) <= 0.0:
                self._put(operator)

    def _put(self, operator: int) -> None:
        """Gives an operator the priority that it has by what waits for it now."""
        flow, now_ns = self.flow, self.clock.now_ns
        if not flow.pending[operator] or flow.is_blocked(operator):
            return
        if self._run.reads_by_epoch and operator in flow.graph.arrivals:
            waited_ns = now_ns - flow.waiting_since_ns(operator)
            if 2 * waited_ns < max(self._run.epoch_ns, self._policy.patience_ns(self._state)):
                return
        priority = self._policy.refresh(
            operator,
            flow.pending[operator],
            self._plan,
            self._state,
            current=self._queue.last(operator),
            idle_ns=now_ns - self._observer.last_turn_ns[operator],
        )
        if priority > 0.0:
            self._queue.put(operator, priority)

    def _is_better_alone(self, snapshot: Snapshot) -> bool:
        """Whether short turns would lose more by hand-overs than long ones gain by running together."""
        if not self._run.alone_below_ns:
            return False
        events = np.minimum(snapshot.pending, self._plan.limit)
        long = (cost_ns := events * snapshot.cost_ns) >= self._run.alone_below_ns
        eligible = (self._plan.priority > 0) & (snapshot.pending > 0)
        short = int((eligible & ~long).sum())
        return float(cost_ns[eligible & long].sum()) < short * self._run.alone_below_ns

    def _wake(self) -> None:
        while self._idle and self._start(self._idle[-1]):
            self._idle.pop()

    def _start(self, worker: int) -> bool:
        """Begins the worker's next turn; False if nobody is eligible."""
        if self._alone and self._at_work:
            return False
        turns: list[tuple[int, int]] = []
        most = _ROUND if self._alone and self._run.passes else 1
        while len(turns) < most and (operator := self._queue.pop()) is not None:
            if self.flow.pending[operator] and not self.flow.is_blocked(operator):
                turns.append((operator, self._limit(operator)))
                self._running[operator] = []
        if not turns:
            return False
        self._at_work += 1
        self._held[worker] = [operator for operator, _ in turns]
        self._ahead[worker] = turns[:0:-1]
        first, limit = turns[0]
        self._turn(worker, first, limit)
        asleep = sum(idle != worker for idle in self._idle)
        if not self._alone and len(self._queue) >= asleep:
            self._hold_behind(worker, first)
        return True

    def _limit(self, operator: int) -> int:
        limit = self._policy.turn_limit(operator, self.clock.now_ns, self._plan, self._state)
        return max(1, min(limit, self._run.consumption.events(self.flow.pending[operator])))

    def _hold_behind(self, worker: int, first: int) -> None:
        """Takes all operators behind one with it, if they would be next as soon as its turn has ended; not
        where turns take only a part of what there is."""
        if not isinstance(self._run.consumption, All):
            return
        behind, potential = self._behind[first], self._plan.potential
        for reader in behind:
            is_free = self._running[reader] is None and not self._queue.priority(reader)
            if not is_free or self.flow.is_blocked(reader) or potential[reader] < potential[first]:
                return
        for reader in behind:
            self._running[reader] = []
        self._held[worker] += behind
        self._ahead[worker] = [(reader, self._run.turn_limit) for reader in reversed(behind)]

    def _turn(self, worker: int, operator: int, limit: int) -> None:
        flow, machine = self.flow, self._machine
        taken, groups = flow.take(operator, limit)
        cost_ns = flow.cost(operator, taken)
        work_ns = self._serial.turn_ns(worker, self.clock.now_ns, cost_ns, flow.fixed_ns(operator))
        if self._last_operator[worker] != operator:
            self._overheads.operator_switches += 1
            work_ns += machine.operator_switch_ns
            self._last_operator[worker] = operator
        self._running[operator] = groups
        self._processor.run(worker, work_ns, self._end, worker, operator, taken, groups, cost_ns)
        if flow.capacity is not None:  # there is room again in its input
            self._refresh(flow.graph.topology.parents[operator])

    def _end(self, worker: int, operator: int, taken: int, groups: list[Group], cost_ns: int) -> None:
        flow, ahead = self.flow, self._ahead[worker]
        out = flow.finish(operator, taken, groups, cost_ns)
        flow.hand_on(operator, out)
        self._observer.last_turn_ns[operator] = self.clock.now_ns
        self._running[operator] = []
        while ahead:
            following, limit = ahead.pop()
            if flow.pending[following] and not flow.is_blocked(following):
                self._turn(worker, following, limit)
                return
        for held in self._held[worker]:
            self._running[held] = None
        self._at_work -= 1
        for held in self._held[worker]:
            self._put(held)  # enjima, Algorithm 2, lines 5 to 10
        for held in self._held[worker]:
            self._refresh(flow.children[held])
        if not self._start(worker):
            self._idle.append(worker)
        self._wake()


def simulate_scheduled(
    graph: SimGraph, policy: Policy, machine: Machine, workers: int, run: Run
) -> SimResult:
    """One run of a graph under a scheduling policy."""
    return Scheduled(graph, policy, machine, workers, run).run()
