"""How choices between values, and hashes of several, are written in a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kernels.code import Code
from penstock.kernels.conditions import choice, compare
from penstock.kernels.functions.emitters import emits
from penstock.kernels.operations import cast, hash_codes
from penstock.query.functions.choices import Coalesce, HashOf, Least
from penstock.query.functions.choices.extreme import Extreme
from penstock.query.types import DataType

if TYPE_CHECKING:
    from penstock.kernels.builder import KernelBuilder


@emits(Extreme)
def extreme(builder: KernelBuilder, function: Extreme, operands: list[Code], result: DataType) -> Code:
    best, *others = [cast(builder, code, result) for code in operands]
    op = "<" if isinstance(function, Least) else ">"
    for other in others:
        better = compare(op, other.value, best.value, result)
        if other.null is not None:
            better = f"(not {other.null}) & ({better})"
        if best.null is not None:
            better = f"{best.null} | ({better})"
        value = choice(builder, better, other.value, best.value)
        null = (
            None if best.null is None or other.null is None else builder.assign(f"{best.null} & {other.null}")
        )
        best = Code(value, null, result)
    return best


@emits(Coalesce)
def coalesce(builder: KernelBuilder, function: Coalesce, operands: list[Code], result: DataType) -> Code:
    first, *others = [cast(builder, code, result) for code in operands]
    for other in others:
        if first.null is None:
            break
        value = choice(builder, first.null, other.value, first.value)
        null = None if other.null is None else builder.assign(f"{first.null} & {other.null}")
        first = Code(value, null, result)
    return first


@emits(HashOf)
def hash_of(builder: KernelBuilder, function: HashOf, operands: list[Code], result: DataType) -> Code:
    return hash_codes(builder, operands)
