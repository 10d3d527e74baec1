"""A vertex of the running graph: an operator with its edges, its counters and what the scheduler knows of
it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from penstock.engine.turns.sink import SinkOperator
from penstock.engine.turns.source import SourceOperator
from penstock.memory.edges import START_OF_TIME, Edge, Mark, Outlet
from penstock.memory.queues import QueueOutlet
from penstock.metrics.histogram import LatencyHistogram
from penstock.metrics.operators import OperatorCounters, OperatorMetrics
from penstock.operators.run.base import Operator
from penstock.query.graph import Port


class EpochMember(Protocol):
    """What a vertex is to the epochs of its seat."""

    def cut(self, epoch: int) -> None:
        """All that belongs to an epoch is worked in, and nothing else."""

    def end(self, complete: bool) -> None:
        """The vertex has finished; ``complete``: its input was whole."""


class Vertex:
    """One operator at work.

    Invariants: at most one worker holds it (``running``) and only that one calls the operator or moves its
    cursors. ``blocked`` is set by that worker and cleared by whoever frees a chunk of one of its outlets.
    """

    __slots__ = (
        "blocked",
        "come",
        "counters",
        "edges",
        "ended",
        "epochs",
        "finished",
        "held",
        "holding",
        "in_turn",
        "index",
        "inputs",
        "latency",
        "on_call",
        "on_unblock",
        "operator",
        "outbox",
        "outlets",
        "queues",
        "readers",
        "reading",
        "running",
        "source",
        "taking",
        "watermark",
    )

    def __init__(
        self, index: int, operator: Operator, edges: list[tuple[int, Edge]], outlets: dict[Port, Outlet]
    ) -> None:
        self.index = index
        self.operator = operator
        self.inputs = edges  # each edge with the number of the input it belongs to
        self.edges = [edge for _, edge in edges]
        self.taking, self.reading = self.inputs, self.edges  # without the edges that are left alone
        self.come: list[Edge] = []  # those on which an epoch mark has come and waits for the others
        self.epochs: EpochMember | None = None  # whom it tells of each epoch; None: there are none
        self.outlets = list(outlets.values())
        self.queues = [outlet for outlet in self.outlets if isinstance(outlet, QueueOutlet)]
        self.source = operator if isinstance(operator, SourceOperator) else None
        self.latency = LatencyHistogram() if isinstance(operator, SinkOperator) else None
        self.counters = OperatorCounters()
        self.readers: tuple[Vertex, ...] = ()  # who reads its outlets
        self.outbox: deque[Mark] = deque()  # marks that follow the rows made ready
        self.held: deque[tuple[Edge, Mark]] = deque()  # marks that wait for a migration to end
        self.holding: set[Edge] = set()  # the edges that those may come on
        self.on_call: Callable[[Vertex], None] | None = None
        self.watermark = START_OF_TIME
        self.ended = 0  # edges after which nothing follows
        self.running = False
        self.in_turn = False  # set and cleared by who takes the turn, read by who wonders where it stays
        self.blocked = False
        self.finished = False
        self.on_unblock: Callable[[Vertex], None] | None = None
        operator.attach(outlets)
        for outlet in self.outlets:
            outlet.pool.on_free = self._unblock

    def work(self, now_ns: int) -> int:
        """Events and marks that a turn could take now."""
        if self.running or self.blocked or self.finished:
            return 0
        return self.waiting() if self.source is None else self.source.available(now_ns)

    def waiting(self) -> int:
        """Events and marks in its inputs, and rows and marks that did not fit into its outlets."""
        operator = self.operator
        count = len(self.outbox) + operator.has_ready_rows
        if self.held and not operator.holds:  # marks that no longer have to wait
            count += len(self.held)
        if self.come and self.is_aligned:
            count += len(self.come)
        for edge in self.reading:
            count += edge.outlet.written - edge.consumed + len(edge.marks)
        return count

    @property
    def is_aligned(self) -> bool:
        """Whether an epoch mark has come on all edges that have not ended, and no migration told before it is
        still on its way: its state and the events set aside for it belong to the epoch too."""
        everywhere = len(self.come) + self.ended == len(self.edges)
        return everywhere and not self.held and not self.operator.holds

    def call(self) -> None:
        """Something has come for it that is on none of its edges. From any thread."""
        if self.on_call is not None:
            self.on_call(self)

    def block(self) -> None:
        """Notes that an outlet is full. A chunk freed meanwhile must not be overlooked."""
        self.blocked = True
        self.counters.backpressured += 1
        if all(outlet.has_room for outlet in self.outlets):
            self.blocked = False

    def _unblock(self) -> None:
        if self.blocked:
            self.blocked = False
            if self.on_unblock is not None:
                self.on_unblock(self)

    def metrics(self, elapsed_ns: int = 0, open_wait_ns: int = 0) -> list[OperatorMetrics]:
        """Those of its operator, and before it of the steps that run in the operator's kernels.
        ``open_wait_ns``: how long it has had work and no turn by now.

        What waits, waits for the first of them; the time of turns is told apart by what each did.
        """
        own = self._metrics(elapsed_ns, open_wait_ns)
        front = self.operator.front
        steps = [] if front is None else [step for step in front.steps if step.node.id != own.id]
        if not steps:
            return [own]
        first = replace(own, emitted=0, backpressured=0, blocks_in_use=0, late=0, failed=0, state_bytes=0)
        inner = replace(first, pending=0, schedule_wait_ns=0, markers=0, marker_wait_ns=0, open_wait_ns=0)
        told = [
            replace(
                inner if number else first,
                id=step.node.id,
                kind=step.node.kind,
                processed=step.taken,
                emitted=step.emitted,
                busy_ns=step.busy_ns,
            )
            for number, step in enumerate(steps)
        ]
        waits: dict[str, Any] = {
            "pending": 0,
            "schedule_wait_ns": 0,
            "markers": 0,
            "marker_wait_ns": 0,
            "open_wait_ns": 0,
        }
        busy_ns = own.busy_ns - sum(step.busy_ns for step in steps)
        return [*told, replace(own, processed=steps[-1].emitted, busy_ns=max(0, busy_ns), **waits)]

    def _metrics(self, elapsed_ns: int, open_wait_ns: int) -> OperatorMetrics:
        operator, counters = self.operator, self.counters
        return OperatorMetrics(
            id=operator.id,
            kind=operator.node.kind,
            pending=sum(edge.pending for edge in self.edges),
            processed=counters.processed,
            emitted=operator.out.written if operator.out is not None else 0,
            turns=counters.turns,
            busy_ns=counters.busy_ns,
            backpressured=counters.backpressured,
            blocks_in_use=sum(outlet.pool.blocks_in_use for outlet in self.outlets),
            late=operator.late_events,
            failed=operator.failed_events,
            state_bytes=operator.state_bytes,
            dropped_runs=operator.dropped_runs,
            schedule_wait_ns=counters.schedule_wait_ns,
            markers=counters.markers,
            marker_wait_ns=counters.marker_wait_ns,
            elapsed_ns=elapsed_ns,
            open_wait_ns=open_wait_ns,
        )
