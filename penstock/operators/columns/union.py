"""Union: the events of several streams with the same columns, as one stream."""

from __future__ import annotations

from penstock.memory.layout import SUB, TIME, Columns, Layout
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.registry import runs
from penstock.query.graph import Port
from penstock.query.steps import UnionSpec


@runs(UnionSpec)
class Union(Operator):
    """Copies columns as they are, with numpy: a kernel would copy no faster.

    Two inputs may bring the same event, so ``$sub`` becomes ``$sub`` × number of inputs + input: ties between
    them are settled by the input's place, not by who came first.
    """

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        target = build.outputs.get(Port.MAIN)
        self._copies = (
            [_copied_columns(source, target) for source in build.inputs] if target is not None else []
        )
        self._sub = target.data(SUB) if target is not None and SUB in target else None

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        out = self.out
        if out is None:
            return stop - start
        position = start
        while position < stop:
            free = out.reserve()
            if free == 0:
                break
            count = min(stop - position, free)
            targets, first = out.columns, out.position
            for source, target in self._copies[index]:
                column = targets[target]
                if source is None:
                    column[first : first + count] = False
                else:
                    column[first : first + count] = columns[source][position : position + count]
            if self._sub is not None:
                sub = targets[self._sub][first : first + count]
                sub *= len(self.inputs)
                sub += index
            out.commit(count)
            position += count
        return position - start


def _copied_columns(source: Layout, target: Layout) -> list[tuple[int | None, int]]:
    """For each array of ``target`` the array of ``source`` that it copies; None for a mask that is all False.

    Fields go by name; ``$time`` is whatever holds the event time; an absent ``$sub`` or ``$late`` is zeros.
    """
    pairs: list[tuple[int | None, int]] = []
    for wanted in target.names:
        name = wanted
        if name == TIME and TIME not in source and source.time is not None:
            name = source.time
        pairs.append((source.data(name) if name in source else None, target.data(wanted)))
        nulls = target.nulls(wanted)
        if nulls is not None:
            pairs.append((source.nulls(name), nulls))
    return pairs
