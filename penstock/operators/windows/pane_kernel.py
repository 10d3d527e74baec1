"""The kernel that takes events into the groups of a windowed aggregate, by key and pane."""

from __future__ import annotations

from numba import types

from penstock.compiled.cache import Kernel
from penstock.kernels.conditions import is_true
from penstock.operators.windows.aggregation import Aggregation, fill_in, with_lookup
from penstock.operators.windows.wall_clock import wall_clock
from penstock.query.expr import Expr
from penstock.query.windows import Sliding
from penstock.state.table import TABLE_TYPE

_FETCHED = 128  # events whose places are read beforehand
_UNCACHED = 1 << 15  # slots of a table for which that pays


def update_kernel(
    aggregation: Aggregation, window: Sliding, where: Expr | None, *, many_groups: bool, event: str = "place"
) -> Kernel:
    """``update_panes``, compiled, where ``where`` is true; ``event`` is that of ``place``."""
    template = _FETCHING if many_groups else _UPDATE.replace("EVENT", event)
    head, words = aggregation.head()
    if where is not None:
        builder = aggregation.builder
        condition = is_true(builder, builder.emit(where))
        head += [*builder.lines, f"if not ({condition}):", "    continue"]
        builder.lines.clear()
    update = aggregation.update("at")
    accumulators = aggregation.accumulators
    clock = wall_clock(window)
    found = _LOOKUP.replace("PLACE", "k" if many_groups else "place")
    lookup = fill_in(with_lookup(found, words), start=accumulators.start("acc", "entry"))
    template = template.replace("UNCACHED", str(_UNCACHED)).replace("FETCHED", str(_FETCHED))
    source = fill_in(
        with_lookup(template, words).replace("FIRST", "int64(acc0[entry])" if accumulators.slots else "0"),
        head=head,
        pane=clock.pane_lines(aggregation.builder, "time"),
        lookup=lookup.strip().splitlines(),
        update=update,
        preamble=aggregation.preamble(),
    )
    parameters = (TABLE_TYPE, types.Array(types.int64, 1, "C"), types.int64)
    return aggregation.compile("update_panes", clock.imports + source, parameters)


# Stops early when the table is full: returns how many events it took. The last event's pane is remembered, so
# most events need no division; known keys are looked up right here, so they need no call; and a row number
# without a sign saves the test for a negative one.
_UPDATE = """
def update_panes(
    inp, start, stop, state, collected, filled, table, lowest, pane_us, ints, floats, tables
):
    slots, keys, live, free, counts = table
    @preamble
    shift, mask = uint64(counts[3]), uint64(len(slots) - 1)
    pane, pane_low, pane_high, pane_hash = int64(0), int64(1), int64(0), int64(0)
    for place in range(uint64(start), uint64(stop)):
        k = EVENT
        @head
        @pane
        @lookup
        @update
    return stop - start
"""

_LOOKUP = """
hashed = HASHED
slot = first_slot(shift, hashed)
entry = int64(slots[slot])
while entry >= 0 and (DIFFERS):
    slot = (slot + uint64(1)) & mask
    entry = int64(slots[slot])
if entry < 0:
    entry = insert(table, (pane, WORDS), hashed)
    if entry == FULL:
        return int64(PLACE) - start
    lowest[0] = min(lowest[0], pane)
    @start
at = uint64(entry)
"""

# The same for tables that fit into no cache. One event after the other would wait for memory each time; so
# the places that the next events will need are read beforehand, all of them at once, and what was read is
# written down, lest the compiler leave it out. Where a place turns out to be another one, nothing is lost.
_FETCHING = """
def update_panes(
    inp, start, stop, state, collected, filled, table, lowest, pane_us, ints, floats, tables
):
    slots, keys, live, free, counts = table
    @preamble
    shift, mask = uint64(counts[3]), uint64(len(slots) - 1)
    pane, pane_low, pane_high, pane_hash = int64(0), int64(1), int64(0), int64(0)
    fetched = np.zeros(FETCHED, np.int64)
    for begin in range(start, stop, FETCHED):
        until = min(begin + FETCHED, stop)
        if len(slots) > UNCACHED:
            for k in range(uint64(begin), uint64(until)):
                fetched[k - uint64(begin)] = -1
                @head
                @pane
                fetched[k - uint64(begin)] = int64(slots[first_slot(shift, HASHED)])
            for i in range(uint64(0), uint64(until - begin)):
                entry = fetched[i]
                if entry >= 0:
                    fetched[i] = keys[uint64(entry), 0] + FIRST
        for k in range(uint64(begin), uint64(until)):
            @head
            @pane
            @lookup
            @update
    return stop - start
"""
