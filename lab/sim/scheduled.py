"""Drives a scheduling policy: workers take the operator with the highest priority, by epochs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lab.sim.clock import Clock
from lab.sim.flow import Feed, Flow
from lab.sim.machine import Machine, Processor, Serial
from lab.sim.observation import Observer
from lab.sim.operators import Group, SimGraph
from lab.sim.passes import are_chains, operators_behind
from lab.sim.reading import Reading
from lab.sim.results import SimResult
from penstock.scheduling.consumption import All, Consumption
from penstock.scheduling.policy import Plan, Policy, Snapshot
from penstock.scheduling.queue import SchedulingQueue
from penstock.scheduling.thresholds import Adaptation

_NS = 1_000_000_000
# As in the engine:
_ROUND = 64  # the most turns that a worker takes at once
_FEW = 8  # turns after which operators are refreshed one by one; after more, everything is planned anew
_LARGE_TURN = 1024  # events of a turn that tells what one costs
_SHORT_NS = 6_000_000  # a pass for which no other worker is woken
_TOGETHER_NS = 5_000_000  # all sources that a worker takes at once, with all that goes with them


@dataclass(frozen=True)
class Run:
    """How a run is simulated.

    drain_s: how much longer than the arrivals the run may last, to finish what came.
    mark_every_ns: a latency marker in each such interval of every source; 0: one after every group.
    turn_limit: the most events that a turn may take; consumption: how much of its queue it takes.
    adaptation: thresholds of the state-based policy that fit the blocks. epoch_ns: the scheduler's period.
    plan_every_ns: from one plan to the next, where that is longer than an epoch, as it is in the engine with
        many operators. A round of more than a few turns is followed by a plan in any case.
    capacity: events that may wait at an operator before those that write to it are held back; None: no bound.
    reads_by_epoch: a source that was read empty is read again after an epoch, or when the policy's patience
        ends, as in the engine; else as soon as a worker is free. Threads rest for as long as the state-based
        policy is patient.
    alone_below_ns: when the turns at hand are mostly shorter than this, one worker takes them all, as the
        engine does, since a second would lose more by handing the interpreter over; 0: never.
    passes: a worker takes an operator together with all behind it where the engine does: nobody else writes
        to them, none has priority or runs, the policy puts them first, and no other worker is short of work
        or it is quickly done. It takes several such sources at once if they are short. One that takes all
        turns because they are short takes a round of them, and gives them back together.
    """

    seconds: float
    seed: int = 0
    drain_s: float = 1.0
    mark_every_ns: int = 0
    turn_limit: int = 65_536
    consumption: Consumption = field(default_factory=All)
    adaptation: Adaptation | None = None
    epoch_ns: int = 1_000_000
    plan_every_ns: int = 0
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
        self._plan_at_ns = 0
        self._is_quick = False  # the policy has a rule that the engine's compiled steps follow
        self._at_work = 0  # workers inside turns
        self._alone = False
        self._running: list[list[Group] | None] = [None] * size
        self._last_operator = [-1] * workers
        self._idle = list(reversed(range(workers)))  # the first worker is woken first
        self._behind = operators_behind(graph.topology) if run.passes else ((),) * size
        self._is_chain = are_chains(graph.topology, self._behind)
        self._others = workers - 1
        self._paced = tuple(graph.arrivals) if run.reads_by_epoch else ()
        self._reading = Reading(run.epoch_ns)
        self._given_ns = [0] * size
        self._took_all = [True] * size  # whether the last turn ended because it was to take no more
        self._span_ns = [0] * size  # of passes lately
        self._event_ns = np.array([operator.cost.event.mean_ns for operator in graph.operators])
        self._known_ns = np.zeros(size)  # the same, of those that have had a large turn
        self._held: list[list[int]] = [[] for _ in range(workers)]  # what a worker gives back together
        #: The first of each pass, and whether others came with it.
        self._leaders: list[list[tuple[int, bool]]] = [[] for _ in range(workers)]
        #: Those of them that it has not run yet, with their limits, the last first.
        self._ahead: list[list[tuple[int, int]]] = [[] for _ in range(workers)]

    def run(self) -> SimResult:
        """Simulates it all."""
        end_ns = int(self._run.seconds * _NS)
        looks_ns = [self._reading.put_off(source, 0) for source in self._paced]
        self._epoch()
        for look_ns in looks_ns:
            self.clock.at(look_ns, self._look)
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
        """The scheduler's period: priorities are computed anew if it is time, whoever was put off may be
        eligible now, and whoever sleeps looks again."""
        now_ns = self.clock.now_ns
        if now_ns >= self._plan_at_ns:
            self._plan_at_ns = now_ns + self._run.plan_every_ns
            self._replan()
        else:
            self._refresh(op for op in range(len(self._running)) if op not in self.flow.graph.arrivals)
        self.clock.at(now_ns + self._run.epoch_ns, self._epoch)
        self._wake()

    def _replan(self) -> None:
        snapshot = self._observer.snapshot(self.clock.now_ns)
        self._plan, self._state = self._policy.plan(snapshot, self._state)
        self._overheads.decisions += 1
        self._reading.patience_ns = self._policy.patience_ns(self._state) + 1
        self._queue.load(self._plan.priority)
        for operator, groups in enumerate(self._running):
            if groups is not None:
                self._queue.put(operator, 0.0)
        self._alone = self._is_better_alone(snapshot)
        self._is_quick = self._policy.rule(self._plan, self._state) is not None

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
            if (
                self._alone
                and flow.pending[operator] * self._known_ns[operator] > 2 * self._run.alone_below_ns
            ):
                self._alone = False

    def _give_back(self, operator: int) -> None:
        """Its turn has ended."""
        now_ns, reading = self.clock.now_ns, self._reading
        if operator in self._paced and not self._took_all[operator]:
            look_ns = reading.read_empty(operator, self._given_ns[operator], now_ns)
            self._observer.last_turn_ns[operator] = look_ns - reading.patience_ns  # idle long enough by then
            self.clock.at(look_ns, self._look)
            if not self._is_late(operator):
                return
        self._put(operator)  # enjima, Algorithm 2, lines 5 to 10

    def _is_late(self, source: int) -> bool:
        """Whether what has come to a source meanwhile has waited so long that it need not wait for more."""
        waited_ns = self.clock.now_ns - self.flow.waiting_since_ns(source)
        return bool(self.flow.pending[source]) and 2 * waited_ns >= self._reading.patience_ns

    def _look(self) -> None:
        """A source's time has come."""
        now_ns = self.clock.now_ns
        for source in self._reading.due(now_ns):
            self._refresh((source,))
            if self._running[source] is None and self._queue.priority(source) <= 0.0:
                self.clock.at(self._reading.put_off(source, now_ns), self._look)
        self._wake()

    def _is_better_alone(self, snapshot: Snapshot) -> bool:
        """Whether short turns would lose more by hand-overs than long ones gain by running together."""
        if not self._run.alone_below_ns:
            return False
        events = np.minimum(snapshot.pending, self._plan.limit)
        long = (cost_ns := events * self._known_ns) >= self._run.alone_below_ns
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
        turns = self._round() if self._alone and self._run.passes else self._passes_of(worker)
        if not turns:
            return False
        self._at_work += 1
        self._held[worker] = [operator for operator, _ in turns]
        self._ahead[worker] = turns[:0:-1]
        first, limit = turns[0]
        self._turn(worker, first, limit)
        return True

    def _round(self) -> list[tuple[int, int]]:
        """All turns at hand, for a worker that is alone."""
        turns: list[tuple[int, int]] = []
        while len(turns) < _ROUND and (operator := self._queue.pop()) is not None:
            if self.flow.pending[operator] and not self.flow.is_blocked(operator):
                turns.append(self._pick(operator))
        return turns

    def _passes_of(self, worker: int) -> list[tuple[int, int]]:
        """The next operator, with those behind it if they go together; and more such sources if short."""
        turns: list[tuple[int, int]] = []
        leaders = self._leaders[worker]
        span_ns = 0
        while (operator := self._queue.first()) is not None:
            if not self.flow.pending[operator] or self.flow.is_blocked(operator):
                self._queue.put(operator, 0.0)
                continue
            span_ns += self._span_ns[operator]
            is_source = operator in self.flow.graph.arrivals
            is_short = (
                self._is_quick and is_source and self._span_ns[operator] > 0 and span_ns <= _TOGETHER_NS
            )
            if leaders and not is_short:
                break
            self._queue.pop()
            turns.append(self._pick(operator))
            behind = self._behind_now(worker, operator)
            turns += [(reader, self._run.turn_limit) for reader in behind]
            leaders.append((operator, bool(behind)))
            if not is_short:
                break
        return turns

    def _pick(self, operator: int) -> tuple[int, int]:
        self._running[operator] = []
        self._given_ns[operator] = self.clock.now_ns
        return operator, self._limit(operator)

    def _limit(self, operator: int) -> int:
        limit = self._policy.turn_limit(operator, self.clock.now_ns, self._plan, self._state)
        if isinstance(self._run.consumption, All):
            return max(1, limit)  # more than is there shows that nothing was left
        return max(1, min(limit, self._run.consumption.events(self.flow.pending[operator])))

    def _behind_now(self, worker: int, first: int) -> tuple[int, ...]:
        """All operators behind one if they go with it: they would be next as soon as its turn has ended. Not
        where turns take only a part of what there is."""
        if not isinstance(self._run.consumption, All):
            return ()
        asleep = sum(idle != worker for idle in self._idle)
        wanted = asleep if self._is_chain[first] else self._others
        is_short = self._is_quick and 0 < self._span_ns[first] <= _SHORT_NS
        if len(self._queue) < wanted and not is_short:
            return ()
        behind, potential = self._behind[first], self._plan.potential
        for reader in behind:
            is_free = self._running[reader] is None and not self._queue.priority(reader)
            if not is_free or self.flow.is_blocked(reader) or potential[reader] < potential[first]:
                return ()
        for reader in behind:
            self._running[reader] = []
        return behind

    def _turn(self, worker: int, operator: int, limit: int, *, decides: bool = True) -> None:
        flow, machine = self.flow, self._machine
        taken, groups = flow.take(operator, limit)
        self._took_all[operator] = taken >= limit
        if taken >= _LARGE_TURN:
            self._known_ns[operator] = self._event_ns[operator]
        cost_ns = flow.cost(operator, taken, groups)
        fixed_ns = flow.fixed_ns(operator)
        work_ns = self._serial.turn_ns(self.clock.now_ns, cost_ns, fixed_ns, decides=decides)
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
                self._turn(worker, following, limit, decides=False)
                return
        for held in self._held[worker]:
            self._running[held] = None
        self._at_work -= 1
        self._note_spans(worker)
        for held in self._held[worker]:
            self._give_back(held)
        if len(self._held[worker]) > _FEW and not self._leaders[worker] and self._run.plan_every_ns:
            self._replan()
        else:
            for held in self._held[worker]:
                self._refresh(flow.children[held])
        self._leaders[worker] = []
        if not self._start(worker):
            self._idle.append(worker)
        self._wake()

    def _note_spans(self, worker: int) -> None:
        """How long passes take, smoothed; of one that came alone although it could lead, it says nothing."""
        leaders = self._leaders[worker] if self._run.passes else []
        for leader, leads in leaders:
            if leads or not self._behind[leader]:
                took_ns = (self.clock.now_ns - self._given_ns[leader]) // len(leaders)
                before_ns = self._span_ns[leader]
                self._span_ns[leader] = (7 * before_ns + took_ns) // 8 if before_ns else took_ns


def simulate_scheduled(
    graph: SimGraph, policy: Policy, machine: Machine, workers: int, run: Run
) -> SimResult:
    """One run of a graph under a scheduling policy."""
    return Scheduled(graph, policy, machine, workers, run).run()
