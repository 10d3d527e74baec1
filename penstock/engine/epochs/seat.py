"""What the operators of one seat say of each epoch, gathered until all have spoken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

import pyarrow as pa

from penstock.checkpoints.positions import PartitionProgress
from penstock.checkpoints.tables import routed
from penstock.engine.epochs.conductor import Roll
from penstock.engine.epochs.sink import EpochSink
from penstock.engine.epochs.source import RangedSource
from penstock.engine.keyed.splitter import Splitter
from penstock.engine.keyed.task import Task
from penstock.engine.turns.vertex import Vertex
from penstock.state.tables import StateTables


@dataclass
class Gathered:
    """All that a seat has of one epoch."""

    partitions: dict[str, dict[int, PartitionProgress]] = field(default_factory=dict)  # by source
    state: dict[int, dict[str, StateTables]] = field(default_factory=dict)  # by task, by operator
    rows: dict[str, list[pa.RecordBatch]] = field(default_factory=dict)  # by query
    counted: dict[int, VertexCount] = field(default_factory=dict)  # by vertex


@dataclass(frozen=True)
class VertexCount:
    """What one vertex has counted since the run began."""

    operator: str
    late: int
    failed: int
    rows: int  # that a sink got


class SeatEpochs:
    """Vertices tell from their turns. ``on_answer`` is called, from the turn that told last, with the number
    of each epoch that is whole; ``on_end`` when all vertices have finished; ``on_much`` when a sink holds
    more than it should."""

    def __init__(
        self,
        first: int,
        on_answer: Callable[[int], None],
        on_end: Callable[[bool], None],
        on_much: Callable[[], None],
    ) -> None:
        self._first = self._next = first
        self._on_answer, self._on_end, self._on_much = on_answer, on_end, on_much
        self._vertices: Sequence[Vertex] = ()
        self._roll = Roll((), first - 1)
        self._gathered: dict[int, Gathered] = {}
        self._complete = True
        self._requested = first - 1
        self._over = False
        self._lock = Lock()

    def attach(self, vertices: Sequence[Vertex], route_of: Callable[[str], int | None]) -> None:
        """All vertices of the seat; ``route_of`` has the hash by which state without keys goes."""
        self._vertices = vertices
        self._roll = Roll(range(len(vertices)), self._first - 1)
        for vertex in vertices:
            member = _VertexMember(self, vertex, route_of)
            vertex.epochs = member
            if isinstance(vertex.operator, RangedSource):
                vertex.operator.tell = member.cut
            if isinstance(vertex.operator, EpochSink):
                vertex.operator.epoch, vertex.operator.on_much = self._first, self._on_much

    def request(self, epoch: int, *, last: bool) -> None:
        """Tells the sources that an epoch is to end."""
        with self._lock:
            self._requested = epoch
        for vertex in self._vertices:
            if isinstance(vertex.operator, RangedSource):
                vertex.operator.request(epoch, last=last)
        self._look()

    def take(self, epoch: int) -> Gathered:
        """What belongs to an epoch that is whole."""
        with self._lock:
            return self._gathered.pop(epoch, None) or Gathered()

    # -- vertices --------------------------------------------------------------------------------------------

    def answered(self, vertex: Vertex, epoch: int, told: Callable[[Gathered], None]) -> None:
        """A vertex has been cut."""
        with self._lock:
            self._roll.answered(vertex.index, epoch)
            told(self._gathered.setdefault(epoch, Gathered()))
        self._look()

    def ended(self, vertex: Vertex, complete: bool, told: Callable[[Gathered], None]) -> None:
        """A vertex has finished."""
        with self._lock:
            epoch = self._roll.ended(vertex.index)
            told(self._gathered.setdefault(epoch, Gathered()))
            self._complete = self._complete and complete
        self._look()

    def _look(self) -> None:
        """Says what is whole, each epoch once and in order; the end comes last."""
        with self._lock:
            answered = None
            if self._next <= self._requested and self._roll.is_whole(self._next):
                answered, self._next = self._next, self._next + 1
            ends = self._roll.all_ended and self._next > self._requested and not self._over
            self._over = self._over or ends
            complete = self._complete
            if answered is not None:
                self._on_answer(answered)
            if ends:
                self._on_end(complete)


class _VertexMember:
    """One vertex among those of its seat; called from the vertex's turns."""

    def __init__(self, seat: SeatEpochs, vertex: Vertex, route_of: Callable[[str], int | None]) -> None:
        self._seat, self._vertex = seat, vertex
        operator = vertex.operator
        self._keeps = operator.node.spec.is_routed and not isinstance(operator, Splitter)
        self._task = operator.number if isinstance(operator, Task) else 0
        self._route = route_of(operator.id) if self._keeps else None

    def cut(self, epoch: int) -> None:
        operator = self._vertex.operator
        tables = copied(operator.export_state()) if self._keeps else {}
        if self._route is not None:
            tables = routed(tables, self._route)
        rest = self._said()

        def tell(gathered: Gathered) -> None:
            if tables:
                gathered.state.setdefault(self._task, {})[operator.id] = tables
            rest(gathered)

        self._seat.answered(self._vertex, epoch, tell)

    def end(self, complete: bool) -> None:
        self._seat.ended(self._vertex, complete, self._said())

    def _said(self) -> Callable[[Gathered], None]:
        operator = self._vertex.operator
        partitions = operator.stands() if isinstance(operator, RangedSource) else {}
        written = operator.written if isinstance(operator, EpochSink) else 0
        counted = VertexCount(operator.id, operator.late_events, operator.failed_events, written)
        rows = operator.take() if isinstance(operator, EpochSink) else []

        def tell(gathered: Gathered) -> None:
            gathered.counted[self._vertex.index] = counted
            if partitions:
                gathered.partitions.setdefault(operator.id, {}).update(partitions)
            if rows:
                gathered.rows.setdefault(operator.id, []).extend(rows)

        return tell


def copied(tables: StateTables) -> StateTables:
    """The tables in memory of their own: operators may export what they go on writing to."""
    own: StateTables = {}
    for name, table in tables.items():
        target = pa.BufferOutputStream()
        with pa.ipc.new_stream(target, table.schema) as writer:
            writer.write_table(table)
        own[name] = pa.ipc.open_stream(target.getvalue()).read_all()
    return own


def tables_of(rows: Mapping[str, Iterable[pa.RecordBatch]]) -> dict[str, pa.Table]:
    """The rows of each query as a table."""
    return {query: pa.Table.from_batches(list(batches)) for query, batches in rows.items()}
