"""What all aggregating operators share: their aggregates as state, and the code that takes events in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from penstock.compiled.cache import Kernel, compile_kernel
from penstock.kernels.builder import HEADER, KernelBuilder, column_types
from penstock.kernels.conditions import is_true
from penstock.memory.layout import LATE, ORDER, SUB, TIME, Columns
from penstock.operators.aggregates import accumulators
from penstock.operators.aggregates.accumulator import Accumulator, EventPlace, Finished, kept_by
from penstock.operators.aggregates.accumulators import Accumulators, Taken
from penstock.operators.aggregates.collector import Collector
from penstock.operators.run.base import Build
from penstock.query.aggregates import Aggregate
from penstock.query.graph import Port
from penstock.query.inference import resolved
from penstock.query.steps import WindowAggregateSpec
from penstock.state import keys as key_words
from penstock.state.keys import KeyWords
from penstock.state.table import TABLE_TYPE, KeyTable

_INTS = types.Array(types.int64, 1, "C")

KERNEL_HEADER = "\n".join(
    (
        HEADER.rstrip(),
        key_words.IMPORTS,
        accumulators.IMPORTS,
        "from penstock.state.table import FULL, first_slot, hash_key, hash_word, insert, remove, same_key",
        "",
    )
)


def fill_in(template: str, **blocks: Sequence[str]) -> str:
    """The source of a kernel: a line ``@name`` of the template becomes that block, indented alike.

    >>> fill_in("for k in range(n):\\n    @body", body=["a = k", "b = a"])
    'for k in range(n):\\n    a = k\\n    b = a\\n'
    """
    lines: list[str] = []
    for line in template.strip().splitlines():
        bare = line.lstrip()
        if bare.startswith("@"):
            lines += [line[: len(line) - len(bare)] + inner for inner in blocks[bare[1:]]]
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def with_lookup(template: str, words: Sequence[str]) -> str:
    """A template that looks up (pane, words), with what depends on the words put in.

    ``HASHED``: the hash, from ``pane_hash``; ``DIFFERS``: whether ``keys`` has another key at ``entry``.
    """
    hashed = "pane_hash"
    for word in words:
        hashed = f"hash_word({hashed}, {word})"
    parts = enumerate(("pane", *words))
    differs = " or ".join(f"keys[uint64(entry), {place}] != {word}" for place, word in parts)
    return template.replace("HASHED", hashed).replace("DIFFERS", differs).replace("WORDS", ", ".join(words))


class Aggregation:
    """The aggregates of one step that someone reads: state per group, and code for kernels.

    A kernel names its arguments ``inp``, ``state``, ``collected``, ``filled`` and loops with ``k``;
    ``preamble`` goes before the loop, ``head`` first into it (passes over late events; gives ``time`` and
    the words), then ``update``.
    """

    def __init__(self, build: Build, spec: WindowAggregateSpec, builder: KernelBuilder | None = None) -> None:
        """``builder``: over the events of the input, where they are not what the kernel is given."""
        layout = build.inputs[0]
        output = build.outputs.get(Port.MAIN)
        self.keys = KeyWords.of(layout, spec.keys)
        self.builder = builder or KernelBuilder(layout, build.strings)
        self._has_late = LATE in layout
        self._has_order = ORDER in layout
        self.parts: list[Accumulator] = []
        self.collected: list[Collector] = []
        self._aggregates: list[Aggregate] = []  # of the parts
        self._collected_aggregates: list[Aggregate] = []
        self._results: dict[str, tuple[bool, int]] = {}  # name → (collected?, number there)
        shared: dict[tuple[Any, ...], tuple[bool, int]] = {}
        for name, aggregate in spec.aggregates:
            if output is None or name not in output:
                continue
            key = aggregate.key()
            if key not in shared:
                kept = kept_by(aggregate, layout.schema, build.strings)
                is_collected = isinstance(kept, Collector)
                parts: list[Any] = self.collected if is_collected else self.parts
                shared[key] = (is_collected, len(parts))
                parts.append(kept)
                (self._collected_aggregates if is_collected else self._aggregates).append(aggregate)
            self._results[name] = shared[key]
        listed = (*self._aggregates, *self._collected_aggregates)
        self._needs_place = any(one.function.in_order for one in listed)
        self.accumulators = Accumulators(self.parts, 0)

    def head(self) -> tuple[list[str], list[str]]:
        """The first statements of the loop, and the names of the event's words."""
        builder = self.builder
        lines: list[str] = []
        if self._has_late:
            late = builder.load(LATE)
            lines = [*builder.lines, f"if {late.value}:", "    continue"]
            builder.lines.clear()
        time = builder.load(TIME)
        loaded = [builder.load(field.name) for field in self.keys.fields]
        word_lines, words = self.keys.lines([(code.value, code.null) for code in loaded])
        lines += [*builder.lines, f"time = {time.value}", *word_lines]
        builder.lines.clear()
        return lines, words

    def update(self, group: str) -> list[str]:
        """The statements that take the event into its group."""
        builder = self.builder
        taken = [self._taken(aggregate) for aggregate in self._aggregates]
        place = EventPlace("time", "int64(0)", "int64(0)")
        if self._needs_place:
            order = builder.load(ORDER).value if self._has_order else "int64(0)"
            place = EventPlace("time", order, builder.load(SUB).value)
        collected: list[str] = []
        first = 0
        for number, (part, aggregate) in enumerate(
            zip(self.collected, self._collected_aggregates, strict=True)
        ):
            one = self._taken(aggregate)
            collected += one.guarded(part.update(number, first, group, one.values, place))
            first += len(part.arrays)
        lines = [*builder.lines, *self.accumulators.update("acc", group, taken, place), *collected]
        builder.lines.clear()
        return lines

    def _taken(self, aggregate: Aggregate) -> Taken:
        builder = self.builder
        types = [resolved(operand, builder.schema).dtype for operand in aggregate.operands]
        operands = zip(aggregate.operands, types, strict=True)
        values = tuple(builder.emit(operand, dtype) for operand, dtype in operands)
        where = aggregate.where
        return Taken(values, None if where is None else is_true(builder, builder.emit(where)))

    def preamble(self) -> list[str]:
        """The statements before the loop; ask for them last."""
        count = sum(len(part.arrays) for part in self.collected)
        unpacked = [f"collected{index} = collected[{index}]" for index in range(count)]
        return [*self.builder.preamble(), *self.accumulators.unpack("state", "acc"), *unpacked]

    def compile(self, name: str, source: str, parameters: Sequence[Any]) -> Kernel:
        """A kernel ``name(inp, start, stop, state, collected, filled, ..., ints, floats, tables)``."""
        signature = types.int64(
            column_types(self.builder.inputs.dtypes),
            types.int64,
            types.int64,
            column_types(self.accumulators.dtypes),
            column_types(tuple(array.dtype for array in self._collected_arrays())),
            _INTS,
            *parameters,
            *self.builder.parameters.types,
        )
        return compile_kernel(name, KERNEL_HEADER + source, signature)

    def arguments(self, added: int) -> tuple[Any, ...]:
        """``state, collected, filled`` for a kernel that takes at most ``added`` events in."""
        for part in self.collected:
            part.reserve(added)
        filled = np.array([part.count for part in self.collected] or [0], np.int64)
        return self.accumulators.arrays, self._collected_arrays(), filled

    def took(self, filled: NDArray[np.int64]) -> None:
        """Tells what a kernel collected."""
        for part, count in zip(self.collected, filled.tolist(), strict=False):
            part.count = count

    def reset(self, capacity: int) -> None:
        """Forgets all groups; from now on there is room for ``capacity``."""
        self.accumulators.resize(capacity)
        for part in self.collected:
            part.reset()

    def results(self, finished: Sequence[Finished], collected: Sequence[Finished]) -> dict[str, Finished]:
        """Results by the names of their columns."""
        return {
            name: collected[number] if is_collected else finished[number]
            for name, (is_collected, number) in self._results.items()
        }

    def names(self, *, collected: bool) -> list[str]:
        """A result's name for each accumulator, or for each collected aggregate."""
        first: dict[int, str] = {}
        for name, (is_collected, number) in self._results.items():
            if is_collected is collected:
                first.setdefault(number, name)
        return list(first.values())

    @property
    def nbytes(self) -> int:
        return self.accumulators.nbytes + sum(part.nbytes for part in self.collected)

    def _collected_arrays(self) -> Columns:
        return tuple(array for part in self.collected for array in part.arrays) or (np.zeros(1, np.int64),)


_MERGE = """
def merge_panes(entries, windows, done, words, state, table, merged, groups):
    counts = table[4]
    @unpack
    for i in range(done, len(entries)):
        entry = entries[i]
        key = (KEY)
        known = counts[2]
        group = insert(table, key, hash_key(key))
        if group == FULL:
            return i
        if counts[2] != known:
            @start
        @merge
        groups[i] = group
    return len(entries)
"""


class WindowMerge:
    """Puts the panes of windows together: a table of (window, key words) and accumulators over it, made anew
    for every portion of windows that closes."""

    def __init__(self, parts: Sequence[Accumulator], width: int) -> None:
        accumulators = Accumulators(parts, 1)
        key = ", ".join(["windows[i]", *(f"words[entry, {index + 1}]" for index in range(width))])
        source = fill_in(
            _MERGE.replace("KEY", key),
            unpack=[*accumulators.unpack("state", "pane"), *accumulators.unpack("merged", "acc")],
            start=accumulators.start("acc", "group") or ["pass"],
            merge=accumulators.merge("acc", "group", "pane", "entry"),
        )
        states = column_types(accumulators.dtypes)
        words = types.Array(types.int64, 2, "C")
        signature = types.int64(_INTS, _INTS, types.int64, words, states, TABLE_TYPE, states, _INTS)
        self._kernel = compile_kernel("merge_panes", KERNEL_HEADER + source, signature)
        self._parts = tuple(parts)
        self._width = width

    def __call__(
        self, entries: NDArray[np.int64], windows: NDArray[np.int64], words: NDArray[np.int64], state: Columns
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], Accumulators]:
        """The number of each share's group, the groups' (window, key words), and their accumulators."""
        table = KeyTable(self._width + 1)
        merged = Accumulators(self._parts, table.capacity)
        groups = np.empty(len(entries), np.int64)
        done = 0
        while True:
            done = self._kernel(entries, windows, done, words, state, table.arrays, merged.arrays, groups)
            if done == len(entries):
                return groups, table.words, merged
            table.grow()
            merged.resize(table.capacity)
