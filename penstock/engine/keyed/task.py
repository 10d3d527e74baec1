"""One of the tasks that share the keys of an operator: the operator, and what a migration asks of it."""

from __future__ import annotations

from collections import deque

import numpy as np

from penstock.engine.keyed.migration import Exchange, Migration
from penstock.memory.edges import START_OF_TIME, Outlet
from penstock.memory.layout import Columns
from penstock.operators.run.base import Build, Operator
from penstock.operators.windows.window_rows import KeyHash
from penstock.query.graph import Port
from penstock.routing.route import even_route, partitions_of
from penstock.state.keys import KeyWords
from penstock.state.tables import StateTables, merge, select


class Task(Operator):
    """Owns some virtual partitions of an operator's keys.

    Time stands still for a task that gives or receives, from the moment the migration is told on an edge
    until all is done: what comes behind it on that edge is held by the vertex (``holds``). So all state is
    taken out and put in at the same watermark. Events go on being processed, but for those of partitions that
    are not there yet.
    """

    def __init__(
        self, build: Build, operator: Operator, number: int, exchange: Exchange, partitions: int
    ) -> None:
        self.operator = operator
        super().__init__(build)
        self.fan_out = operator.fan_out
        self.number = number  # among the operator's tasks
        self._exchange, self._partitions = exchange, partitions
        self._watermark_us = START_OF_TIME
        self._seen: dict[int, int] = {}  # by migration: on how many edges it was told
        self._migration: Migration | None = None  # whose state is still on its way here
        self._sources = 0  # from how many tasks
        self._missing = np.zeros(partitions, np.bool_)  # partitions that are not here yet
        self._waiting: deque[tuple[int, Columns, int, int]] = deque()  # their events, in order
        self._arrived = False
        self._words: list[KeyWords] = []
        self._hashes: list[KeyHash] = []
        for index, layout in enumerate(build.inputs):
            self._words.append(KeyWords.of(layout, build.node.spec.routed_by(index) or ()))
            self._hashes.append(KeyHash(self._words[-1], build.strings))

    def attach(self, outlets: dict[Port, Outlet]) -> None:
        super().attach(outlets)
        self.operator.attach(outlets)

    # -- events ----------------------------------------------------------------------------------------------

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        if self._migration is None and not self._seen:
            return self.operator.consume(index, columns, start, stop)
        if not self._missing.any():
            return self.operator.consume(index, columns, start, stop)
        words = self._words[index].encode(self.inputs[index], columns, start, stop)
        waits = self._missing[self._hashes[index](words) % self._partitions]
        edges = np.flatnonzero(np.diff(waits)) + 1
        begin = start
        for end in [*(edges + start).tolist(), stop]:
            if waits[begin - start]:
                kept = tuple(column[begin:end].copy() for column in columns)
                self._waiting.append((index, kept, 0, end - begin))
            else:
                taken = self.operator.consume(index, columns, begin, end)
                if taken < end - begin:
                    return begin + taken - start
            begin = end
        return stop - start

    def on_watermark(self, watermark_us: int) -> None:
        self._watermark_us = watermark_us
        self.operator.on_watermark(watermark_us)

    def on_end(self, complete: bool) -> None:
        self.operator.on_end(complete)

    def export_state(self) -> StateTables:
        return self.operator.export_state()

    def import_state(self, tables: StateTables, watermark_us: int = START_OF_TIME) -> None:
        self._watermark_us = watermark_us
        self.operator.import_state(tables, watermark_us)

    def share(self, tables: StateTables) -> StateTables:
        """What of an operator's state this task begins with."""
        route = even_route(self._partitions, self._exchange.tasks)
        return select(tables, partitions_of(route, self.number), self._partitions)

    def flush(self) -> bool:
        return self.operator.flush() and self._take_over() and self.operator.flush()

    @property
    def has_ready_rows(self) -> bool:
        return self.operator.has_ready_rows or self._arrived or self._has_all()

    # -- migration -------------------------------------------------------------------------------------------

    @property
    def holds(self) -> bool:
        """Whether time must stand still behind a migration: it is not told on all edges yet, or state is on
        its way."""
        return bool(self._seen) or self._migration is not None

    def on_control(self, migration: Migration) -> bool:
        """A migration is told on one edge; whether what follows on that edge must wait."""
        given, received = migration.given_by(self.number), migration.received_by(self.number)
        if not given and not received:
            return False
        self._seen[migration.number] = self._seen.get(migration.number, 0) + 1
        for partitions in received.values():
            self._missing[partitions] = True  # its events can come on this edge from now on
        if self._seen[migration.number] == len(self.inputs):
            del self._seen[migration.number]
            if given:
                self._give(migration, given)
            if received:
                self._migration, self._sources = migration, len(received)
        return True

    def _give(self, migration: Migration, given: dict[int, list[int]]) -> None:
        tables = self.operator.export_state()
        counted = self.operator.late_events, self.operator.failed_events
        gone = {partition for partitions in given.values() for partition in partitions}
        kept = [partition for partition in range(self._partitions) if partition not in gone]
        self.operator.reset()
        self.operator.late_events, self.operator.failed_events = counted
        self.operator.import_state(select(tables, kept, self._partitions), self._watermark_us)
        for target, partitions in given.items():
            moved = select(tables, partitions, self._partitions)
            self._exchange.send(target, migration.number, moved)

    def _has_all(self) -> bool:
        migration = self._migration
        return (
            migration is not None and self._exchange.arrived(self.number, migration.number) == self._sources
        )

    def _take_over(self) -> bool:
        """Puts the state in that has come, then lets the events in that waited for it; False if an outlet is
        full before that is done."""
        if self._has_all() and not self._arrived:
            assert self._migration is not None
            parts = self._exchange.take(self.number, self._migration.number)
            counted = self.operator.late_events, self.operator.failed_events
            tables = merge([self.operator.export_state(), *parts])
            self.operator.reset()
            self.operator.late_events, self.operator.failed_events = counted
            self.operator.import_state(tables, self._watermark_us)
            self._arrived = True
        if not self._arrived:
            return True
        waiting = self._waiting
        while waiting:
            index, columns, start, stop = waiting[0]
            taken = self.operator.consume(index, columns, start, stop)
            if taken == stop - start:
                waiting.popleft()
                continue
            waiting[0] = (index, columns, start + taken, stop)
            if not self.operator.has_ready_rows or not self.operator.flush():
                return False
        assert self._migration is not None
        received = self._migration.received_by(self.number)
        self._migration, self._arrived = None, False
        self._missing[:] = False
        self._exchange.done(sum(map(len, received.values())))
        return True

    # -- what others ask of an operator ----------------------------------------------------------------------

    @property
    def late_events(self) -> int:
        return self.operator.late_events

    @late_events.setter
    def late_events(self, count: int) -> None:
        self.operator.late_events = count

    @property
    def failed_events(self) -> int:
        return self.operator.failed_events

    @failed_events.setter
    def failed_events(self, count: int) -> None:
        self.operator.failed_events = count

    @property
    def state_bytes(self) -> int:
        return self.operator.state_bytes

    @property
    def open_windows(self) -> int:
        return self.operator.open_windows

    @property
    def dropped_runs(self) -> int:
        return self.operator.dropped_runs
