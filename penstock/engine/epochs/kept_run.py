"""A run on a node that keeps a checkpoint: what it goes on from, and the thread that makes versions of it."""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from penstock.checkpoints.fencing import creation
from penstock.checkpoints.folders import Checkpoint, operators_of
from penstock.checkpoints.groups import check_no_groups
from penstock.checkpoints.lock import CheckpointLock
from penstock.checkpoints.planned import planned, route_of
from penstock.checkpoints.positions import Progress
from penstock.checkpoints.tables import fitted
from penstock.checkpoints.takeover import find, known_operators, take_over
from penstock.checkpoints.writers import close_writers
from penstock.connectors.ranges import SourceRanges
from penstock.connectors.reader import NodeSource
from penstock.connectors.writer import BatchWriter, NodeSink
from penstock.engine.epochs.conductor import Begin, Commit, Conductor, Instruction, Over
from penstock.engine.epochs.seat import SeatEpochs
from penstock.engine.epochs.sink import EpochSink
from penstock.engine.epochs.source import RangedSource
from penstock.engine.epochs.versions import Versions
from penstock.engine.keyed.splitter import Splitter
from penstock.engine.keyed.task import Task
from penstock.engine.turns.vertex import Vertex
from penstock.memory.edges import START_OF_TIME
from penstock.query.errors import QueryError, RunError
from penstock.query.graph import Graph
from penstock.query.steps import MatchSetSpec, SinkSpec, SourceSpec
from penstock.state.store import StateStore

_SEAT = "node"


class KeptRun:
    """One run. ``attach`` gives its vertices their state, ``start`` makes the checkpoint its own; from then
    on a thread cuts an epoch every so often, and makes it count.

    The turns go on meanwhile: they hand over what belongs to an epoch, and the thread writes it.
    """

    def __init__(
        self, graph: Graph, root: str | Path, epoch_s: float, virtual_partitions: int, keep_versions: int
    ) -> None:
        check_no_groups(root)
        _check(graph)
        self.run_id = uuid.uuid4().hex
        self._epoch_s, self._partitions, self._keep = epoch_s, virtual_partitions, keep_versions
        self.plan = planned(graph)
        self._checkpoint = Checkpoint.at(root)
        self._lock = CheckpointLock(self._checkpoint.root)
        try:
            store = StateStore(
                self._checkpoint.state, create=creation(self._checkpoint.root, allow_unfenced=False)
            )
            self._found = find(self._checkpoint, store, self.plan, virtual_partitions, self.run_id)
        except BaseException:
            self._lock.free()
            raise
        self.changes = self._found.changes
        self.is_complete = self._found.progress.complete
        first = self._found.manifest.batches
        self._conductor = Conductor([_SEAT], first)
        self._seat = SeatEpochs(first, self._answered, self._ended, self._hurry)
        self._vertices: Sequence[Vertex] = ()
        self._ranges: dict[str, SourceRanges] = {}
        self._writers: dict[str, BatchWriter] = {}
        self._versions: Versions | None = None
        self._events: deque[Callable[[], Instruction]] = deque()
        self._news = threading.Condition()
        self._hurried = False
        self._given_up = False
        self._thread: threading.Thread | None = None
        self.error: BaseException | None = None
        #: Wakes the sources; called by the run's thread.
        self.look_at_sources: Callable[[], None] = lambda: None
        #: Ends the run after an error of this thread.
        self.on_error: Callable[[], None] = lambda: None
        #: Called, if set, after every version; tests end runs in it.
        self.after_commit: Callable[[int], None] = lambda epoch: None

    # -- life ------------------------------------------------------------------------------------------------

    def attach(self, vertices: Sequence[Vertex]) -> None:
        """The vertices that run the graph: each gets the state that the checkpoint has for it."""
        self._vertices = vertices
        found, computes = self._found, operators_of(self.plan)
        known, progress = known_operators(found.manifest, computes), found.progress
        state = found.store.read(found.manifest, known, range(self._partitions))
        for vertex in vertices:
            operator = vertex.operator
            if not operator.node.spec.is_routed or isinstance(operator, Splitter):
                continue
            seen = (
                progress.seen_us.get(source, START_OF_TIME)
                for source in self.plan.graph.sources_above(operator.id)
            )
            inner = operator.operator if isinstance(operator, Task) else operator
            tables = fitted(state.get(operator.id, {}), inner)
            if isinstance(operator, Task):
                tables = operator.share(tables)
            operator.import_state(tables, min(seen, default=START_OF_TIME))
        counted: set[str] = set()
        for vertex in vertices:
            operator = vertex.operator
            if operator.id not in counted:  # the first of several has what all have counted
                operator.late_events = progress.counts.get("late", {}).get(operator.id, 0)
                operator.failed_events = progress.counts.get("failed", {}).get(operator.id, 0)
                if isinstance(operator, EpochSink):
                    operator.written = progress.counts.get("rows", {}).get(operator.id, 0)
                counted.add(operator.id)
        graph = self.plan.graph
        self._seat.attach(vertices, lambda name: route_of(graph[name]))

    def start(self) -> None:
        """Makes the checkpoint this run's, opens sources and sinks, and begins to cut."""
        found = self._found
        manifest, self._writers = take_over(found, self.plan, self.run_id, self._keep)
        progress = Progress.from_json(manifest.progress)
        if self.is_complete:
            return
        for node in self.plan.graph.nodes:
            if isinstance(node.spec, SourceSpec):
                source, before = node.spec.source, progress.sources[node.id]
                assert isinstance(source, NodeSource)
                start = [before[number].position for number in range(len(before))]
                journal = self._checkpoint.source(node.id)
                self._ranges[node.id] = SourceRanges(node.id, source, journal, start)
        for vertex in self._vertices:
            operator = vertex.operator
            if isinstance(operator, RangedSource):
                operator.begin(self._ranges[operator.id], dict(progress.sources[operator.id]))
            elif isinstance(operator, EpochSink):
                operator.batches = self._writers[operator.id]
        self._versions = Versions(
            found.store,
            manifest,
            operators_of(self.plan),
            self.plan,
            self._writers,
            self._ranges,
            self.run_id,
            self._keep,
        )
        self._thread = threading.Thread(target=self._run, name="penstock-epochs", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """The run is to end at its next epoch."""
        self._put(self._conductor.stop)

    def finish(self, *, counts: bool) -> None:
        """Closes everything after the last turn. ``counts``: what was processed becomes a version first."""
        with self._news:
            self._given_up = self._given_up or not counts
            self._news.notify()
        if self._thread is not None:
            self._thread.join()
        for ranges in self._ranges.values():
            ranges.close()
        try:
            close_writers(self._writers, complete=counts and self.error is None)
        finally:
            self._lock.free()

    # -- what has happened, from any thread ------------------------------------------------------------------

    def _answered(self, epoch: int) -> None:
        self._put(lambda: self._conductor.answered(_SEAT, epoch))

    def _ended(self, complete: bool) -> None:
        self._put(lambda: self._conductor.ended(_SEAT, complete=complete))

    def _hurry(self) -> None:
        with self._news:
            self._hurried = True
            self._news.notify()

    def _put(self, event: Callable[[], Instruction]) -> None:
        with self._news:
            self._events.append(event)
            self._news.notify()

    # -- the thread ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        due_s = time.monotonic() + self._epoch_s
        conductor = self._conductor
        try:
            while not conductor.is_over:
                with self._news:
                    while not (self._events or self._given_up or self._is_due(due_s)):
                        left_s = due_s - time.monotonic() if conductor.may_begin else None
                        self._news.wait(left_s)
                    if self._given_up:
                        return
                    event = self._events.popleft() if self._events else None
                if event is None:
                    due_s, self._hurried = time.monotonic() + self._epoch_s, False
                    event = conductor.begin
                self._follow(event())
        except BaseException as error:
            self.error = error
            self.on_error()

    def _is_due(self, due_s: float) -> bool:
        return self._conductor.may_begin and (self._hurried or time.monotonic() >= due_s)

    def _follow(self, instruction: Instruction) -> None:
        while instruction is not None:
            match instruction:
                case Begin(epoch, last):
                    self._seat.request(epoch, last=last)
                    self.look_at_sources()
                    return
                case Commit(epoch, complete):
                    assert self._versions is not None
                    self._versions.commit(epoch, self._seat.take(epoch), complete=complete)
                    self.after_commit(epoch)
                    instruction = self._conductor.committed(epoch)
                case Over():
                    return


def _check(graph: Graph) -> None:
    """Refuses what cannot go on from a checkpoint, by name."""
    for node in graph.nodes:
        spec = node.spec
        if isinstance(spec, SourceSpec):
            source = spec.source
            if not isinstance(source, NodeSource):
                continue  # refused where the graph is assembled
            if type(source).positions is NodeSource.positions:
                raise RunError(
                    f"source '{node.id}' cannot be read again, as a run with a checkpoint must: "
                    f"{type(source).__name__} keeps no positions; leave out checkpoint=, or write its events "
                    "to files first"
                )
        elif isinstance(spec, SinkSpec) and isinstance(spec.sink, NodeSink) and spec.sink.needs_spark:
            spec.sink.open(node.schema)  # says why not
        elif isinstance(spec, MatchSetSpec):
            raise QueryError(
                "a set of patterns keeps no checkpoint on a node",
                step=node.id,
                detail="its patterns may change while the app runs, and only Spark's batches write that down",
                hint="run the app on ps.Spark, match each pattern by itself, or leave out checkpoint=",
                origin=node.origin,
            )
