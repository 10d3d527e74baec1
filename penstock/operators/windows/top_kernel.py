"""The kernel of window top: which events may be among the best k of their key and pane."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from penstock.compiled.cache import compile_kernel
from penstock.compiled.fixed import fixed
from penstock.kernels.builder import Code, KernelBuilder, column_types
from penstock.memory.layout import LATE, TIME, Layout
from penstock.operators.run.base import Build
from penstock.operators.windows.aggregation import KERNEL_HEADER, fill_in, with_lookup
from penstock.operators.windows.best_ranks import BEST_RANKS_TYPE, WORST, offer
from penstock.operators.windows.wall_clock import wall_clock
from penstock.query.expr import Expr
from penstock.query.inference import resolved
from penstock.query.steps import WindowTopSpec
from penstock.query.types import DataType, Field
from penstock.state.keys import KeyWords, Words
from penstock.state.table import FULL, TABLE_TYPE, TableArrays, hash_key, insert

Ints = NDArray[np.int64]

_IMPORTS = "from penstock.operators.windows.best_ranks import WORST, offer\n"
_FIND = """
def find_candidates(
    inp, start, stop, table, lowest, best, places, pane_us, outcome, nulls, words, absent, ints, floats,
    tables
):
    rows, entries, ranks, found = outcome
    limits, heap, held = best
    slots, keys, live, free, counts = table
    @preamble
    shift, mask = uint64(counts[3]), uint64(len(slots) - 1)
    pane, pane_low, pane_high, pane_hash = int64(0), int64(1), int64(0), int64(0)
    n = 0
    for k in range(uint64(start), uint64(stop)):
        @head
        @pane
        hashed = HASHED
        slot = first_slot(shift, hashed)
        entry = int64(slots[slot])
        while entry >= 0 and (DIFFERS):
            slot = (slot + uint64(1)) & mask
            entry = int64(slots[slot])
        if entry < 0:
            entry = insert(table, (pane, WORDS), hashed)
            if entry == FULL:
                found[0] = n
                return int64(k) - start
            lowest[0] = min(lowest[0], pane)
            limits[entry] = WORST
            held[entry] = 0
        @rank
        if rank <= limits[entry]:
            rows[n] = int64(k) - start
            entries[n] = entry
            ranks[n] = rank
            nulls[n] = NULL
            @further
            n += 1
            if places > 0:
                limits[entry] = offer(heap, held, entry, places, rank)
    found[0] = n
    return stop - start
"""


def candidate_kernel(spec: WindowTopSpec, layout: Layout, keys: KeyWords, build: Build) -> tuple[Any, Any]:
    """The kernel that finds the candidates among events: their rows (from ``start``), entries and ranks."""
    builder = KernelBuilder(layout, build.strings)
    late = [f"if {builder.load(LATE).value}:", "    continue"] if LATE in layout else []
    late = [*builder.lines, *late]
    builder.lines.clear()
    time = builder.load(TIME)
    loaded = [builder.load(name) for name in spec.keys]
    word_lines, words = keys.lines([(code.value, code.null) for code in loaded])
    by = builder.emit(spec.by)
    rank = _ranked("rank", _beginning(builder, by) if by.dtype is DataType.STRING else by, spec.descending)
    further: list[str] = []
    for number, (field, (expr, descending)) in enumerate(_further(spec, layout)):
        code = builder.emit(expr)
        if field.dtype is DataType.STRING:
            further.append(f"words[{number}][n] = {code.value}")
        else:
            further += [*_ranked("other", code, descending), f"words[{number}][n] = other"]
        further.append(f"absent[{number}][n] = {code.null or 'False'}")
    if by.null is not None:
        rank += [f"if {by.null}:", f"    rank = int64({WORST})"]
    clock = wall_clock(spec.window)
    pane = clock.pane_lines(builder, time.value)
    source = fill_in(
        with_lookup(_FIND, words).replace("NULL", by.null or "False"),
        preamble=builder.preamble(),
        head=[*late, *builder.lines, *word_lines],
        pane=pane,
        rank=rank,
        further=further,
    )
    ints, bools = types.Array(types.int64, 1, "C"), types.Array(types.boolean, 1, "C")
    count = max(1, len(further_keys(spec, layout)))
    signature = types.int64(
        column_types(layout.dtypes),
        types.int64,
        types.int64,
        TABLE_TYPE,
        ints,
        BEST_RANKS_TYPE,
        types.int64,
        types.int64,
        types.Tuple((ints, ints, ints, ints)),  # type: ignore[no-untyped-call]
        bools,
        types.Tuple((ints,) * count),  # type: ignore[no-untyped-call]
        types.Tuple((bools,) * count),  # type: ignore[no-untyped-call]
        *builder.parameters.types,
    )
    kernel = compile_kernel("find_candidates", KERNEL_HEADER + _IMPORTS + clock.imports + source, signature)
    return kernel, builder.parameters


def further_keys(spec: WindowTopSpec, layout: Layout) -> list[tuple[Field, bool]]:
    """What a row keeps besides its rank, because the rank alone does not decide: of numbers and times their
    own rank, strings as they are. With each, whether the largest comes first.
    """
    return [(field, descending) for field, (_, descending) in _further(spec, layout)]


def _further(spec: WindowTopSpec, layout: Layout) -> list[tuple[Field, tuple[Expr, bool]]]:
    listed = []
    for number, one in enumerate(spec.ranking):
        is_text = resolved(one[0], layout.schema).dtype is DataType.STRING
        if number or is_text:
            dtype = DataType.STRING if is_text else DataType.INT64
            listed.append((Field(f"$by{number}", dtype, nullable=True), one))
    return listed


def _ranked(name: str, by: Code, descending: bool) -> list[str]:
    """Statements that assign an integer: the smaller, the better."""
    if by.dtype.is_float:  # the bits of a float grow with it, but for the sign
        lines = [f"{name} = float_word({by.value})", f"{name} ^= ({name} >> 63) & {WORST}"]
    else:
        lines = [f"{name} = int64({by.value})"]
    return [*lines, f"{name} = ~{name}"] if descending else lines


def _beginning(builder: KernelBuilder, text: Code) -> Code:
    """The first bytes of a string as a number that grows with the string."""
    place = builder.parameters.add_string_table(_first_bytes, DataType.INT64, shared_as="first bytes")
    value = builder.assign(f"{builder.table(place)}[uint64({text.value})]")
    return Code(value, text.null, DataType.INT64)


def _first_bytes(text: str) -> int:
    return int.from_bytes(text[:8].encode("utf-8", "surrogatepass")[:8].ljust(8, b"\0")) - (1 << 63)


_INTS, _INT = types.Array(types.int64, 1, "C"), types.int64


@fixed(
    types.int64(
        TABLE_TYPE,
        types.Array(types.int64, 2, "C"),
        _INTS,
        BEST_RANKS_TYPE,
        _INT,
        _INTS,
        _INTS,
        types.Array(types.boolean, 1, "C"),
        _INT,
    )
)
def admit(
    table: TableArrays,
    words: Words,
    lowest: Ints,
    best: tuple[Ints, Ints, Ints],
    places: int,
    ranks: Ints,
    entries: Ints,
    kept: NDArray[np.bool_],
    done: int,
) -> int:
    """Finds the entries of candidates, given by (pane, key) and rank, and which of them are kept.

    Returns how many are done: fewer than all when the table must grow first.
    """
    limits, heap, held = best
    for index in range(done, len(ranks)):
        key, rank = words[index], ranks[index]
        in_use = table[4][2]
        entry = insert(table, key, hash_key(key))
        if entry == FULL:
            return index
        if table[4][2] > in_use:
            lowest[0] = min(lowest[0], key[0])
            limits[entry] = WORST
            held[entry] = 0
        entries[index] = entry
        kept[index] = rank <= limits[entry]
        if places > 0 and kept[index]:
            limits[entry] = offer(heap, held, entry, places, rank)
    return len(ranks)
