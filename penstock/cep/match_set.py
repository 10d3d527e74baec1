"""Match set: the matches of patterns that come and go while events flow, each at its own event time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.cep.matcher import Matcher
from penstock.memory.edges import START_OF_TIME
from penstock.memory.layout import ORDER, SUB, SYSTEM_TYPES, TIME, Columns, Layout
from penstock.operators.base import Build, Operator
from penstock.operators.ordered_buffer import OrderedBuffer
from penstock.query.graph import MatchSetSpec, Port
from penstock.query.pattern_sets import PATTERN_NAME, PatternChange, PatternSet
from penstock.query.types import Field

_MOST_PATTERNS = 1 << 12  # that can be told apart at one place in the order


class MatchSet(Operator):
    """One matcher per pattern; events are released up to each change, then it is made."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        spec = build.node.spec
        assert isinstance(spec, MatchSetSpec)
        assert isinstance(spec.patterns, PatternSet)
        self._patterns = spec.patterns
        self._held = OrderedBuffer(build.inputs[0])
        self._output = build.outputs.get(Port.MAIN)
        self._full = _full(self._output) if self._output is not None else Layout(())
        self._matchers: dict[str, tuple[int, Matcher]] = {}  # the number of the change, and the matcher
        self._made: list[Columns] = []
        self._fetched = self._applied = 0
        self._passed_us = START_OF_TIME
        self._coming: list[PatternChange] = []

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        self.divert_late(index, columns, start, stop)
        self._held.add(columns, start, stop)
        return stop - start

    def on_watermark(self, watermark_us: int) -> None:
        fetched = self._patterns.settled(self._fetched, self._passed_us, watermark_us)
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
        for name, (number, matcher) in self._matchers.items():
            rows, made = matcher.take(columns, count, until_us)
            if made and self._output is not None:
                self._made.append(self._named(rows, made, name, number))

    def _apply(self, change: PatternChange) -> None:
        number, self._applied = self._applied, self._applied + 1
        self._matchers.pop(change.name, None)
        if change.spec is None:
            return
        if self._output is not None:
            target = Layout([field for field in self._full.fields if field.name != PATTERN_NAME], TIME)
            matcher = Matcher(change.spec, self.inputs[0], target, self.strings, f"{self.id}: {change.name}")
            self._matchers[change.name] = (number, matcher)

    def _named(self, rows: Columns, count: int, name: str, number: int) -> Columns:
        made: list[NDArray[Any]] = []
        given = iter(rows)
        for field in self._full.fields:
            if field.name == PATTERN_NAME:
                made.append(np.full(count, self.strings.code(name), np.int32))
                continue
            data = next(given)
            # Two patterns can report at the same place: the one that was added first comes first.
            made.append(data * _MOST_PATTERNS + number % _MOST_PATTERNS if field.name == SUB else data)
            if field.nullable:
                made.append(next(given))
        return tuple(made)

    def _emit_ordered(self, rows: Columns) -> None:
        assert self._output is not None
        order = np.lexsort([rows[self._full.data(name)] for name in (SUB, ORDER, TIME)])
        names = [field.name for field in self._full.fields for _ in range(1 + field.nullable)]
        kept = [column[order] for column, name in zip(rows, names, strict=True) if name in self._output]
        self.emit(tuple(kept), len(order))

    def reset(self) -> None:
        super().reset()
        self._held.clear()
        self._matchers.clear()
        self._made.clear()
        self._coming.clear()
        self._fetched = self._applied = 0
        self._passed_us = START_OF_TIME

    @property
    def state_bytes(self) -> int:
        return self._held.bytes + sum(matcher.nbytes for _, matcher in self._matchers.values())

    @property
    def open_windows(self) -> int:
        return sum(matcher.open_runs for _, matcher in self._matchers.values())

    @property
    def dropped_runs(self) -> int:
        return sum(matcher.dropped_runs for _, matcher in self._matchers.values())


def _time(change: PatternChange) -> int:
    assert change.at_us is not None, "the set settles times before it hands changes out"
    return change.at_us


def _full(output: Layout) -> Layout:
    """The layout with all that matches are put in order by."""
    added = [Field(name, SYSTEM_TYPES[name]) for name in (TIME, ORDER, SUB) if name not in output]
    return Layout([*output.fields, *added], TIME)
