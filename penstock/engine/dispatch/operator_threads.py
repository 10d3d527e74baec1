"""A thread for every operator, left to the operating system to schedule: what scheduling is compared with.

A thread that finds no input or no room waits on a condition until a neighbour's turn has changed that; a
source waits until its next event is due. Turns, kernels, marks and memory are the same as with workers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from penstock.engine.seat.settings import Settings
from penstock.engine.turns.turn import guarded_turn
from penstock.engine.turns.vertex import Vertex


class OperatorThreads:
    """Runs the vertices until all have finished, someone stops it, or something fails.

    ``on_end(error)`` is called once, by the last thread that leaves.
    """

    def __init__(
        self, vertices: list[Vertex], settings: Settings, on_end: Callable[[BaseException | None], None]
    ) -> None:
        self._limit = settings.turn_limit
        self._rest_ns = settings.adaptation.rest_ns
        self._poll_s = settings.epoch_us / 1e6
        self._on_end = on_end
        self._error: BaseException | None = None
        self._stopped = False
        self._lock = threading.Lock()
        self._working = len(vertices)
        self._seats = [_Seat(vertex) for vertex in vertices]
        for seat in self._seats:
            seat.readers = tuple({self._seats[reader.index] for reader in seat.vertex.readers})
            seat.vertex.on_unblock = self._wake
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        for seat in self._seats:
            name = f"penstock-{seat.vertex.operator.id}"
            thread = threading.Thread(target=self._work, args=(seat,), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Ends now, without processing what is on its way."""
        self._stopped = True
        for seat in self._seats:
            seat.wake()

    def look_at_sources(self) -> None:
        """The sources have been told something: they look at once."""
        for seat in self._seats:
            if seat.vertex.source is not None:
                seat.wake()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    #: The operating system decides, and nobody counts what that takes.
    decision_ns = decisions = planning_ns = 0

    def open_wait_ns(self, vertex: Vertex, now_ns: int) -> int:
        """How long an operator has had work and no turn, now."""
        seat = self._seats[vertex.index]
        return max(0, now_ns - seat.ready_since_ns) if seat.ready_since_ns and not seat.in_turn else 0

    def _work(self, seat: _Seat) -> None:
        try:
            while not self._stopped and not seat.vertex.finished:
                if self._await_work(seat):
                    self._turn(seat)
        except BaseException as error:
            with self._lock:
                if self._error is None:
                    self._error = error
            self.stop()
        finally:
            self._leave()

    def _await_work(self, seat: _Seat) -> bool:
        """Sleeps until there is something to do and room for it; False if the run was stopped."""
        vertex = seat.vertex
        with seat.condition:
            while not self._stopped:
                now_ns = time.perf_counter_ns()
                rest_ns = seat.rest_until_ns - now_ns
                if rest_ns <= 0 and vertex.work(now_ns):
                    return True
                timeout_s = None
                if vertex.source is not None and not vertex.blocked:
                    due_ns = vertex.source.next_due_ns()
                    timeout_s = self._poll_s if due_ns is None else max(0, due_ns - now_ns, rest_ns) / 1e9
                seat.condition.wait(timeout_s)
        return False

    def _turn(self, seat: _Seat) -> None:
        vertex, sent = seat.vertex, _sent(seat.vertex)
        since_ns, seat.ready_since_ns, seat.in_turn = seat.ready_since_ns, 0, True
        began_ns = time.perf_counter_ns()
        taken = guarded_turn(vertex, self._limit)
        ended_ns = time.perf_counter_ns()
        vertex.counters.record_turn(began_ns, ended_ns, taken, since_ns)
        seat.in_turn = False
        if vertex.source is not None and vertex.source.next_due_ns() is not None:
            seat.rest_until_ns = began_ns + self._rest_ns
        seat.ready_since_ns = ended_ns if vertex.source is None and vertex.waiting() else 0
        if _sent(vertex) != sent:
            for reader in seat.readers:
                if reader.ready_since_ns == 0:
                    reader.ready_since_ns = ended_ns
                reader.wake()

    def _wake(self, vertex: Vertex) -> None:
        self._seats[vertex.index].wake()

    def _leave(self) -> None:
        with self._lock:
            self._working -= 1
            is_last = self._working == 0
        if is_last:
            self._on_end(self._error)


class _Seat:
    """One operator, and the condition on which its thread waits."""

    __slots__ = ("condition", "in_turn", "readers", "ready_since_ns", "rest_until_ns", "vertex")

    def __init__(self, vertex: Vertex) -> None:
        self.vertex = vertex
        self.condition = threading.Condition(threading.Lock())
        self.readers: tuple[_Seat, ...] = ()
        self.ready_since_ns = 0  # since when it has had work and no turn; 0: it has none
        self.in_turn = False
        # A source whose events come at a pace rests for as long as with state-based scheduling: at a million
        # events a second one that reads whenever an event is due is never done, and holds the interpreter
        # lock (a tenth of the rate under 100 ms).
        self.rest_until_ns = 0

    def wake(self) -> None:
        with self.condition:
            self.condition.notify()


def _sent(vertex: Vertex) -> int:
    return sum(outlet.written + outlet.marked for outlet in vertex.outlets)
