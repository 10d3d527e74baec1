"""What every operator is at run time: it consumes ranges of columns, reacts to the watermark, and writes to
outlets.

An operator knows no thread, clock, policy or runtime. The engine calls it one turn at a time, never from
two threads at once, and does everything that concerns edges and marks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.memory.edges import START_OF_TIME, Outlet
from penstock.memory.layout import LATE, Columns, Layout
from penstock.memory.strings import StringPool
from penstock.metrics.degree import DegreeMetrics
from penstock.operators.run.endless import Remembered
from penstock.query.graph import Port, QueryVertex
from penstock.state.errors import StateError
from penstock.state.tables import StateFormat, StateRows, StateTables

if TYPE_CHECKING:
    from penstock.operators.columns.front import Front


@dataclass(frozen=True)
class Build:
    """All that an operator is built from: its node, the layouts around it, and the run's dictionary of
    strings."""

    node: QueryVertex
    inputs: tuple[Layout, ...]
    outputs: dict[Port, Layout]  # only the ports that someone reads
    strings: StringPool
    front: tuple[Build, ...] = ()  # the steps in front that run in its kernels; ``inputs`` is behind them

    @property
    def first(self) -> QueryVertex:
        """The step whose inputs are read: its own, or the first of those in front."""
        return self.front[0].node if self.front else self.node


class Operator(ABC):
    """One operator of a running graph.

    The engine sets ``outlets`` before the first turn; a port that nobody reads has none. The turn's order
    of calls: ``flush`` until it returns True, then ``consume`` or ``on_watermark``.
    """

    #: Events that one input event can become at the most; blocks must have at least this capacity.
    fan_out: int = 1

    #: The tables that its state is exported as; an operator without any keeps nothing between turns.
    state_formats: tuple[StateFormat, ...] = ()

    #: Whether ``merge_state`` takes in what other instances made of other events.
    mergeable: bool = False

    #: The steps in front of it whose work it does too.
    front: Front | None = None

    def __init__(self, build: Build) -> None:
        self.id = build.node.id
        self.node = build.node
        self.step = build.node.step or self.id  # the user's, which it is a part of
        self.inputs = build.inputs
        self.layouts = build.outputs
        self.strings = build.strings
        self.outlets: dict[Port, Outlet] = {}
        self.out: Outlet | None = None  # the MAIN outlet
        self.late_events = 0
        self.failed_events = 0  # for which the step's function failed
        self._ready: deque[tuple[Port, Columns, int, int]] = deque()

    def attach(self, outlets: dict[Port, Outlet]) -> None:
        """Tells the operator where to write."""
        self.outlets = outlets
        self.out = outlets.get(Port.MAIN)

    @abstractmethod
    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        """Takes events [start, stop) of input ``index``; returns how many it took.

        Takes fewer, possibly none, only when an outlet is full or rows made ready must be flushed first.
        """

    def on_watermark(self, watermark_us: int) -> None:  # noqa: B027 - most operators do not depend on time
        """Every input has passed ``watermark_us``. Whatever that finishes is made ready with ``emit``.

        ``END_OF_TIME`` means that the input is complete: everything closes.
        """

    def on_end(self, complete: bool) -> None:  # noqa: B027 - most have nothing to close
        """Nothing follows. Called once; if ``complete``, after ``on_watermark(END_OF_TIME)``."""

    @property
    def holds(self) -> bool:
        """Whether time must stand still for it behind what it was told by ``on_control``."""
        return False

    def on_control(self, content: Any) -> bool:
        """It is told something between two events of an input; whether time must wait behind it there."""
        return False

    def flush(self) -> bool:
        """Moves rows made ready into blocks; False if some had to stay for want of room."""
        ready = self._ready
        while ready:
            port, columns, start, stop = ready[0]
            outlet = self.outlets[port]
            while start < stop:
                count = min(outlet.reserve(), stop - start)
                if count == 0:
                    ready[0] = (port, columns, start, stop)
                    return False
                position = outlet.position
                for target, source in zip(outlet.columns, columns, strict=True):
                    target[position : position + count] = source[start : start + count]
                outlet.commit(count)
                start += count
            ready.popleft()
        return True

    @property
    def has_ready_rows(self) -> bool:
        return bool(self._ready)

    def emit(self, columns: Columns, count: int, port: Port = Port.MAIN) -> None:
        """Makes ``count`` rows ready, in the layout of ``port``. They are not copied before ``flush``."""
        if count and port in self.outlets:
            self._ready.append((port, columns, 0, count))

    def divert_late(self, index: int, columns: Columns, start: int, stop: int) -> int:
        """Counts the late events of [start, stop) and makes them ready on the late port of that input;
        returns how many.

        Kernels of operators that depend on time skip events whose ``$late`` is True; this is the other half.
        """
        layout = self.inputs[index]
        if LATE not in layout:
            return 0
        rows = np.flatnonzero(columns[layout.data(LATE)][start:stop])
        if rows.size == 0:
            return 0
        self.late_events += rows.size
        port = Port.LATE if index == 0 else Port.LATE_RIGHT
        if port in self.outlets:
            target = self.layouts[port]
            taken: list[np.ndarray] = []
            for field in target.fields:
                taken.append(columns[layout.data(field.name)][start:stop][rows])
                if field.nullable:
                    nulls = layout.nulls(field.name)
                    assert nulls is not None
                    taken.append(columns[nulls][start:stop][rows])
            self.emit(tuple(taken), rows.size, port)
        return int(rows.size)

    def reset(self) -> None:
        """Forgets everything: it is as newly built, at far less cost. Rows not flushed are lost."""
        self.late_events = self.failed_events = 0
        self._ready.clear()

    def export_state(self) -> StateTables:
        """All that it must know to go on, as tables whose rows know the hash of their key. Changes nothing.

        Only while nothing is left to flush. Not in it: the watermark that it has seen. That is the same for
        all rows, so whoever keeps the tables keeps it beside them, once.
        """
        if self.has_ready_rows:
            raise RuntimeError(f"step '{self.id}' has rows to flush: its state is not complete without them")
        kept = zip(self.state_formats, self._state_rows(), strict=True)
        return {
            table.name: table.table(columns, hashes, self.strings)
            for table, (columns, hashes) in kept
            if len(hashes)
        }

    def import_state(self, tables: StateTables, watermark_us: int = START_OF_TIME) -> None:
        """Takes in what others, or it itself in an earlier life, exported at ``watermark_us``.

        Before its first turn; also several times, or with tables of several exports merged, as long as no
        key comes twice. Its string codes may be others than the exporter's.
        """
        self._restore(self._columns_of(tables), watermark_us)

    def merge_state(self, tables: StateTables) -> None:
        """Takes in what another instance of the same operator exported, as if it had consumed the events of
        that one itself. At any time; keys and windows may be here already, and in the tables more than once.

        Not in the tables: how many events were late there. Only for those that are ``mergeable``.
        """
        if not self.mergeable:
            raise RuntimeError(f"step '{self.id}' cannot merge state: its events must come to one place")
        self._merge_rows(self._columns_of(tables))

    def _columns_of(self, tables: StateTables) -> list[Columns]:
        """The rows of each of ``state_formats``, in arrays of their own."""
        known = [table.name for table in self.state_formats]
        unknown = [name for name in tables if name not in known]
        if unknown:
            raise StateError(
                "state does not fit its operator",
                f"'{self.id}' was given table '{unknown[0]}', it keeps {', '.join(known) or 'nothing'}",
                "the step has changed: start it under another name, or from an empty checkpoint",
            )
        return [table.columns(tables.get(table.name), self.strings, self.id) for table in self.state_formats]

    def _state_rows(self) -> list[StateRows]:
        """The rows of each of ``state_formats``."""
        return []

    def _restore(self, rows: list[Columns], watermark_us: int) -> None:  # noqa: B027 - most keep nothing
        """Takes in the rows of each of ``state_formats``, in arrays of their own."""

    def _merge_rows(self, rows: list[Columns]) -> None:  # noqa: B027 - most cannot
        """Takes in the rows of each of ``state_formats``, whose keys may be there already."""

    def _given_twice(self) -> StateError:
        return StateError(
            "state was given twice",
            f"'{self.id}' already has keys of the tables it was to take in",
            "every virtual partition belongs to one task and one file of a version",
        )

    @property
    def state_bytes(self) -> int:
        """Memory that its state takes, for metrics."""
        return 0

    @property
    def remembered(self) -> Remembered | None:
        """What it keeps for ever; None for what forgets."""
        return None

    @property
    def dropped_runs(self) -> int:
        """What it left out to stay within its memory: runs of a pattern."""
        return 0

    @property
    def open_windows(self) -> int:
        """Windows, sessions or timers not finished yet: what an early stop leaves behind."""
        return 0

    @property
    def degree(self) -> DegreeMetrics | None:
        """How many instances it has; None for what has no instances."""
        return None
