"""An address as a pointer, in compiled code: so that an array need not be handed over as a Python object."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_compiled: Any = intrinsic  # what it decorates is called with one argument less than it has


@_compiled  # type: ignore[untyped-decorator]
def pointer(typing: Any, address: Any) -> Any:
    """What ``numba.carray`` makes an array of. Whoever uses it keeps the memory alive."""

    def generate(compiler: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate
