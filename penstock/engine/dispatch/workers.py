"""A fixed pool of workers that take turns, and the thread that begins the scheduler's epochs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from penstock.engine.dispatch.scheduler import Scheduler
from penstock.engine.dispatch.sleepers import Seat
from penstock.engine.seat.settings import Settings
from penstock.engine.turns.vertex import Vertex
from penstock.scheduling.consumption import consumption_of


class WorkerPool:
    """Runs the vertices until all have finished, someone stops it, or something fails.

    ``on_end(error)`` is called once, by the last thread that leaves.
    """

    def __init__(
        self, vertices: list[Vertex], settings: Settings, on_end: Callable[[BaseException | None], None]
    ) -> None:
        self._vertices = vertices
        self._count = settings.worker_count
        consumption = consumption_of(settings.consumption)
        self._scheduler = Scheduler(
            vertices,
            settings.policy,
            settings.turn_limit,
            settings.epoch_us,
            consumption,
            self._count,
            settings.rules,
            by_least=settings.costs == "least",
        )
        self._on_end = on_end
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._working = self._count
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        targets = [(f"worker-{number}", self._work) for number in range(self._count)]
        for name, target in [*targets, ("scheduler", self._schedule)]:
            thread = threading.Thread(target=target, name=f"penstock-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Ends now, without processing what is on its way."""
        self._scheduler.stop()

    def look_at_sources(self) -> None:
        """The sources have been told something: they get a turn soon."""
        self._scheduler.look_at_sources()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    @property
    def decision_ns(self) -> int:
        return self._scheduler.decision_ns

    @property
    def decisions(self) -> int:
        return self._scheduler.decisions

    @property
    def planning_ns(self) -> int:
        return self._scheduler.planning_ns

    def open_wait_ns(self, vertex: Vertex, now_ns: int) -> int:
        """How long an operator has had work and no turn, now."""
        return self._scheduler.open_wait_ns(vertex, now_ns)

    def _work(self) -> None:
        scheduler = self._scheduler
        try:
            seat = Seat()
            turns = scheduler.next_turns()
            while not scheduler.stopped:
                if not turns:
                    turns = scheduler.sleep(seat)
                    continue
                stopped, ended_ns = scheduler.desk.run(turns, scheduler.stays, time.perf_counter_ns())
                turns = scheduler.exchange([vertex for vertex, _ in turns], stopped, ended_ns)
        except BaseException as error:
            self._fail(error)
        finally:
            self._leave()

    def _schedule(self) -> None:
        """Begins epochs where workers do not."""
        try:
            while not self._scheduler.stopped:
                self._scheduler.begin_epoch()
                self._scheduler.await_epoch()
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            if self._error is None:
                self._error = error
        self.stop()

    def _leave(self) -> None:
        with self._lock:
            self._working -= 1
            is_last = self._working == 0
        if is_last:
            self._scheduler.stop()  # the scheduler's thread leaves too
            self._on_end(self._error)
