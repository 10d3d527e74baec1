"""Co-group: a user's function once per key and window, with the events of both sides in order."""

from __future__ import annotations

from typing import Any

from penstock.operators.joins.windowed_sides import WindowedSides
from penstock.operators.run.base import Build
from penstock.operators.run.registry import runs
from penstock.operators.run.rows import RowReader, RowWriter, UserFunction, hash_key
from penstock.query.graph import Port
from penstock.query.steps import CoGroupSpec
from penstock.query.user_functions import Group

_EMITTED_AT_ONCE = 4096  # rows collected as Python values before they become columns


@runs(CoGroupSpec)
class CoGroup(WindowedSides):
    """Holds the events of both sides until the watermark closes their windows.

    Windows close in the order of their ends, the groups of one window in the order of their keys' hashes.
    A null key is a group like any other.
    """

    def __init__(self, build: Build) -> None:
        spec = build.node.spec_as(CoGroupSpec)
        super().__init__(build, spec.on, spec.window)
        self._function = UserFunction(self.id, spec.function, queries=build.node.queries)
        output = build.outputs.get(Port.MAIN)
        self._writer = RowWriter(self._function, build.node.schema, output, self.strings)
        self._events = [RowReader(layout, self.strings) for layout in build.inputs]
        self._keys = [
            RowReader(layout, self.strings, [pair[index] for pair in spec.on])
            for index, layout in enumerate(build.inputs)
        ]
        self._key_types = [
            build.inputs[0].field(left).dtype for left, _ in spec.on
        ]  # the right's are the same

    def on_watermark(self, watermark_us: int) -> None:
        super().on_watermark(watermark_us)
        self._emit()

    def close(self, start: int, end: int) -> None:
        left, right = self._groups(0, end), self._groups(1, end)
        hashes = {key: hash_key(key, self._key_types) for key in (left | right)}
        for key, order in sorted(hashes.items(), key=lambda item: item[1]):
            group = Group(key, start, end, left.get(key, []), right.get(key, []))
            for number, row in enumerate(self._function.rows(group, group)):
                self._writer.add(row, group, end - 1, order, number)
            if self._writer.count >= _EMITTED_AT_ONCE:
                self._emit()

    def _groups(self, index: int, end_us: int) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
        """The events of a side before ``end_us`` by key."""
        side = self.sides[index]
        rows = slice(0, side.count(end_us))
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        keys, events = self._keys[index], self._events[index]
        for key, event in zip(keys.keys(side.ordered, rows), events.read(side.ordered, rows), strict=True):
            groups.setdefault(key, []).append(event)
        return groups

    def _emit(self) -> None:
        if self._writer.count:
            self.emit(*self._writer.take())

    def reset(self) -> None:
        super().reset()
        self._writer.clear()
