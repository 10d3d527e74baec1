"""A run: worker threads take turns until every operator has finished, someone stops it, or something
fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from penstock.engine.assembly import assemble
from penstock.engine.scheduler import Scheduler
from penstock.engine.settings import Settings
from penstock.engine.sink import SinkOperator
from penstock.engine.source import SourceOperator
from penstock.engine.summary import Summary
from penstock.engine.turn import take_turn
from penstock.engine.vertex import Vertex
from penstock.memory.coordinator import MemoryCoordinator
from penstock.metrics.operators import OperatorMetrics
from penstock.metrics.run import RunMetrics
from penstock.query.errors import PenstockError, RunError
from penstock.query.graph import Graph
from penstock.scheduling.catalogue import policy_named


class Execution:
    """One run of a graph. ``start`` it, then ``wait``; ``stop`` makes it drain and end.

    ``on_built(done, all)`` hears of every operator while the run is built, which may compile kernels.
    """

    def __init__(
        self, graph: Graph, settings: Settings, *, on_built: Callable[[int, int], None] | None = None
    ) -> None:
        self._settings = settings
        self._memory = MemoryCoordinator()
        self._vertices = assemble(graph, settings, self._memory, on_built)
        self._scheduler = Scheduler(
            self._vertices, policy_named(settings.policy), settings.turn_limit, settings.epoch_us
        )
        self._threads: list[threading.Thread] = []
        self._error: BaseException | None = None
        self._done = threading.Event()
        self._finished_workers = 0
        self._lock = threading.Lock()
        self._stopped_early = False
        self._began_ns = 0
        self._ended_ns = 0

    def start(self) -> None:
        """Opens sources and sinks and starts the workers."""
        for vertex in self._vertices:
            operator = vertex.operator
            if isinstance(operator, SourceOperator | SinkOperator):
                _guarded(vertex, operator.open)
        self._began_ns = time.perf_counter_ns()
        for number in range(self._settings.threads):
            thread = threading.Thread(target=self._work, name=f"penstock-worker-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Sources read nothing more; what is on its way is still processed. Open windows stay open: they
        are not whole."""
        self._stopped_early = True
        for vertex in self._vertices:
            if vertex.source is not None:
                vertex.source.stop()

    def abort(self) -> None:
        """Ends now, without processing what is on its way."""
        self._scheduler.stop()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end; False if it has not come in that time."""
        return self._done.wait(timeout_s)

    def finish(self) -> Summary:
        """Closes everything after the end and sums up; raises what made the run fail."""
        for thread in self._threads:
            thread.join()
        for vertex in self._vertices:
            if vertex.source is not None:
                vertex.source.close()
            elif isinstance(vertex.operator, SinkOperator):
                vertex.operator.close(False)
        self._memory.close()
        if self._error is not None:
            raise self._error
        return self.summary()

    def metrics(self) -> RunMetrics:
        """The run as it stands."""
        now_ns = self._ended_ns or time.perf_counter_ns()
        return RunMetrics(
            elapsed_s=(now_ns - self._began_ns) / 1e9 if self._began_ns else 0.0,
            operators=_by_operator(vertex.metrics() for vertex in self._vertices),
            latency={v.operator.id: v.latency.snapshot() for v in self._vertices if v.latency is not None},
            memory_bytes=self._memory.allocated_bytes,
            memory_cap_bytes=self._memory.cap_bytes,
            workers=self._settings.threads,
            decision_ns=self._scheduler.decision_ns,
        )

    def summary(self) -> Summary:
        return Summary(
            metrics=self.metrics(),
            complete=not self._stopped_early and self._error is None,
            bad_records=sum(v.source.bad_records for v in self._vertices if v.source is not None),
            open_windows=sum(v.operator.open_windows for v in self._vertices),
        )

    def _work(self) -> None:
        scheduler, clock = self._scheduler, time.perf_counter_ns
        try:
            while True:
                turn = scheduler.next_turn()
                if turn is None:
                    if self._is_over():
                        break
                    scheduler.sleep()
                    continue
                vertex, limit = turn
                began_ns = clock()
                try:
                    taken = take_turn(vertex, limit)
                except BaseException as error:
                    raise located(vertex, error) from error
                ended_ns = clock()
                vertex.counters.record_turn(began_ns, ended_ns, taken)
                scheduler.finish(vertex, ended_ns)
        except BaseException as error:
            self._fail(error)
        finally:
            self._leave()

    def _is_over(self) -> bool:
        return self._scheduler.stopped or all(vertex.finished for vertex in self._vertices)

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            if self._error is None:
                self._error = error
        self._scheduler.stop()

    def _leave(self) -> None:
        with self._lock:
            self._finished_workers += 1
            is_last = self._finished_workers == self._settings.threads
        if is_last:
            self._ended_ns = time.perf_counter_ns()
            self._done.set()


def _by_operator(found: Iterable[OperatorMetrics]) -> tuple[OperatorMetrics, ...]:
    """One entry per operator id: the instances of a source with several partitions count together."""
    together: dict[str, OperatorMetrics] = {}
    for metrics in found:
        known = together.get(metrics.id)
        together[metrics.id] = metrics if known is None else known + metrics
    return tuple(together.values())


def _guarded(vertex: Vertex, action: Callable[[], None]) -> None:
    try:
        action()
    except Exception as error:
        raise located(vertex, error) from error


def located(vertex: Vertex, error: BaseException) -> BaseException:
    """The error with the step's name; those that already carry it, or are not ours to wrap, stay as they
    are."""
    if isinstance(error, PenstockError) or not isinstance(error, Exception):
        return error
    node = vertex.operator.node
    return RunError(f"step '{node.id}' failed: {type(error).__name__}: {error} (written at {node.origin})")
