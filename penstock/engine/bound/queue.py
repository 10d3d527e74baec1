"""The queue of a bound thread in the order of a policy: a dispatcher, with an inbox before it."""

from __future__ import annotations

import time

from penstock.binding.tasks import BlockTask, Rebind
from penstock.engine.bound.inbox import WorkerInbox
from penstock.engine.dispatch.observation import VertexCounts, observation_of, topology_of
from penstock.engine.turns.vertex import Vertex
from penstock.scheduling.consumption import Consumption
from penstock.scheduling.dispatch.dispatcher import Dispatcher
from penstock.scheduling.dispatch.machine import NOBODY
from penstock.scheduling.dispatch.rules import Rules
from penstock.scheduling.policy import Policy, PriorityOrder


class DispatchedInbox(WorkerInbox):
    """Rebinds first, then the task of the operator that the dispatcher gives out.

    Who owns an operator, and that nobody else runs it, is the installation's part. So to the dispatcher an
    operator's turn has ended when the next task is taken, and it waits again when its own next one comes. Of
    the rules none applies: a task is one operator's. ``put`` may be called by any thread, the rest by the
    owner, or within the installation's guard where several threads share the queue.
    """

    def __init__(
        self,
        vertices: list[Vertex],
        policy: Policy,
        turn_limit: int,
        epoch_ns: int,
        consumption: Consumption,
        *,
        by_least: bool = True,
    ) -> None:
        super().__init__()
        topology = topology_of(vertices)
        self._vertices = vertices
        self._dispatcher = Dispatcher(topology, policy, turn_limit, epoch_ns, 1, Rules.none(), consumption)
        self._board, self._head = self._dispatcher.board, self._dispatcher.board.head
        self._counts = VertexCounts(vertices)
        self._seen = observation_of(vertices, topology, 1, by_least=by_least)
        self._waiting: dict[int, BlockTask] = {}  # by operator; each has one at the most
        self._last = NOBODY  # whose task was taken last
        self.limits = [turn_limit] * len(vertices)  # of the turns for the tasks taken last

    def take(self) -> BlockTask | Rebind | None:
        if self._rebinds:
            return super().take()
        now_ns = time.perf_counter_ns()
        dispatcher, waiting = self._dispatcher, self._waiting
        while self._tasks:
            task = self._tasks.popleft()
            waiting[task.operator] = task
            self._tell(task.operator, task.priority or now_ns)
        if not waiting:
            return None
        if now_ns >= dispatcher.plan_due_ns:
            self._plan(now_ns)
        if (
            self._head.put_off or self._head.order == PriorityOrder.LENGTH
        ):  # more may have come since it was told
            for operator in waiting:
                self._tell(operator, now_ns)
        if not self._exchange(now_ns, 1):
            return None
        turn = self._board.given[0]
        operator = self._last = turn.operator
        self.limits[operator] = turn.limit
        return waiting.pop(operator)

    @property
    def pause_s(self) -> float | None:
        """After which time a task may be worth a turn that is not yet; None: there is none."""
        return self._head.epoch_ns / 1e9 if self._waiting else None

    def __len__(self) -> int:
        return super().__len__() + self._head.waiting

    def _tell(self, operator: int, now_ns: int) -> None:
        vertex = self._vertices[operator]
        pending = self._head.turn_limit if vertex.source is not None else max(1, vertex.waiting())
        if operator == self._last:
            self._exchange(now_ns, 0)
        self._dispatcher.tell(operator, pending, now_ns)

    def _exchange(self, now_ns: int, most: int) -> int:
        """Gives back the operator whose task was taken last, and takes the next."""
        returned, self._board.returned[0], self._last = self._last != NOBODY, self._last, NOBODY
        return self._dispatcher.exchange(returned, now_ns, most)

    def _plan(self, now_ns: int) -> None:
        began_ns = time.thread_time_ns()
        if self._seen.is_due(now_ns):
            self._seen.update(now_ns, self._counts.read())
        self._dispatcher.plan(now_ns, self._seen)
        self._dispatcher.await_plan(now_ns, time.thread_time_ns() - began_ns)
