"""The simulated machine: cores, threads that share them fairly, and what switching and waiting cost."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush

from lab.sim.clock import Action, SimulatedClock
from lab.sim.results import Overheads


@dataclass(frozen=True)
class Machine:
    """What a machine is like; all durations in ns.

    context_switch_ns: to bring a thread onto a core, when it wakes up or another was there before.
    operator_switch_ns: for a thread to go on with another operator (its code and state are not in the cache).
    serial_ns: what only one thread at a time can do: taking a turn or a task from a queue that all share.
    holds_interpreter: whether the fixed part of every turn holds a lock that all threads share, as Python's.
    handover_ns: for a thread to get such a lock that it had to wait for.
    lock_uses: how often a turn takes that lock, since kernels give it up and take it back. More than once
        only with a thread per operator, where many wait for it; a handful of workers mostly find it free.
    barrier_ns: for one barrier, on every thread, beyond the waiting for the slowest.
    rebind_ns: for a thread to act on one rebind.
    slice_ns: how long a thread may keep its core while others wait for one.
    """

    cores: int = 2
    context_switch_ns: int = 0
    operator_switch_ns: int = 0
    serial_ns: int = 0
    holds_interpreter: bool = False
    handover_ns: int = 0
    lock_uses: int = 1
    barrier_ns: int = 0
    rebind_ns: int = 0
    slice_ns: int = 3_000_000


class Serial:
    """What only one thread at a time may use; others wait in the order they come."""

    def __init__(self, machine: Machine, overheads: Overheads) -> None:
        self._machine = machine
        self._overheads = overheads
        self._free_ns = 0

    def use(self, now_ns: int, hold_ns: int) -> int:
        """Takes it as soon as it is free; returns how long the caller waits for it and holds it."""
        if not hold_ns:
            return 0
        begin_ns = max(now_ns, self._free_ns)
        if begin_ns > now_ns:  # it sleeps meanwhile and has to be woken
            hold_ns += self._machine.handover_ns
        self._free_ns = begin_ns + hold_ns
        self._overheads.serial_ns += hold_ns
        self._overheads.serial_wait_ns += begin_ns - now_ns
        return self._free_ns - now_ns

    def turn_ns(self, now_ns: int, cost_ns: int, fixed_ns: float, *, decides: bool = True) -> int:
        """A turn that costs so much in all, ``fixed_ns`` of it on whatever the size: with its serial part. Of
        turns that a thread took together only the first decides: the others are taken already."""
        machine = self._machine
        inside_ns = min(cost_ns, round(fixed_ns)) if machine.holds_interpreter else 0
        taking_ns = machine.serial_ns if decides else 0
        return cost_ns - inside_ns + self.use(now_ns, taking_ns + inside_ns)


class Lock:
    """A lock that threads wait for without a core, in the order they come; who gets it needs one again."""

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: deque[tuple[Action, tuple[object, ...]]] = deque()

    def take(self, action: Action, *arguments: object) -> None:
        """Calls ``action`` as soon as the lock is the caller's."""
        if self._is_taken:
            self._waiting.append((action, arguments))
        else:
            self._is_taken = True
            action(*arguments)

    def give_up(self) -> None:
        """The next one has it now, if there is one."""
        if self._waiting:
            action, arguments = self._waiting.popleft()
            action(*arguments)
        else:
            self._is_taken = False


class Processor:
    """Runs bursts of work of threads on cores. A thread has one burst at a time.

    With more threads than cores the one that has had the least time goes first, for a slice at the most.
    A thread that asks for its next burst at the moment its last one ends goes on without a switch while its
    slice lasts or nobody waits.
    """

    def __init__(self, clock: SimulatedClock, machine: Machine, threads: int, overheads: Overheads) -> None:
        self._clock = clock
        self._machine = machine
        self._overheads = overheads
        self._alone = threads <= machine.cores  # every thread has a core of its own
        self._ended_ns = [-1] * threads
        self._free = list(range(machine.cores))
        self._ready: list[tuple[int, int, int]] = []  # (time it has had, order of coming, thread)
        self._came = 0
        self._had_ns = [0] * threads
        self._least_ns = 0  # a thread that wakes up has had at least this much, or it would rule after a rest
        self._left_ns = [0] * threads
        self._slice_left_ns = [0] * threads
        self._done: list[tuple[Action, tuple[object, ...]]] = [(_nothing, ())] * threads
        self._just_ended: int | None = None
        self._goes_on = False
        self.busy_ns = [0] * threads

    def run(self, thread: int, work_ns: int, done: Action, *arguments: object) -> None:
        """Works for so long on behalf of the thread, then calls ``done``."""
        self.busy_ns[thread] += work_ns
        now_ns = self._clock.now_ns
        if self._alone:
            switch_ns = 0 if self._ended_ns[thread] == now_ns else self._switch()
            end_ns = now_ns + switch_ns + work_ns
            self._ended_ns[thread] = end_ns
            self._clock.at(end_ns, done, *arguments)
            return
        self._left_ns[thread] = work_ns
        self._done[thread] = (done, arguments)
        if self._just_ended == thread and (self._slice_left_ns[thread] > 0 or not self._ready):
            self._goes_on = True
            return
        self._had_ns[thread] = max(self._had_ns[thread], self._least_ns)
        self._came += 1
        heappush(self._ready, (self._had_ns[thread], self._came, thread))
        self._fill_cores()

    def _switch(self) -> int:
        self._overheads.context_switches += 1
        self._overheads.context_switch_ns += self._machine.context_switch_ns
        return self._machine.context_switch_ns

    def _fill_cores(self) -> None:
        while self._free and self._ready:
            core = self._free.pop()
            had_ns, _, thread = heappop(self._ready)
            self._least_ns = max(self._least_ns, had_ns)
            self._slice_left_ns[thread] = self._machine.slice_ns
            self._go_on(core, thread, self._switch())

    def _go_on(self, core: int, thread: int, switch_ns: int) -> None:
        if self._slice_left_ns[thread] <= 0:
            self._slice_left_ns[thread] = self._machine.slice_ns
        part_ns = min(self._left_ns[thread], self._slice_left_ns[thread])
        self._clock.at(self._clock.now_ns + switch_ns + part_ns, self._pause, core, thread, part_ns)

    def _pause(self, core: int, thread: int, part_ns: int) -> None:
        """The burst or the slice is over."""
        self._had_ns[thread] += part_ns
        self._left_ns[thread] -= part_ns
        self._slice_left_ns[thread] -= part_ns
        if self._left_ns[thread] > 0:
            if not self._ready:
                self._go_on(core, thread, 0)
                return
            self._came += 1
            heappush(self._ready, (self._had_ns[thread], self._came, thread))
        else:
            done, arguments = self._done[thread]
            self._just_ended, self._goes_on = thread, False
            done(*arguments)
            self._just_ended = None
            if self._goes_on:
                self._go_on(core, thread, 0)
                return
        self._free.append(core)
        self._fill_cores()


def _nothing() -> None:
    """A thread's burst before its first."""
