"""Threads that own operators: each runs its own from its own queue, and the binding changes live."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from penstock.binding.catalogue import binding_named, installation_named
from penstock.binding.policy import Binding
from penstock.engine.bound.load import ObservedLoad
from penstock.engine.bound.queue import DispatchedInbox
from penstock.engine.bound.readiness import Readiness
from penstock.engine.bound.worker import BoundWorker
from penstock.engine.seat.settings import Settings
from penstock.engine.turns.vertex import Vertex
from penstock.metrics.rebinding import RebindMetrics
from penstock.scheduling.consumption import consumption_of


class BoundThreads:
    """Runs the vertices until all have finished, someone stops it, or something fails.

    ``on_end(error)`` is called once, by the last thread that leaves. ``after_turn``, if set before the start,
    is called by the thread that took a turn; tests rebind in it.
    """

    def __init__(
        self, vertices: list[Vertex], settings: Settings, on_end: Callable[[BaseException | None], None]
    ) -> None:
        assert settings.binding is not None
        count = settings.worker_count
        self._policy = binding_named(settings.binding)
        self._policy_state: Any = None
        self._rebind_every_s = settings.rebind_every_s
        self._vertices, self._settings = vertices, settings
        self._on_end = on_end
        kinds = [vertex.operator.node.kind for vertex in vertices]
        self.installation = installation_named(settings.installation)(
            range(len(vertices)), self._policy.initial(kinds, count), count, self._queue, threading.Lock()
        )
        self.observed = ObservedLoad(vertices, count)
        self.after_turn: Callable[[BoundThreads], None] | None = None
        self.decision_ns = 0
        self._readiness = Readiness(vertices, self.installation)
        self._workers = [self._worker(number, settings) for number in range(count)]
        self._threads: list[threading.Thread] = []
        self._deciding = threading.Lock()  # one request at a time; no turn waits for it
        self._lock = threading.Lock()
        self._unfinished = len(vertices)
        self._working = count
        self._is_over = threading.Event()
        self._error: BaseException | None = None

    # -- as every runner -------------------------------------------------------------------------

    def start(self) -> None:
        self._readiness.start(self._vertices)
        for worker in self._workers:
            self._start_thread(f"penstock-bound-{worker.number}", partial(self._work, worker))
        if self._policy.adapts:
            self._start_thread("penstock-rebinder", self._rebind_periodically)

    def stop(self) -> None:
        """Ends now, without processing what is on its way."""
        self._is_over.set()
        for worker in self._workers:
            worker.leave()

    def look_at_sources(self) -> None:
        """The sources have been told something: they get a turn soon."""
        for worker in self._workers:
            worker.look_at_sources()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def open_wait_ns(self, vertex: Vertex, now_ns: int) -> int:
        """How long an operator has had work and no turn, now."""
        return self._readiness.open_wait_ns(vertex, now_ns)

    # -- rebinding -------------------------------------------------------------------------------

    @property
    def rebinding(self) -> RebindMetrics:
        return self.installation.metrics()

    def rebind(self) -> int:
        """Asks the policy for a binding and requests it; returns how many operators it moves."""
        with self._deciding:
            began_ns = time.perf_counter_ns()
            load = self.observed.take(self.installation.requested)
            binding, self._policy_state = self._policy.plan(load, self._policy_state)
            moves = self.installation.request(binding, began_ns)
            self.decision_ns += time.perf_counter_ns() - began_ns
            return moves

    def install(self, binding: Binding) -> int:
        """Requests this binding, whatever the policy thinks."""
        with self._deciding:
            return self.installation.request(binding, time.perf_counter_ns())

    def _rebind_periodically(self) -> None:
        try:
            while not self._is_over.wait(self._rebind_every_s):
                self.rebind()
        except BaseException as error:
            self._fail(error)

    # -- the threads -----------------------------------------------------------------------------

    def _queue(self) -> DispatchedInbox:
        settings = self._settings
        return DispatchedInbox(
            self._vertices,
            settings.policy,
            settings.turn_limit,
            settings.epoch_us * 1_000,
            consumption_of(settings.consumption),
            by_least=settings.costs == "least",
        )

    def _worker(self, number: int, settings: Settings) -> BoundWorker:
        return BoundWorker(
            number,
            self._vertices,
            self.installation,
            self._readiness,
            poll_us=settings.epoch_us,
            after_turn=self._after_turn,
        )

    def _start_thread(self, name: str, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self, worker: BoundWorker) -> None:
        try:
            worker.run()
        except BaseException as error:
            self._fail(error)
        finally:
            with self._lock:
                self._working -= 1
                is_last = self._working == 0
            if is_last:
                self._is_over.set()
                self._on_end(self._error)

    def _after_turn(self, vertex: Vertex) -> None:
        if vertex.finished:
            with self._lock:
                self._unfinished -= 1
                if self._unfinished:
                    return
            self.stop()  # nothing is on its way any more
        elif self.after_turn is not None:
            self.after_turn(self)

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            if self._error is None:
                self._error = error
        self.stop()
