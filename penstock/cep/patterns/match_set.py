"""Match set: the matches of patterns that come and go while events flow, each at its own event time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.cep.patterns.match_state import MatchState, match_formats
from penstock.cep.patterns.matcher import Matcher
from penstock.memory.edges import START_OF_TIME
from penstock.memory.layout import ORDER, SUB, SYSTEM_TYPES, TIME, Columns, Layout
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.ordered_buffer import OrderedBuffer
from penstock.operators.run.registry import runs
from penstock.operators.windows.window_rows import KeyHash
from penstock.query.graph import Port
from penstock.query.patterns.sets import PATTERN_NAME, PatternChange, PatternSet
from penstock.query.steps import MatchSetSpec, MatchSpec
from penstock.query.types import Field
from penstock.state.errors import StateError
from penstock.state.keys import KeyWords
from penstock.state.tables import StateFormat, StateRows

_MOST_PATTERNS = 1 << 12  # that can be told apart at one place in the order
_NUMBER = "$pattern"  # in tables of state: by which change the pattern came


class InForce(NamedTuple):
    """A pattern that events are matched with: the ``number``-th change, in the order of time, added it."""

    number: int
    name: str
    spec: MatchSpec


class _Matching(NamedTuple):
    pattern: InForce
    matcher: Matcher
    state: MatchState


@runs(MatchSetSpec)
class MatchSet(Operator):
    """One matcher per pattern; events are released up to each change, then it is made.

    On a node the set tells the changes. In tasks they come with every batch: ``begin``. Tables of state have
    the same columns for every pattern, so those of all patterns are one table, which tells them apart by the
    numbers of the changes that added them.
    """

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        spec = build.node.spec_as(MatchSetSpec)
        assert isinstance(spec.patterns, PatternSet)
        self._patterns = spec.patterns
        layout = build.inputs[0]
        self._held = OrderedBuffer(layout)
        self._output = build.outputs.get(Port.MAIN)
        self._full = _full(self._output) if self._output is not None else Layout(())
        self._words = KeyWords.of(layout, spec.keys)
        # Where nobody reads the matches there is nothing to compute, only late events to hand on.
        self.state_formats = (
            StateFormat("held", layout.fields),
            *(() if self._output is None else match_formats(self._words, layout, _NUMBER)),
        )
        self._matching: dict[str, _Matching] = {}  # by name, in the order of their numbers
        self._made: list[Columns] = []
        self._fetched = self._applied = 0
        self._passed_us = START_OF_TIME
        self._coming: list[PatternChange] = []

    def begin(self, patterns: Sequence[InForce], coming: Sequence[PatternChange], applied: int) -> None:
        """A batch begins with these patterns, of which ``applied`` changes have been made; those ``coming``
        are made in it or later. What is known of the patterns' runs stays."""
        known = {one.pattern.number: one for one in self._matching.values()}
        self._coming, self._applied = list(coming), applied
        self._matching = {}
        for one in patterns:
            found = known.get(one.number)
            if found is None or found.pattern.spec is not one.spec:
                found = self._matcher(one)
            if found is not None:
                self._matching[one.name] = found

    def prepare(self, spec: MatchSpec) -> None:
        """Compiles what a pattern needs."""
        self._matcher(InForce(0, "", spec))

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        self.divert_late(index, columns, start, stop)
        if self._output is not None:
            self._held.add(columns, start, stop)
        return stop - start

    def on_watermark(self, watermark_us: int) -> None:
        fetched = self._patterns.settled(self._fetched, watermark_us)
        self._fetched += len(fetched)
        self._coming = sorted([*self._coming, *fetched], key=_time)  # stable: equal times in their order
        while self._coming and _time(self._coming[0]) < watermark_us:
            change = self._coming.pop(0)
            if _time(change) > self._passed_us:
                self._take(_time(change))
            self._apply(change)
        self._take(watermark_us)
        if self._made:
            merged = tuple(np.concatenate(arrays) for arrays in zip(*self._made, strict=True))
            self._made = []
            self._emit_ordered(merged)

    def _take(self, until_us: int) -> None:
        columns, count = self._held.release(until_us)
        self._passed_us = until_us
        for pattern, matcher, _ in self._matching.values():
            rows, made = matcher.take(columns, count, until_us)
            if made:
                self._made.append(self._named(rows, made, pattern))

    def _apply(self, change: PatternChange) -> None:
        number, self._applied = self._applied, self._applied + 1
        self._matching.pop(change.name, None)
        if change.spec is None:
            return
        made = self._matcher(InForce(number, change.name, change.spec))
        if made is not None:
            self._matching[change.name] = made

    def _matcher(self, pattern: InForce) -> _Matching | None:
        if self._output is None:
            return None
        target = Layout([field for field in self._full.fields if field.name != PATTERN_NAME], TIME)
        step = f"{self.id}: {pattern.name}"
        matcher = Matcher(pattern.spec, self.inputs[0], target, self.strings, step)
        return _Matching(pattern, matcher, MatchState(matcher, self.inputs[0]))

    def _named(self, rows: Columns, count: int, pattern: InForce) -> Columns:
        made: list[NDArray[Any]] = []
        given = iter(rows)
        for field in self._full.fields:
            if field.name == PATTERN_NAME:
                made.append(np.full(count, self.strings.code(pattern.name), np.int32))
                continue
            data = next(given)
            # Two patterns can report at the same place: the one that was added first comes first.
            made.append(
                data * _MOST_PATTERNS + pattern.number % _MOST_PATTERNS if field.name == SUB else data
            )
            if field.nullable:
                made.append(next(given))
        return tuple(made)

    def _emit_ordered(self, rows: Columns) -> None:
        assert self._output is not None
        order = np.lexsort([rows[self._full.data(name)] for name in (SUB, ORDER, TIME)])
        names = [field.name for field in self._full.fields for _ in range(1 + field.nullable)]
        kept = [column[order] for column, name in zip(rows, names, strict=True) if name in self._output]
        self.emit(tuple(kept), len(order))

    # -- state -----------------------------------------------------------------------------------------------

    def _state_rows(self) -> list[StateRows]:
        held = self._held.rows()
        if self._output is None:
            return [(held, np.zeros(0, np.int64))]
        keys = self._words.encode(self.inputs[0], held, 0, len(held[0]))
        tables: list[list[StateRows]] = [
            [(table.layout.allocate(0), np.zeros(0, np.int64))] for table in self.state_formats[1:]
        ]
        for pattern, matcher, state in self._matching.values():
            if not matcher.open_runs:
                continue
            for table, (columns, hashes) in zip(tables, state.rows(self._hash), strict=True):
                numbers = np.full(len(hashes), pattern.number, np.int64)
                table.append(((numbers, *columns), hashes))
        return [(held, self._hash(keys)), *(_joined(table) for table in tables)]

    def _restore(self, rows: list[Columns], watermark_us: int) -> None:
        self._passed_us = watermark_us
        held, *tables = rows
        if self._output is None:
            return
        self._held.add(held, 0, len(held[0]))
        waiting = {one.pattern.number: one for one in self._matching.values()}
        for number in np.unique(tables[1][0]).tolist():
            found = waiting.get(number)
            if found is None:
                raise StateError(
                    "state of a pattern that is not there",
                    f"'{self.id}' was given runs of pattern number {number}",
                    "the checkpoint is not whole: restore it from a copy, or start from an empty one",
                )
            parts = [tuple(column[table[0] == number] for column in table[1:]) for table in tables]
            if not found.state.restore(parts):
                raise self._given_twice()

    def reset(self) -> None:
        """Forgets events and runs, not the patterns: which those are is told by the set, or by the batch."""
        super().reset()
        self._held.clear()
        for one in self._matching.values():
            one.matcher.clear()
        self._made.clear()

    @cached_property
    def _hash(self) -> KeyHash:
        return KeyHash(self._words, self.strings)

    @property
    def state_bytes(self) -> int:
        return self._held.bytes + sum(one.matcher.nbytes for one in self._matching.values())

    @property
    def open_windows(self) -> int:
        return sum(one.matcher.open_runs for one in self._matching.values())

    @property
    def dropped_runs(self) -> int:
        return sum(one.matcher.dropped_runs for one in self._matching.values())


def _time(change: PatternChange) -> int:
    assert change.at_us is not None, "the set settles times before it hands changes out"
    return change.at_us


def _joined(parts: list[StateRows]) -> StateRows:
    if len(parts) == 1:
        return parts[0]
    columns = tuple(np.concatenate(arrays) for arrays in zip(*(columns for columns, _ in parts), strict=True))
    return columns, np.concatenate([hashes for _, hashes in parts])


def _full(output: Layout) -> Layout:
    """The layout with all that matches are put in order by."""
    added = [Field(name, SYSTEM_TYPES[name]) for name in (TIME, ORDER, SUB) if name not in output]
    return Layout([*output.fields, *added], TIME)
