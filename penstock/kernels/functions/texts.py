"""How functions of strings are written in a kernel: as tables by code, computed once per distinct string."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.kernels.code import Code
from penstock.kernels.functions.emitters import emits
from penstock.kernels.texts import made
from penstock.query.functions.texts import Concat
from penstock.query.functions.texts.text_function import TextFunction
from penstock.query.types import DataType

if TYPE_CHECKING:
    from penstock.kernels.builder import KernelBuilder


@emits(TextFunction)
def tabulated(builder: KernelBuilder, function: TextFunction, operands: list[Code], result: DataType) -> Code:
    (text,) = operands
    strings, parameters = builder.strings, builder.parameters
    # A function without constants has one table in a kernel, however often it is called.
    shared = None if function.constants() else function.name

    def value(word: str) -> Any:
        found = function.of(word)
        if found is None:
            return 0
        return strings.code(str(found)) if result is DataType.STRING else found

    place = parameters.add_string_table(value, result, shared_as=shared)
    null = text.null
    if function.partial:
        misfits = parameters.add_string_table(
            lambda word: function.of(word) is None,
            DataType.BOOL,
            shared_as=None if shared is None else f"misfit of {shared}",
        )
        misfit = f"{builder.table(misfits)}[uint64({text.value})]"
        null = builder.assign(misfit if null is None else f"{null} | {misfit}")
    return Code(builder.assign(f"{builder.table(place)}[uint64({text.value})]"), null, result)


@emits(Concat)
def joined(builder: KernelBuilder, function: Concat, operands: list[Code], result: DataType) -> Code:
    return made(builder, function.of, operands)
