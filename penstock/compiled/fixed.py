"""Functions whose types are fixed: machine code from the package or the cache, or compiled at the first call.

Numba's own way would compile them when their module is imported, whoever needs them, and keep them beside the
source, where it does not notice when a function that they call has changed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

from numba.extending import register_jitable

from penstock.compiled import cache
from penstock.compiled.timing import KernelTimer

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Fixed:
    """A function that becomes machine code when it is first called.

    After that its module has the machine code under the function's name: whoever reads the name from there,
    as in ``machine.exchange(...)``, calls it directly. Arguments are not checked: arrays must have the very
    types of the signature.
    """

    def __init__(self, function: Callable[..., Any], signature: Any, options: dict[str, Any]) -> None:
        self.function, self.signature, self._options = function, signature, options
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._kernel: cache.Kernel | None = None
        ALL.append(self)

    def __call__(self, *arguments: Any) -> Any:
        return self.kernel()(*arguments)

    def kernel(self) -> cache.Kernel:
        """The machine code."""
        if self._kernel is None:
            self._kernel = cache.compile_fixed(self.function, self.signature, self._options)
            setattr(sys.modules[self.function.__module__], self.__name__, self._kernel)
        return self._kernel


#: All that the modules imported so far have declared.
ALL: list[Fixed] = []


def fixed(signature: Any, **options: Any) -> Callable[[_Function], _Function]:
    """Declares a function that Python calls with arguments of these types only.

    ``options`` are Numba's. It holds no interpreter lock while it runs.
    """

    def declare(function: _Function) -> _Function:
        declared: Any = Fixed(function, signature, options)
        return declared  # type: ignore[no-any-return]

    return declare


def part(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Declares a function that compiled code calls; Python may, too, and then interprets it.

    Its machine code has no entry for Python. To compile one would take longer than the function itself where
    that is handed arrays.
    """
    declare: Any = register_jitable(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
    return declare  # type: ignore[no-any-return]


def kernel_of(declared: Callable[..., Any]) -> cache.Kernel:
    """The machine code of a function declared with ``fixed``, at once: for what will be needed anyway."""
    return KernelTimer.wrap(declared.kernel() if isinstance(declared, Fixed) else declared)
