"""The kernel that puts groups exported by other instances into the groups of a windowed aggregate."""

from __future__ import annotations

import numpy as np
from numba import types
from numpy.typing import NDArray

from penstock.compiled.cache import compile_kernel
from penstock.kernels.builder import column_types
from penstock.memory.layout import Columns, Layout
from penstock.operators.windows.aggregation import KERNEL_HEADER, Aggregation, fill_in
from penstock.operators.windows.panes import Panes
from penstock.state.table import TABLE_TYPE
from penstock.state.tables import key_fields

# Stops early when the table is full: returns how many rows are done. The rows of a group that is not there
# yet are copied as they are, so that state which is exported and put back is the same to the last bit.
_MERGE = """
def merge_groups(inp, done, state, table, lowest, entries):
    counts = table[4]
    @unpack
    for k in range(done, len(entries)):
        @words
        pane = inp0[k]
        key = (pane, WORDS)
        known = counts[2]
        entry = insert(table, key, hash_key(key))
        if entry == FULL:
            return k
        entries[k] = entry
        if counts[2] != known:
            lowest[0] = min(lowest[0], pane)
            @copy
        else:
            @merge
    return len(entries)
"""


class GroupMerge:
    """Takes rows of a table of groups (``layout``: pane, key columns, slots) into panes and accumulators."""

    def __init__(self, aggregation: Aggregation, layout: Layout) -> None:
        self._accumulators = accumulators = aggregation.accumulators
        keys = aggregation.keys
        unpack = [f"inp{place} = inp[{place}]" for place in range(len(layout.dtypes))]
        loaded: list[tuple[str, str | None]] = []
        for field in key_fields(keys):
            nulls = layout.nulls(field.name)
            loaded.append((f"inp{layout.data(field.name)}[k]", None if nulls is None else f"inp{nulls}[k]"))
        lines, words = keys.lines(loaded)
        slots = layout.fields[1 + len(keys.fields) :]
        unpack += [f"other{number} = inp{layout.data(slot.name)}" for number, slot in enumerate(slots)]
        copy = [f"acc{number}[entry] = other{number}[k]" for number in range(len(slots))]
        source = fill_in(
            _MERGE.replace("WORDS", ", ".join(words)),
            unpack=[*unpack, *accumulators.unpack("state", "acc")],
            words=lines,
            copy=copy or ["pass"],
            merge=accumulators.merge("acc", "entry", "other", "k") or ["pass"],
        )
        ints = types.Array(types.int64, 1, "C")
        columns, state = column_types(layout.dtypes), column_types(accumulators.dtypes)
        signature = types.int64(columns, types.int64, state, TABLE_TYPE, ints, ints)
        self._kernel = compile_kernel("merge_groups", KERNEL_HEADER + source, signature)

    def __call__(self, columns: Columns, panes: Panes) -> NDArray[np.int64]:
        """The entry of each row; there may be several rows of one group."""
        entries = np.empty(len(columns[0]), np.int64)
        table, accumulators, done = panes.table, self._accumulators, 0
        while True:
            done = self._kernel(columns, done, accumulators.arrays, table.arrays, panes.lowest, entries)
            if done == len(entries):
                return entries
            table.grow()
            accumulators.resize(table.capacity)
