"""Which code computes which function: emitters are registered by the function's class, or one it extends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.kernels.code import Code, settled
from penstock.query.expr import Call
from penstock.query.functions import FUNCTIONS, Function
from penstock.query.types import DataType
from penstock.query.word import check_declared

if TYPE_CHECKING:
    from penstock.kernels.builder import KernelBuilder

#: Is given the function, its operands and the type of the result.
Emitter = Callable[["KernelBuilder", Any, list[Code], DataType], Code]

_EMITTERS: dict[type[Function], Emitter] = {}
_Any = TypeVar("_Any", bound=Emitter)


def emits(*kinds: type[Any]) -> Callable[[_Any], _Any]:
    """Registers what emits these functions, and those that extend them and have no emitter of their own."""

    def register(emitter: _Any) -> _Any:
        _EMITTERS.update((kind, emitter) for kind in kinds)
        return emitter

    return register


def emit_call(builder: KernelBuilder, expr: Call) -> Code:
    """Appends the statements that compute a call."""
    codes = [builder.emit(operand) for operand in expr.operands]
    return _emitter(type(expr.function))(builder, expr.function, codes, settled(builder.infer(expr)))


def check_all() -> None:
    """Raises where a function that is declared has no kernel, or one that has a kernel is not declared."""
    without = [name for name, kind in FUNCTIONS.items() if _found(kind) is None]
    if without:
        raise TypeError(f"no kernel computes {', '.join(without)}: register one with @emits")
    check_declared(_EMITTERS, "a kernel computes")


def _emitter(kind: type[Function]) -> Emitter:
    emitter = _found(kind)
    assert emitter is not None  # check_all has looked
    return emitter


def _found(kind: type[Function]) -> Emitter | None:
    ancestry: Sequence[type] = kind.__mro__
    return next((_EMITTERS[one] for one in ancestry if one in _EMITTERS), None)
