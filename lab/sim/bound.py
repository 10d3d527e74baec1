"""Drives a binding: every operator belongs to a thread, and a policy moves operators while tasks flow."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.sim.clock import SimulatedClock
from lab.sim.flow import Flow, MergedArrivals
from lab.sim.machine import Machine, Processor, Serial
from lab.sim.operators import Group, SimGraph
from lab.sim.results import SimResult
from lab.sim.scheduled import Run
from penstock.binding.barrier import Barrier
from penstock.binding.installation import Installation
from penstock.binding.policy import BindingPolicy, Load
from penstock.binding.shared_queue import SharedQueue
from penstock.binding.tasks import Action, BlockTask, Rebind, TaskQueue
from penstock.binding.workload import demand

_NS = 1_000_000_000


@dataclass(frozen=True)
class Rebinding:
    """Who owns which operator, how a change is installed, and how often one is thought about.

    ``drift_ns``: a rebinding comes late by up to so much, at random, as its timer is not in step with the
    arrivals.
    """

    policy: BindingPolicy
    installation: type[Installation]
    every_ns: int = 2 * _NS
    drift_ns: int = 0


class _Queue(TaskQueue):
    """Tells the simulator who has something to do."""

    def __init__(self, touched: list[_Queue]) -> None:
        super().__init__()
        self.threads: list[int] = []
        self.puts = 0  # since its threads were last looked at
        self.woken = False
        self._touched = touched

    def put(self, task: BlockTask | Rebind) -> None:
        super().put(task)
        self._touch()
        self.puts += 1

    def wake(self) -> None:
        self._touch()
        self.woken = True

    def _touch(self) -> None:
        if not self.puts and not self.woken:
            self._touched.append(self)


class SimulatedBinding:
    """Threads that step through an installation. A task is a group of events; older ones go first."""

    def __init__(
        self, graph: SimGraph, rebinding: Rebinding, machine: Machine, threads: int, run: Run
    ) -> None:
        self._run, self._machine, self._rebinding = run, machine, rebinding
        self.clock = SimulatedClock()
        self.flow = Flow(graph, self.clock, run.seed)
        self._overheads = self.flow.recorder.overheads
        self._processor = Processor(self.clock, machine, threads, self._overheads)
        self._serial = Serial(machine, self._overheads)
        self._feed = MergedArrivals(self.flow, int(run.seconds * _NS), run.mark_every_ns)
        self._entry = {operator: edge for edge, operator in enumerate(sorted(graph.arrivals))}
        readers = sorted(graph.arrivals)
        self._outputs: list[
            list[tuple[int, int]]
        ] = []  # by operator: the edges that it writes, who reads them
        for children in graph.children:
            self._outputs.append(list(enumerate(children, len(readers))))
            readers.extend(children)
        kinds = [operator.kind for operator in graph.operators]
        binding = rebinding.policy.initial(kinds, threads)
        self._touched: list[_Queue] = []  # queues whose threads have not been looked at since a put or wake
        self.installation = rebinding.installation(readers, binding, threads, lambda: _Queue(self._touched))
        self._is_shared = isinstance(self.installation, SharedQueue)
        for thread, queue in enumerate(self.installation.queues):
            assert isinstance(queue, _Queue)
            queue.threads.append(thread)
        self._is_idle = [True] * threads
        self._waits_since_ns = [-1] * threads  # at a barrier; −1: it does not wait
        self._last_operator = [-1] * threads
        self._under_way: list[deque[Group]] = [deque() for _ in readers]  # tasks not done, by edge, in order
        self._policy_state: Any = None
        self._random = np.random.default_rng([run.seed, 2])  # its own: the work is the same with or without
        self._seen = np.zeros((2, len(graph.operators)))  # processed and busy, at the last rebinding
        self._op_comp = np.zeros(len(graph.operators))

    def run(self) -> SimResult:
        """Simulates it all."""
        end_ns = int(self._run.seconds * _NS)
        self._schedule_arrivals()
        if self._rebinding.policy.adapts and not self._is_shared:
            self._schedule_rebinding(0)
        self.clock.run(end_ns)
        self.flow.recorder.freeze(end_ns, self._processor.busy_ns)
        self.clock.run(end_ns + int(self._run.drain_s * _NS))
        self._count_the_rest()
        return self.flow.recorder.result(self._run.seconds, self._feed.arrived)

    # -- what comes from outside ----------------------------------------------------------------

    def _schedule_arrivals(self) -> None:
        time_ns = self._feed.next_ns()
        if time_ns is not None:
            self.clock.at(time_ns, self._arrive)

    def _arrive(self) -> None:
        for operator, group in self._feed.take():
            self._send(self._entry[operator], operator, group)
        self._schedule_arrivals()
        self._wake()

    def _send(self, edge: int, reader: int, group: Group) -> None:
        flow = self.flow
        if not flow.pending[reader]:
            flow.recorder.fill(reader, self.clock.now_ns)
        flow.pending[reader] += group[1] or 1
        self._under_way[edge].append(group)
        self.installation.send(edge, group, group[0])

    def _rebind(self, due_ns: int) -> None:
        """The requester: looks at the load since the last time and asks for what the policy plans."""
        recorder, now_ns = self.flow.recorder, self.clock.now_ns
        totals = np.array([recorder.processed, recorder.busy_ns], np.float64)
        processed, busy_ns = totals - self._seen
        self._seen = totals
        some = processed > 0
        self._op_comp[some] = busy_ns[some] / processed[some]  # eq. 2 over what was processed since
        work = self._op_comp * demand(processed, self.flow.pending)
        installation, policy = self.installation, self._rebinding.policy
        load = Load(tuple(installation.requested), tuple(work.tolist()), installation.threads)
        binding, self._policy_state = policy.plan(load, self._policy_state)
        moved = installation.request(binding, now_ns)
        self._overheads.decisions += 1
        self._overheads.barriers += moved > 0 and isinstance(installation, Barrier)
        recorder.rebinds.append((now_ns, moved))
        self._schedule_rebinding(due_ns)
        self._wake()

    def _schedule_rebinding(self, last_due_ns: int) -> None:
        due_ns = last_due_ns + self._rebinding.every_ns
        late_ns = int(self._random.uniform(0, self._rebinding.drift_ns))
        self.clock.at(due_ns + late_ns, self._rebind, due_ns)

    # -- threads --------------------------------------------------------------------------------

    def _wake(self) -> None:
        """Lets every thread step that sleeps and has a reason not to."""
        touched = self._touched
        while touched:
            queue = touched.pop(0)
            puts, woken = queue.puts, queue.woken
            queue.puts, queue.woken = 0, False
            for thread in queue.threads:
                waits = self._waits_since_ns[thread] >= 0
                if (woken and waits) or (self._is_idle[thread] and (woken or puts > 0)):
                    puts -= not waits
                    self._go(thread)

    def _go(self, thread: int) -> None:
        """Steps the thread until it is busy for some time or has nothing to do."""
        machine, now_ns = self._machine, self.clock.now_ns
        self._is_idle[thread] = False
        if self._waits_since_ns[thread] >= 0:
            waited_ns = now_ns - self._waits_since_ns[thread]
            self.installation.waited(thread, waited_ns)
            self._overheads.barrier_wait_ns += waited_ns
            self._waits_since_ns[thread] = -1
        while True:
            step = self.installation.step(thread, now_ns)
            match step.action:
                case Action.PROCESS:
                    assert isinstance(step.task, BlockTask)
                    self._process(thread, step.task)
                    return
                case Action.IDLE:
                    self._is_idle[thread] = True
                    return
                case Action.WAIT:
                    self._waits_since_ns[thread] = now_ns
                    return
                case Action.MOVE:
                    spent_ns = machine.barrier_ns
                    self._overheads.barrier_wait_ns += spent_ns
                case _:
                    spent_ns = machine.rebind_ns
                    self._overheads.rebind_ns += spent_ns
            if spent_ns:
                self._processor.run(thread, spent_ns, self._go_on, thread)
                return

    def _go_on(self, thread: int) -> None:
        self._go(thread)
        self._wake()

    def _process(self, thread: int, task: BlockTask) -> None:
        flow, machine, operator = self.flow, self._machine, task.operator
        group: Group = task.payload
        cost_ns = flow.cost(operator, group[1], [group])
        work_ns = cost_ns
        if self._is_shared:
            hold_ns = machine.serial_ns * flow.handovers(operator, group[1])
            work_ns += self._serial.use(self.clock.now_ns, hold_ns)
        if self._last_operator[thread] != operator:
            self._last_operator[thread] = operator
            self._overheads.operator_switches += 1
            work_ns += machine.operator_switch_ns
        self._processor.run(thread, work_ns, self._end, thread, task, cost_ns)

    def _end(self, thread: int, task: BlockTask, cost_ns: int) -> None:
        flow, operator = self.flow, task.operator
        group: Group = task.payload
        self._under_way[task.edge].popleft()
        flow.pending[operator] -= group[1] or 1
        for out in flow.finish(operator, group[1], [group], cost_ns):
            for edge, reader in self._outputs[operator]:
                self._send(edge, reader, out)
        self.installation.finish(thread, task, self.clock.now_ns)
        self._go(thread)
        self._wake()

    def _count_the_rest(self) -> None:
        metrics, overheads = self.installation.metrics(), self._overheads
        overheads.rebinds, overheads.forwarded = metrics.rebinds, metrics.forwarded
        overheads.parked = metrics.parked
        readers = self.installation.readers
        self.flow.left_over([(readers[edge], list(groups)) for edge, groups in enumerate(self._under_way)])


def simulate_bound(
    graph: SimGraph, rebinding: Rebinding, machine: Machine, threads: int, run: Run
) -> SimResult:
    """One run of a graph whose operators are bound to threads."""
    return SimulatedBinding(graph, rebinding, machine, threads, run).run()
