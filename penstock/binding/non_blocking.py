"""Non-blocking installation: a rebind is a task for the old owner, and nobody waits for anybody."""

from __future__ import annotations

from penstock.binding.installation import Installation
from penstock.binding.policy import Binding
from penstock.binding.tasks import IDLE, Action, Rebind, ThreadStep


class NonBlocking(Installation):
    """Section III-C of the paper.

    Only an operator's owner stores its next owner, and only between two tasks. So a thread that finds
    itself the owner stays it until its next step, and nobody else is inside the operator. A task in the
    wrong queue, and a rebind likewise, is forwarded to the owner; a task that overtook others is parked.

    Several rebinds of one operator may be under way, and forwarding can change their order: each carries
    its generation, and one that is older than the last stored is dropped.
    """

    name = "non_blocking"

    def _prepare(self) -> None:
        self._asked = [0] * len(self.owners)  # the last generation requested; the requester's
        self._stored = [0] * len(self.owners)  # the last generation stored; the owner's

    def request(self, binding: Binding, now_ns: int) -> int:
        addressed = self.address_rebinds(binding, now_ns)
        for thread, rebind in addressed:
            self.queues[thread].put(rebind)
        return len(addressed)

    def address_rebinds(self, binding: Binding, now_ns: int) -> list[tuple[int, Rebind]]:
        """The rebinds that lead to a binding, each with the thread to put it to.

        Compared is with what was requested last, not with the owners of this moment: a rebind may still be
        under way that would otherwise undo this one.
        """
        addressed = []
        for operator, thread in enumerate(binding):
            if thread != self.requested[operator]:
                self.requested[operator] = thread
                self._asked[operator] += 1
                rebind = Rebind(operator, thread, self._asked[operator], now_ns)
                addressed.append((self.address(operator), rebind))
        return addressed

    def step(self, thread: int, now_ns: int) -> ThreadStep:
        task = self.queues[thread].take()
        if task is None:
            return IDLE
        if not self.may_run(thread, task.operator):
            return self._forward(thread, task)
        if isinstance(task, Rebind):
            return self._store(thread, task, now_ns)
        return self._receive(thread, task)

    def _store(self, thread: int, rebind: Rebind, now_ns: int) -> ThreadStep:
        counters, operator = self._counters[thread], rebind.operator
        if rebind.generation < self._stored[operator]:
            counters.overtaken += 1
            return ThreadStep(Action.OVERTAKEN, rebind)
        self._stored[operator] = rebind.generation
        counters.record_rebind(now_ns - rebind.requested_ns)
        self.owners[operator] = rebind.thread  # last: from here on the operator belongs to the other
        return ThreadStep(Action.REBIND, rebind, rebind.thread)
