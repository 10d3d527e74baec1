"""How whole kernels are put together: from a block of the input to rows in a block of the output."""

from __future__ import annotations

from collections.abc import Sequence

from numba import types

from penstock.compiled.cache import Kernel, compile_kernel
from penstock.kernels.builder import HEADER, KernelBuilder
from penstock.kernels.code import Code
from penstock.kernels.parameters import column_types
from penstock.memory.layout import SUB, Layout


def store(target: Layout, name: str, code: Code, row: str = "o", columns: str = "out") -> list[str]:
    """Statements that write a value into the field ``name`` of row ``row``."""
    lines = [f"{columns}_{target.data(name)}[{row}] = {code.value}"]
    nulls = target.nulls(name)
    if nulls is not None:
        lines.append(f"{columns}_{nulls}[{row}] = {code.null or 'False'}")
    return lines


def unpack(layout: Layout, columns: str = "out") -> list[str]:
    """Statements before a loop that give every array of ``layout`` a local: ``out_0 = out[0]``."""
    return [f"{columns}_{place} = {columns}[{place}]" for place in range(len(layout.dtypes))]


def system_fields(target: Layout, *, but_sub: bool = False) -> list[str]:
    """Penstock's own columns in ``target``: an operator copies them from the event that a row is made of."""
    return [name for name in target.names if name.startswith("$") and not (but_sub and name == SUB)]


def row_kernel(
    name: str,
    builder: KernelBuilder,
    target: Layout,
    body: Sequence[str],
) -> Kernel:
    """A kernel that runs ``body`` for every event ``k`` of [start, stop); rows go to ``o``, from ``pos`` on.

    Its parameters are ``inp, start, stop, out, pos, ints, floats, tables``; returns the rows written.
    """
    lines = [
        f"def {name}(inp, start, stop, out, pos, ints, floats, tables):",
        *indented([*builder.preamble(), *unpack(target), "o = uint64(pos)", "for j in range(start, stop):"]),
        *indented(["k = uint64(j)", *builder.lines, *body], 2),
        *indented(["return int64(o) - pos"]),
    ]
    signature = types.int64(
        column_types(builder.layout.dtypes),
        types.int64,
        types.int64,
        column_types(target.dtypes),
        types.int64,
        *builder.parameters.types,
    )
    return compile_kernel(name, HEADER + "\n\n" + "\n".join(lines) + "\n", signature)


def indented(lines: Sequence[str], levels: int = 1) -> list[str]:
    return ["    " * levels + line for line in lines]
