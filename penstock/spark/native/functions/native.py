"""Which native form each function has: registered by its class, or the reason why it has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pyspark.sql import Column

from penstock.query.functions import FUNCTIONS, Function
from penstock.query.types import DataType
from penstock.query.word import check_declared

#: Is given the function, its operands with their types, and the type of the result.
Form = Callable[[Any, list[Column], list[DataType], DataType], Column]

_FORMS: dict[type[Function], Form] = {}
_COPIES: dict[type[Function], int] = {}
_REASONS: dict[type[Function], str] = {}
_Any = TypeVar("_Any", bound=Form)


def native(*kinds: type[Function], copies: int = 1) -> Callable[[_Any], _Any]:
    """Registers the native form of these functions; ``copies`` is how often it names an operand at most."""

    def register(form: _Any) -> _Any:
        for kind in kinds:
            _FORMS[kind], _COPIES[kind] = form, copies
        return form

    return register


def python_only(reason: str, *kinds: type[Function]) -> None:
    """Says why functions have no native form: Spark's own would give other values."""
    _REASONS.update((kind, reason) for kind in kinds)


def native_call(function: Function, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    """The call as a column. The function must have a native form."""
    return _FORMS[type(function)](function, columns, types, result)


def copies_of(function: Function) -> int:
    """How often the native form names an operand at most."""
    return _COPIES.get(type(function), 1)


def not_native(kind: type[Function]) -> str | None:
    """Why a function has no native form; None if it has one."""
    return _REASONS.get(kind)


def check_all() -> None:
    """Raises where a function that is declared has neither a native form nor a reason, or both."""
    wrong = [name for name, kind in FUNCTIONS.items() if (kind in _FORMS) == (kind in _REASONS)]
    if wrong:
        raise TypeError(
            f"on Spark {', '.join(wrong)} must have a native form or a reason why not: "
            "register one with @native or python_only"
        )
    check_declared((*_FORMS, *_REASONS), "for Spark there is")
