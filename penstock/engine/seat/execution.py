"""A run: threads take turns until every operator has finished, someone stops it, or something fails."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial

from penstock.engine.bound.threads import BoundThreads
from penstock.engine.dispatch.operator_threads import OperatorThreads
from penstock.engine.dispatch.workers import WorkerPool
from penstock.engine.epochs.kept_run import KeptRun
from penstock.engine.keyed.splitter import SPLIT, Splitter
from penstock.engine.seat import collector
from penstock.engine.seat.assembly import assemble
from penstock.engine.seat.endless import watch
from penstock.engine.seat.settings import Settings
from penstock.engine.seat.summary import NodeSummary
from penstock.engine.turns.long_turns import LongTurns, left_behind
from penstock.engine.turns.sink import SinkOperator
from penstock.engine.turns.source import SourceOperator
from penstock.engine.turns.turn import located as located
from penstock.engine.turns.vertex import Vertex
from penstock.memory.coordinator import MemoryCoordinator
from penstock.metrics.degree import merged_degrees
from penstock.metrics.operators import OperatorMetrics
from penstock.metrics.run import RunMetrics
from penstock.metrics.watch import Totals
from penstock.query.errors import RunError
from penstock.query.graph import Graph

_log = logging.getLogger(__name__)

_OTHERS_S = 5.0  # for the turns of others, where one was left behind
_POLL_S = 0.01


class Execution:
    """One run of a graph. ``start`` it, then ``wait``; ``stop`` makes it drain and end.

    ``on_built(done, all)`` hears of every operator while the run is built, which may compile kernels.
    """

    def __init__(
        self,
        graph: Graph,
        settings: Settings,
        *,
        on_built: Callable[[int, int], None] | None = None,
        kept: KeptRun | None = None,
    ) -> None:
        self._settings = settings
        self._memory = MemoryCoordinator()
        self._kept = kept
        self._vertices = assemble(graph, settings, self._memory, on_built, kept)
        watch(vertex.operator for vertex in self._vertices)
        runner: type[WorkerPool | OperatorThreads | BoundThreads]
        if settings.binding is not None:
            runner = BoundThreads
        else:
            runner = WorkerPool if settings.threads == "pool" else OperatorThreads
        self._runner = runner(self._vertices, settings, self._end)
        if kept is not None:
            kept.look_at_sources, kept.on_error = self._runner.look_at_sources, self._runner.stop
        self._error: BaseException | None = None
        self._ending = threading.Lock()
        self._hung: list[Vertex] = []  # left behind, each in a turn that did not end
        self._done = threading.Event()
        self._stopped_early = False
        self._began_ns = 0
        self._ended_ns = 0

    def start(self) -> None:
        """Opens sources and sinks and starts the workers."""
        if self._kept is not None:
            self._kept.start()
        for vertex in self._vertices:
            operator = vertex.operator
            if isinstance(operator, SourceOperator | SinkOperator):
                _guarded(vertex, operator.open)
        collector.begin_run()
        self._began_ns = time.perf_counter_ns()
        if self._kept is not None and self._kept.is_complete:
            _log.warning("the run of its checkpoint is complete already")
            self._end(None)
            return
        self._runner.start()

    def stop(self) -> None:
        """Sources read nothing more; what is on its way is still processed. Open windows stay open: they
        are not whole. A turn that takes longer than the grace time is left behind, and the run fails."""
        grace_s = self._settings.stop_grace_s
        if not self._stopped_early and grace_s is not None:
            watch = partial(self._leave_behind, grace_s)
            threading.Thread(target=watch, name="penstock-stop-grace", daemon=True).start()
        self._stopped_early = True
        if self._kept is not None:
            self._kept.stop()
            return
        for vertex in self._vertices:
            if vertex.source is not None:
                vertex.source.stop()
        self._runner.look_at_sources()

    def abort(self) -> None:
        """Ends now, without processing what is on its way."""
        self._runner.stop()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end; False if it has not come in that time."""
        return self._done.wait(timeout_s)

    def finish(self) -> NodeSummary:
        """Closes everything after the end and sums up; raises what made the run fail."""
        self._done.wait()
        if self._hung:
            self._await_others()
        else:
            self._runner.join()
        if self._kept is not None:
            self._finish_kept(self._kept)
        for vertex in self._vertices:
            if vertex.in_turn:
                continue
            if vertex.source is not None:
                vertex.source.close()
            elif isinstance(vertex.operator, SinkOperator):
                vertex.operator.close(False)
        if not self._hung:  # what was left behind may still read and write its blocks
            self._memory.close()
            for vertex in self._vertices:
                for outlet in vertex.outlets:
                    outlet.release()
        collector.end_run(sum(vertex.operator.state_bytes for vertex in self._vertices))
        if self._error is not None:
            raise self._error
        return self.summary()

    def metrics(self) -> RunMetrics:
        """The run as it stands."""
        now_ns = self._ended_ns or time.perf_counter_ns()
        elapsed_ns = now_ns - self._began_ns if self._began_ns else 0
        wait_ns = self._runner.open_wait_ns
        return RunMetrics(
            elapsed_s=elapsed_ns / 1e9,
            operators=_by_operator(
                metrics for v in self._vertices for metrics in v.metrics(elapsed_ns, wait_ns(v, now_ns))
            ),
            latency={v.operator.id: v.latency.snapshot() for v in self._vertices if v.latency is not None},
            memory_bytes=self._memory.allocated_bytes,
            memory_cap_bytes=self._memory.cap_bytes,
            workers=self._settings.worker_count,
            decision_ns=self._runner.decision_ns,
            # threads that operators are bound to ask nobody, and plan no epochs
            decisions=getattr(self._runner, "decisions", 0),
            planning_ns=getattr(self._runner, "planning_ns", 0),
            routing={
                v.operator.id.removesuffix(SPLIT): v.operator.metrics()
                for v in self._vertices
                if isinstance(v.operator, Splitter)
            },
            degrees=merged_degrees((v.operator.step, v.operator.degree) for v in self._vertices),
            rebinding=self._runner.rebinding if isinstance(self._runner, BoundThreads) else None,
        )

    @property
    def failed(self) -> bool:
        """Whether something has gone wrong; ``finish`` raises it."""
        return self._error is not None

    def is_settled(self) -> bool:
        """Whether nothing is left to do until sources have more.

        Vertices stand in topological order: one that has nothing to do, and reads only such, stays so.
        """
        now_ns = time.perf_counter_ns()
        for vertex in self._vertices:
            source = vertex.source
            if source is not None and not vertex.finished and source.available(now_ns):
                return False
            if vertex.in_turn or vertex.waiting() or vertex.in_turn:
                return False
        return not self._done.is_set()

    def totals(self) -> Totals:
        """The run as it stands, in a few figures."""
        sources = [vertex for vertex in self._vertices if vertex.source is not None]
        metrics, reading = self.metrics(), {v.operator.id for v in sources if not v.finished}
        bad_records = sum(v.source.bad_records for v in sources if v.source is not None)
        return metrics.totals(bad_records, {source: metrics[source].processed for source in reading})

    def summary(self) -> NodeSummary:
        return NodeSummary.of(
            self.metrics(),
            complete=not self._stopped_early and self._error is None,
            bad_records=sum(v.source.bad_records for v in self._vertices if v.source is not None),
            open_windows=sum(v.operator.open_windows for v in self._vertices),
        )

    def _end(self, error: BaseException | None) -> None:
        with self._ending:
            if self._done.is_set():
                return  # a thread that was left behind has come back
            self._error = error
            self._ended_ns = time.perf_counter_ns()
            self._done.set()

    def _finish_kept(self, kept: KeptRun) -> None:
        """Lets what was processed count, if all of it was; what went wrong there is the run's error."""
        counts = self._error is None and all(vertex.finished for vertex in self._vertices)
        try:
            kept.finish(counts=counts or (self._error is None and kept.is_complete))
        except Exception as error:
            self._error = self._error or error
        self._error = kept.error or self._error

    def _await_others(self) -> None:
        """Waits for the turns that do end: whose operators are closed then."""
        until_s = time.monotonic() + _OTHERS_S
        others = [vertex for vertex in self._vertices if vertex not in self._hung]
        while any(vertex.in_turn for vertex in others) and time.monotonic() < until_s:
            time.sleep(_POLL_S)

    def _leave_behind(self, grace_s: float) -> None:
        """Ends the run without what does not come back: a thread cannot be ended from outside."""
        turns = LongTurns(self._vertices)
        turns.look()
        while not self._done.wait(grace_s):
            hung = turns.look()
            if hung:
                self._hung = hung
                self._runner.stop()
                names = " and ".join(f"step '{vertex.operator.node.id}'" for vertex in hung)
                self._end(RunError(left_behind(names, grace_s)))
                return


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
