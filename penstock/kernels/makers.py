"""Strings that a kernel makes: Python is called for the text, and gives back its code.

Functions of one string are tables by code and cost nothing per event. What makes strings of numbers, times or
several strings cannot be tabulated: that is a call of Python per event, about a microsecond.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from penstock.memory.strings import StringPool

_cgutils: Any = cgutils
_compiled: Any = intrinsic  # what it decorates is called with one argument less than it has


@_compiled  # type: ignore[untyped-decorator]
def make_text(typing: Any, address: Any, words: Any) -> Any:
    """The code that the maker at ``address`` gives for a tuple of int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, words = arguments
        values = _cgutils.unpack_tuple(builder, words)
        word = ir.IntType(64)
        function = ir.FunctionType(word, [word] * len(values))
        return builder.call(builder.inttoptr(address, function.as_pointer()), values)

    return types.int64(types.int64, words), generate


class Maker:
    """A function of int64 words that gives a text, to be called by compiled code, which holds no lock.

    What is raised there cannot pass through compiled code: ``check`` raises it. A Ctrl-C is kept until then.
    """

    def __init__(self, strings: StringPool, function: Callable[..., str], words: int) -> None:
        self._strings, self._function = strings, function
        self._raised: BaseException | None = None
        self._callback = ctypes.CFUNCTYPE(ctypes.c_int64, *(ctypes.c_int64,) * words)(self._code)

    @property
    def address(self) -> int:
        """Valid as long as the maker is there."""
        return int(ctypes.cast(self._callback, ctypes.c_void_p).value or 0)

    def check(self) -> None:
        """Raises what the function has raised since the last call."""
        if self._raised is not None:
            raised, self._raised = self._raised, None
            raise raised

    def _code(self, *words: int) -> int:
        while True:
            try:
                return self._strings.code(self._function(*words))
            except KeyboardInterrupt as interrupt:  # the text is needed all the same
                self._raised = interrupt
            except BaseException as error:
                self._raised = error
                return 0
