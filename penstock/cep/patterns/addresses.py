"""Compiled conditions by address: so that one compiled machine can call the conditions of any pattern.

A condition's function is int64(event, row, node, context): ``context`` is the address of an array of
addresses, first that of the bindings, then those of the columns, the constants and the tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic

from penstock.compiled.fixed import part
from penstock.kernels.pointers import pointer

#: The signature of a condition's function.
CONDITION = types.int64(types.int64, types.int64, types.int64, types.int64)

_compiled: Any = intrinsic  # what it decorates is called with one argument less than it has

_ENOUGH = 1 << 40  # a length that no index reaches: kernels check no bounds


@_compiled  # type: ignore[untyped-decorator]
def call_condition(typing: Any, function: Any, event: Any, row: Any, node: Any, context: Any) -> Any:
    """Calls the function at an address."""
    signature = types.int64(types.int64, types.int64, types.int64, types.int64, types.int64)

    def generate(compiler: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        kind = ir.FunctionType(word, [word] * 4)
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])

    return signature, generate


@part(error_model="numpy")
def at_int64(address: Any) -> Any:
    """The array of int64 at an address; its length is not known."""
    return carray(pointer(address), (_ENOUGH,), np.int64)


@part(error_model="numpy")
def at_int32(address: Any) -> Any:
    return carray(pointer(address), (_ENOUGH,), np.int32)


@part(error_model="numpy")
def at_float64(address: Any) -> Any:
    return carray(pointer(address), (_ENOUGH,), np.float64)


@part(error_model="numpy")
def at_float32(address: Any) -> Any:
    return carray(pointer(address), (_ENOUGH,), np.float32)


@part(error_model="numpy")
def at_bool(address: Any) -> Any:
    return carray(pointer(address), (_ENOUGH,), np.bool_)


@part(error_model="numpy")
def at_uint8(address: Any) -> Any:
    return carray(pointer(address), (_ENOUGH,), np.uint8)


@part(error_model="numpy")
def matrix_at(address: Any) -> Any:
    """The bindings at an address."""
    return carray(pointer(address), (_ENOUGH, 4), np.int64)
