"""Aggregates over sessions: per key, stretches of events that lie less than a gap apart.

Each key has a list of open sessions, which never touch; an event extends one, bridges two, or opens a new
one. So the sessions are the same in whatever order events come.
"""

from __future__ import annotations

import numpy as np
from numba import types

from penstock.compiled.cache import Kernel
from penstock.memory.layout import Columns
from penstock.operators.run.base import Build, Operator
from penstock.operators.windows.aggregation import Aggregation, fill_in
from penstock.operators.windows.aggregation_state import AggregationState
from penstock.operators.windows.open_sessions import SESSIONS_TYPE, Sessions
from penstock.operators.windows.window_aggregates import aggregates_over
from penstock.operators.windows.window_rows import WindowRows
from penstock.query.graph import Port
from penstock.query.steps import WindowAggregateSpec
from penstock.query.windows import Session
from penstock.state.table import TABLE_TYPE
from penstock.state.tables import StateRows


@aggregates_over(Session)
class SessionAggregate(Operator):
    """Emits one row per key and session, once, when the watermark is a gap past the session's last event."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        spec = build.node.spec_as(WindowAggregateSpec)
        assert isinstance(spec.window, Session)
        self._gap_us = spec.window.gap_us
        self._aggregation = Aggregation(build, spec)
        self._sessions = Sessions(self._aggregation.keys.width)
        self._aggregation.accumulators.resize(self._sessions.capacity)
        self._kernel = _compile(self._aggregation)
        self._parameters = self._aggregation.builder.parameters
        output = self.layouts.get(Port.MAIN)
        self._rows = None if output is None else WindowRows(output, self._aggregation.keys, self.strings)
        self._state = AggregationState(self._aggregation, "$first", ["$last"])
        self.state_formats = self._state.formats

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        if self._ready:
            return 0
        self.divert_late(index, columns, start, stop)
        if self._rows is None:
            return stop - start
        aggregation, sessions, position = self._aggregation, self._sessions, start
        while True:
            kept = aggregation.arguments(stop - position)
            position += self._kernel(
                columns,
                position,
                stop,
                *kept,
                sessions.keys.arrays,
                sessions.arrays,
                self._gap_us,
                *self._parameters.arguments(),
            )
            aggregation.took(kept[2])
            renamed = sessions.release_merged()
            if renamed is not None:
                for part in aggregation.collected:
                    part.relabel(renamed)
            if position == stop:
                return stop - start
            sessions.grow()
            aggregation.accumulators.resize(sessions.capacity)

    def on_watermark(self, watermark_us: int) -> None:
        sessions, aggregation = self._sessions, self._aggregation
        if watermark_us < sessions.earliest_end or self._rows is None:
            return
        closing = sessions.ended(watermark_us - self._gap_us)
        if closing.size:
            words, starts = sessions.keys.words[sessions.owner[closing]], sessions.first[closing]
            ends = sessions.last[closing] + self._gap_us
            hashes, order = self._rows.order(words, ends)
            closing = closing[order]
            finished = aggregation.accumulators.finish(closing)
            parts = np.arange(len(closing))
            collected = [part.finish(closing, parts, len(parts)) for part in aggregation.collected]
            results = aggregation.results(finished, collected)
            rows = self._rows.columns(words[order], starts[order], ends[order], hashes[order], results)
            self.emit(rows, len(closing))
            for part in aggregation.collected:
                part.drop(closing, sessions.capacity)
        sessions.close(closing, self._gap_us)
        aggregation.accumulators.resize(sessions.capacity)

    def _state_rows(self) -> list[StateRows]:
        sessions = self._sessions
        numbers = np.flatnonzero(sessions.is_open)
        keys = sessions.keys.words[sessions.owner[numbers]]
        words = np.column_stack((sessions.first[numbers], keys))
        key_hash = None if self._rows is None else self._rows.hash
        return self._state.rows(numbers, words, key_hash, (sessions.last[numbers],))

    def _restore(self, rows: list[Columns], watermark_us: int) -> None:
        words = self._state.words(rows[0])
        (last,) = self._state.more(rows[0])
        numbers = self._sessions.restore(words[:, 1:], words[:, 0], last, self._gap_us)
        if numbers is None:
            raise self._given_twice()
        self._aggregation.accumulators.resize(self._sessions.capacity)
        self._state.restore(rows, words, numbers)

    def reset(self) -> None:
        super().reset()
        self._sessions.reset()
        self._aggregation.reset(self._sessions.capacity)

    @property
    def state_bytes(self) -> int:
        return self._sessions.nbytes + self._aggregation.nbytes

    @property
    def open_windows(self) -> int:
        return len(self._sessions)


# Stops early when there is no room: returns how many events it took.
_UPDATE = """
def update_sessions(
    inp, start, stop, state, collected, filled, table, sessions, gap_us, ints, floats, tables
):
    first, last, following, owner, into, free, is_open, heads, counts = sessions
    @preamble
    for k in range(start, stop):
        @head
        known = table[4][2]
        key = KEY
        entry = insert(table, key, hash_key(key))
        if entry == FULL:
            return k - start
        if table[4][2] != known:
            heads[entry] = -1
        group = int64(-1)
        before = int64(-1)
        session = heads[entry]
        while session >= 0:
            if time - last[session] < gap_us and first[session] - time < gap_us:
                if group >= 0:  # the event bridges two; there cannot be a third
                    @merge
                    first[group] = min(first[group], first[session])
                    last[group] = max(last[group], last[session])
                    following[before] = following[session]
                    into[session] = group
                    is_open[session] = False
                    counts[MERGED] += 1
                    break
                group = session
                if first[group] <= time <= last[group]:
                    break
                first[group] = min(first[group], time)
                last[group] = max(last[group], time)
            before = session
            session = following[session]
        if group < 0:
            if counts[FREE] > 0:
                counts[FREE] -= 1
                group = free[counts[FREE]]
            elif counts[SIZE] < len(first):
                group = counts[SIZE]
                counts[SIZE] += 1
            else:
                return k - start
            first[group] = time
            last[group] = time
            owner[group] = entry
            following[group] = heads[entry]
            heads[entry] = group
            is_open[group] = True
            counts[ENDS] = min(counts[ENDS], time + gap_us)
            @start
        @update
    return stop - start
"""


def _compile(aggregation: Aggregation) -> Kernel:
    head, words = aggregation.head()
    accumulators = aggregation.accumulators
    source = fill_in(
        _UPDATE.replace("KEY", f"({', '.join(words)},)"),
        head=head,
        merge=accumulators.merge("acc", "group", "acc", "session"),
        start=accumulators.start("acc", "group"),
        update=aggregation.update("group"),
        preamble=aggregation.preamble(),
    )
    imports = "from penstock.operators.windows.open_sessions import ENDS, FREE, MERGED, SIZE\n"
    return aggregation.compile("update_sessions", imports + source, (TABLE_TYPE, SESSIONS_TYPE, types.int64))
