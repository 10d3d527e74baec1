"""Who runs next: workers take the operator with the highest priority and give it back with a new one.

The loop of enjima's algorithm 2. Once an epoch the policy plans: from a snapshot, priorities for all
operators. Within the epoch a worker that returns an operator refreshes its priority, and that of those its
turn has given work or room to. An operator that is not eligible is not in the queue. When the queue is empty,
workers sleep until something is due, or until a turn ends that made someone eligible.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Set as AbstractSet
from threading import Event, Lock

from penstock.engine.arrivals import Arrivals
from penstock.engine.board import (
    HELD,
    NEVER_NS,
    PRIORITY,
    PUT_OFF,
    RUNNING,
    SLEEPING,
    SOURCES_STAY,
    TAKEN,
    TICKET,
    WAITING,
    Board,
)
from penstock.engine.figures import Figures
from penstock.engine.hand_overs import is_better_alone, is_long
from penstock.engine.passes import Passes
from penstock.engine.planning import Planning
from penstock.engine.quick import Quick
from penstock.engine.sleepers import Seat, Sleepers, wait
from penstock.engine.vertex import Vertex
from penstock.scheduling.consumption import All, Consumption
from penstock.scheduling.policy import Policy
from penstock.scheduling.queue import SchedulingQueue

#: More operators than this are planned for together, not refreshed one by one.
_FEW = 8
_ROUND = 64  # the most turns that a worker takes at once
_LONGEST_SLEEP_NS = 50_000_000  # while nothing happens
_POLL_EPOCHS = 4  # how often the scheduler's thread looks while somebody sleeps whom only it can wake
_TIMED = 8  # every so many-th decision is timed
_NOBODY: frozenset[Vertex] = frozenset()


class Scheduler:
    """Shared by all workers. A worker without work sleeps: one that spins would hold the interpreter lock.

    Invariant: an operator that runs is not in the queue; everything here happens under the lock, except that
    operators are noted as unblocked by whoever freed their memory.
    """

    def __init__(
        self,
        vertices: list[Vertex],
        policy: Policy,
        turn_limit: int,
        epoch_us: int,
        consumption: Consumption | None = None,
        workers: int = 1,
    ) -> None:
        self._vertices = vertices
        self._turn_limit = turn_limit
        self._other_workers = workers - 1
        self._epoch_ns = epoch_us * 1_000
        self._consumption = None if isinstance(consumption, All) else consumption
        self._board = board = Board(len(vertices))
        self._is_running = board.running
        self._queue = SchedulingQueue(
            len(vertices),
            board.floats[PRIORITY],
            board.floats[TAKEN],
            board.integers[TICKET],
            board.numbers[WAITING : WAITING + 2],
        )
        self.figures = Figures(vertices, board)
        self._planning = Planning(vertices, self.figures, policy, turn_limit, self._epoch_ns, workers)
        self._arrivals = Arrivals(vertices, self.figures, self._epoch_ns)
        self._unblocked: deque[Vertex] = deque()
        self._unfinished = {vertex.index for vertex in vertices if not vertex.finished}
        self._lock = Lock()
        self._sleepers = Sleepers(board)
        self._passes = Passes(vertices, board)
        self._quick = Quick(vertices, board, self._passes, turn_limit, workers)
        self._called: set[Vertex] = set()
        self._is_stale = True  # more has changed than was refreshed: plan before the next turn
        self._next_look_ns = 0  # of the scheduler's thread
        self._nudge = Event()  # wakes that thread
        self._alone = False  # the turns at hand are so short that one worker should take them all
        self._stopped = False
        self.decisions = 0
        self._clock_ns = _cost_of_clock_ns()
        # What the processor has spent on picking operators and taking them back, by samples.
        self.decision_ns = 0
        for vertex in vertices:
            vertex.on_unblock = self._note_unblocked
            vertex.on_call = self._note_called

    # -- for workers -----------------------------------------------------------------------------

    def next_turns(self, most: int = _ROUND) -> list[tuple[Vertex, int]]:
        """The next operators to run, in this order, now held by the caller, with the limits of their turns;
        empty if nothing can run or it is not worth it.

        It is one and those behind it that would be next anyway, or if turns are so short that one worker
        takes them all, several at once: then a decision costs least.
        """
        return self.exchange([], _NOBODY, 0, most)

    def exchange(
        self, vertices: list[Vertex], stopped: AbstractSet[Vertex], ended_ns: int, most: int = _ROUND
    ) -> list[tuple[Vertex, int]]:
        """Gives back operators whose turns have ended and takes the next. ``stopped``: those whose turns
        something ended before they had taken all there was."""
        with self._lock:
            self.decisions += 1
            if self.decisions % _TIMED:
                return self._exchange(vertices, stopped, ended_ns, most)
            return self._timed_exchange(vertices, stopped, ended_ns, most)

    def stays(self, source: Vertex) -> bool:
        """Whether a source that has more can go on without a decision: nobody else would be given to its
        worker, and those who read from it are at work and will see what has come."""
        if not self._board.number[SOURCES_STAY] or source.blocked or source.finished or self._stopped:
            return False
        if self._passes.leading[source.index]:
            return False  # its readers are held by this very worker, which is to run them next
        running = self._is_running
        return all(running[reader.index] for reader in source.readers)

    @property
    def planning_ns(self) -> int:
        """What the processor has spent on plans."""
        return self._planning.spent_ns

    def next_turn(self) -> tuple[Vertex, int] | None:
        """The next operator alone."""
        turns = self.next_turns(1)
        return turns[0] if turns else None

    def is_held(self, vertex: Vertex) -> bool:
        """Whether a worker has it."""
        return bool(self._is_running[vertex.index])

    def ready_since_ns(self, vertex: Vertex) -> int:
        """Since when an operator that is held had had work and no turn; 0 if that is not known."""
        return self.figures.begin_turn(vertex)

    def finish(self, vertex: Vertex, now_ns: int) -> None:
        """Gives one operator back."""
        self.finish_turns([vertex], now_ns)

    def finish_turns(self, vertices: list[Vertex], now_ns: int) -> None:
        """Gives operators back and wakes a sleeper if there is work for it."""
        with self._lock:
            self._take_back(vertices, set(vertices), now_ns)
            if self._sleeping and not self._alone and (self._is_stale or len(self._queue) > 1):
                self._sleepers.wake()  # one of those is for the caller

    def sleep(self, seat: Seat) -> list[tuple[Vertex, int]]:
        """Waits until there may be a turn to take or the run is over; the turns, as ``next_turns``."""
        with self._lock:
            if self._stopped:
                return []
            is_needed = self._has_come_meanwhile
            if not is_needed:
                now_ns = time.perf_counter_ns()
                due_ns = now_ns + self._until_due_ns(now_ns)
                watches = self._sleepers.add(seat, None if self._waits_for_other else due_ns)
                if self._sleepers.unwatched and self._next_look_ns > now_ns + _POLL_EPOCHS * self._epoch_ns:
                    self._nudge.set()  # from now on the scheduler's thread has someone to wake
        if not is_needed:
            wait(seat, due_ns - now_ns if watches else None)
            with self._lock:
                self._sleepers.remove(seat)
        return self.next_turns()

    @property
    def stopped(self) -> bool:
        """Whether there will be no more turns: all have finished, or someone has stopped the run."""
        return self._stopped

    def stop(self) -> None:
        """No more turns: everyone wakes up and finds nothing."""
        with self._lock:
            self._stopped = True
            self._sleepers.wake_all()
        self._nudge.set()

    # -- for the scheduler's thread --------------------------------------------------------------

    def begin_epoch(self) -> None:
        """Begins the epoch that is due, unless a worker has done so, and wakes whoever is needed."""
        with self._lock:
            if self._stopped:
                return
            now_ns = time.perf_counter_ns()
            if now_ns >= self._planning.due_ns:
                self._begin_epoch(now_ns)
            else:
                began_ns = time.thread_time_ns()
                self._admit_sources(now_ns)
                self._planning.spent_ns += time.thread_time_ns() - began_ns
            needed = min(len(self._queue), 1 if self._alone else self._sleeping)
            if needed and not self._waits_for_other:
                self._sleepers.wake(needed)

    def await_epoch(self) -> None:
        """Sleeps until the scheduler's thread is needed. While workers run, they begin epochs themselves, and
        of those that sleep one knows when the next thing is due."""
        with self._lock:
            if self._stopped:
                return
            now_ns = time.perf_counter_ns()
            pause_ns = _LONGEST_SLEEP_NS
            if self._sleepers.unwatched:
                pause_ns = max(_POLL_EPOCHS * self._epoch_ns, self._until_due_ns(now_ns))
            self._next_look_ns = now_ns + pause_ns
        if self._nudge.wait(pause_ns / 1e9):
            self._nudge.clear()

    def look_at_sources(self) -> None:
        """Something has happened to the sources: the next epoch looks at each of them."""
        with self._lock:
            self._arrivals.ask_all()
            self._planning.due_ns = 0
        self._nudge.set()

    def open_wait_ns(self, vertex: Vertex, now_ns: int) -> int:
        """How long an operator has had work and no turn, now."""
        since_ns = self.figures.begin_turn(vertex)
        return max(0, now_ns - since_ns) if since_ns and not self._is_running[vertex.index] else 0

    def _note_unblocked(self, vertex: Vertex) -> None:
        """Memory was freed for an operator, in the middle of another's turn or by the allocator."""
        self._unblocked.append(vertex)
        if self._sleeping and not self._alone:
            with self._lock:
                self._sleepers.wake()

    def _note_called(self, vertex: Vertex) -> None:
        """Something has come for an operator on none of its edges, in the middle of another's turn."""
        with self._lock:
            self._called.add(vertex)
            self._sleepers.wake()
        self._nudge.set()

    # -- within the lock -------------------------------------------------------------------------

    def _until_due_ns(self, now_ns: int) -> int:
        """How long nothing has to be done unless someone says so."""
        is_put_off = self._board.number[PUT_OFF] or len(self._queue)
        if not (is_put_off or self._arrivals.polls):
            due_ns = self._arrivals.next_look_ns
            if self._held:
                due_ns = min(due_ns, self._arrivals.next_beat_ns(now_ns))  # a source may be due again by then
            return max(0, min(due_ns - now_ns, _LONGEST_SLEEP_NS))
        return self._epoch_ns

    def _timed_exchange(
        self, vertices: list[Vertex], stopped: AbstractSet[Vertex], ended_ns: int, most: int
    ) -> list[tuple[Vertex, int]]:
        clock, planned_ns = time.thread_time_ns, self.planning_ns
        clock()  # a look at the processor's time takes longest after a turn, and that is not the decision's
        began_ns = clock()
        turns = self._exchange(vertices, stopped, ended_ns, most)
        took_ns = clock() - began_ns - self._clock_ns - (self.planning_ns - planned_ns)
        self.decision_ns += max(0, took_ns) * _TIMED
        return turns

    def _exchange(
        self, vertices: list[Vertex], stopped: AbstractSet[Vertex], ended_ns: int, most: int
    ) -> list[tuple[Vertex, int]]:
        now_ns = ended_ns or time.perf_counter_ns()
        turns = None
        is_unusual = self._is_stale or self._unblocked or self._called or self._alone or self._stopped
        if most == _ROUND and not is_unusual and now_ns < self._planning.due_ns:
            # nothing to do but to give operators back and to pick the next
            turns = self._quick.exchange(vertices, stopped, now_ns)
        if turns is None:
            if vertices and (self._alone or not self._quick.give_back(vertices, stopped, now_ns)):
                self._take_back(vertices, stopped, now_ns)
            if self._stopped or self._waits_for_other:
                return []
            self._catch_up(now_ns)
            if most == _ROUND and not self._alone:
                turns = self._quick.exchange([], _NOBODY, now_ns)
        if turns is None:
            return self._pick(most, now_ns)
        number = self._board.number
        if number[SLEEPING] and number[WAITING]:
            self._sleepers.wake()
        return turns

    @property
    def _sleeping(self) -> int:
        """How many workers sleep."""
        return int(self._board.number[SLEEPING])

    @property
    def _held(self) -> int:
        """How many operators workers have."""
        return int(self._board.number[HELD])

    @property
    def _waits_for_other(self) -> bool:
        """Whether nobody is given anything before the one worker that takes the short turns comes back."""
        return self._alone and self._held > 0

    @property
    def _has_come_meanwhile(self) -> bool:
        """Whether there is something to do that came after a worker was given nothing and before it sleeps:
        whoever brought it found nobody to wake."""
        if self._waits_for_other:
            return False
        running = self._is_running
        is_called = any(not (running[one.index] or one.blocked) for one in self._called)
        return bool(self._unblocked) or is_called or len(self._queue) > 0

    def _catch_up(self, now_ns: int) -> None:
        """Whatever has to be done before someone is picked."""
        while self._unblocked:
            vertex = self._unblocked.popleft()
            if not self._is_running[vertex.index]:
                self._refresh(vertex, now_ns)
        if now_ns >= self._planning.due_ns:
            self._begin_epoch(now_ns)
        elif self._is_stale:
            self._replan(now_ns)
        if self._called:
            self._let_called_in(now_ns)

    def _pick(self, most: int, now_ns: int) -> list[tuple[Vertex, int]]:
        if now_ns >= self._arrivals.next_look_ns:
            self._admit_sources(now_ns)
        turns: list[tuple[Vertex, int]] = []
        queue = self._queue
        while (number := queue.pop()) is not None:
            vertex = self._vertices[number]
            pending = 0 if self._is_running[number] else vertex.work(now_ns)
            if pending:
                turns.append(self._hold(vertex, pending, now_ns))
                if not self._alone:
                    others = self._sleeping if self._passes.is_chain(vertex) else self._other_workers
                    if most > 1 and len(queue) >= others:
                        self._hold_behind(vertex, turns)
                    break
                if len(turns) >= most:
                    break
            elif vertex.source is not None and not vertex.blocked:
                self._arrivals.note(vertex, now_ns, 0)
        if self._sleeping and not self._alone and len(queue):
            self._sleepers.wake()
        return turns

    def _let_called_in(self, now_ns: int) -> None:
        """Those that were called stay so until they get a turn: plans know of edges only."""
        for vertex in [one for one in self._called if not self._is_running[one.index]]:
            if vertex.work(now_ns):
                self._queue.put(vertex.index, max(self._queue.priority(vertex.index), 1.0))
            elif not vertex.blocked:
                self._called.discard(vertex)

    def _hold(self, vertex: Vertex, pending: int, now_ns: int) -> tuple[Vertex, int]:
        limit = self._planning.limit(vertex.index, now_ns)
        if self._consumption is not None:
            limit = min(limit, self._consumption.events(pending))
        self._hold_one(vertex)
        self._board.given_ns[vertex.index] = now_ns
        self._called.discard(vertex)
        return vertex, limit

    def _hold_one(self, vertex: Vertex) -> None:
        self._is_running[vertex.index] = 1
        self._board.number[HELD] += 1

    def _hold_behind(self, first: Vertex, turns: list[tuple[Vertex, int]]) -> None:
        """Gives out with an operator all those behind it, if the policy puts them before it.

        They would be next as soon as its turn has sent them something, and find that in the cache. If one of
        them has work already, it is left to other workers; and so is everything while those sleep, and where
        turns take only a part of what there is: how large a part, is said when they begin.
        """
        if self._consumption is not None:
            return
        behind, queue = self._passes.behind(first), self._queue
        for reader in behind:
            if self._is_running[reader.index] or reader.blocked or queue.priority(reader.index):
                return
        limit = self._turn_limit
        for reader in behind:
            self._hold_one(reader)
            turns.append((reader, limit))
        if behind:
            self._passes.lead(first)

    def _take_back(self, vertices: list[Vertex], stopped: AbstractSet[Vertex], now_ns: int) -> None:
        is_few = len(vertices) <= _FEW
        for part in self._passes.end(vertices):
            for vertex in part:
                self._is_running[vertex.index] = 0
            self._board.number[HELD] -= len(part)
            is_pass = len(part) > 1
            self._end_turn(part[0], now_ns, is_few or is_pass, let_in=not is_pass)
            for vertex in part[1:]:
                if vertex in stopped:
                    self._end_turn(vertex, now_ns, True, let_in=False)
                else:
                    self.figures.end_quietly(vertex, now_ns)  # nobody else writes to it or reads from it
            self._is_stale = self._is_stale or not (is_few or is_pass)

    def _end_turn(self, vertex: Vertex, now_ns: int, one_by_one: bool, let_in: bool) -> None:
        figures = self.figures
        has_sent = figures.end_turn(vertex, now_ns)
        if vertex.finished:
            self._end(vertex)
        elif vertex.source is not None:
            self._refresh(vertex, now_ns)
        elif one_by_one:
            waiting = vertex.waiting()
            figures.wait_from(vertex.index, now_ns if waiting else 0)
            if waiting and not vertex.blocked:
                self._put(vertex, waiting, 0)
        else:
            figures.wait_from(vertex.index, 0)  # the plan will see
        if has_sent and one_by_one and let_in:
            self._let_readers_in(vertex, now_ns)

    def _end(self, vertex: Vertex) -> None:
        """It has finished: nobody looks at it or picks it any more."""
        self.figures.expect(vertex.index, NEVER_NS)
        self.figures.wait_from(vertex.index, 0)
        self._board.look_ns[vertex.index] = NEVER_NS
        self._queue.put(vertex.index, 0.0)
        self._unfinished.discard(vertex.index)
        if not self._unfinished:
            self._stopped = True
            self._sleepers.wake_all()

    def _let_readers_in(self, vertex: Vertex, now_ns: int) -> None:
        self.figures.readers_wait_from(vertex, now_ns)
        if len(vertex.readers) > _FEW:
            self._is_stale = True
            return
        for reader in vertex.readers:
            if self._is_running[reader.index] or reader.blocked:
                continue
            if self._planning.follows_queues or not self._queue.priority(reader.index):
                self._refresh(reader, now_ns)

    def _refresh(self, vertex: Vertex, now_ns: int) -> None:
        """Gives an operator that does not run the priority it has by what waits for it now."""
        is_source = vertex.source is not None
        pending = self._arrivals.after_turn(vertex, now_ns) if is_source else vertex.work(now_ns)
        if pending:
            self._put(vertex, pending, now_ns - self.figures.last_turn(vertex.index))

    def _begin_epoch(self, now_ns: int) -> None:
        began_ns = time.thread_time_ns()
        self._planning.observe(now_ns)
        self._arrivals.poll(now_ns)
        self._replan(now_ns)
        self._planning.await_next(now_ns, time.thread_time_ns() - began_ns)

    def _admit_sources(self, now_ns: int) -> None:
        """Lets sources in whose next event is due by now."""
        for vertex, pending in self._arrivals.due(now_ns):
            index = vertex.index
            if not self._queue.priority(index):
                self._put(vertex, pending, now_ns - self.figures.last_turn(index))
                if not self._queue.priority(index):  # not worth it yet
                    self._arrivals.look_after(index, now_ns + self._epoch_ns)

    def _put(self, vertex: Vertex, pending: int, idle_ns: int) -> None:
        number = vertex.index
        priority = self._planning.priority(number, pending, self._queue.last(number), idle_ns)
        if priority > 0.0:
            self._queue.put(number, priority)
            if self._alone and is_long(pending, vertex.counters.least_cost_ns):
                self._alone = False
        elif vertex.source is None:
            self._board.number[PUT_OFF] = 1

    def _replan(self, now_ns: int) -> None:
        began_ns, made_ns = time.thread_time_ns(), self._planning.spent_ns
        self._is_stale = False
        self._unblocked.clear()  # the plan sees them
        pending = self._planning.make(now_ns)
        plan, figures = self._planning.plan, self.figures
        self._arrivals.patience_ns = self._planning.patience_ns + 1
        self._queue.load(plan.priority)
        for index in self._board.flags[RUNNING].nonzero()[0].tolist():
            self._queue.put(index, 0.0)
            pending[index] = 0
        self._board.number[PUT_OFF] = figures.is_put_off(pending, plan.priority)
        self._passes.plan(plan.potential)
        self._quick.plan(plan, self._planning.rule if self._consumption is None else None)
        self._alone = is_better_alone(plan, pending, figures.least_cost_ns)
        self._planning.spent_ns = made_ns + time.thread_time_ns() - began_ns


def _cost_of_clock_ns() -> int:
    """What two looks at the processor's time cost at the least: more than some decisions."""
    clock = time.thread_time_ns
    return min(-(clock() - clock()) for _ in range(100))
