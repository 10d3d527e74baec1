"""What functions of one string have in common: they are computed once per distinct string, in Python."""

from __future__ import annotations

import re
from abc import abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from penstock.query.errors import QueryError
from penstock.query.functions.function import Function
from penstock.query.inference import Typed, misfit
from penstock.query.types import DataType

if TYPE_CHECKING:
    from penstock.query.expr import Expr


class TextFunction(Function):
    """A function of one string and constants. Null of null, and, if it is ``partial``, of other strings."""

    operands = ("text",)
    strict = True
    tabulated = True
    gives: ClassVar[DataType]
    partial: ClassVar[bool] = False

    @abstractmethod
    def of(self, text: str) -> str | int | bool | None:
        """Its value for a string."""

    def result(self, call: Expr, operands: tuple[Typed, ...]) -> Typed:
        (operand,) = operands
        if operand.dtype is not DataType.STRING:
            raise misfit(call, f"{self.name} needs a string", operand)
        return Typed(self.gives, operand.nullable or self.partial)


def check_text(function: str, constant: str, value: object, example: str, *, empty: bool = True) -> None:
    """Raises unless a constant is a string, and not an empty one where that has no meaning."""
    if not isinstance(value, str) or not (value or empty):
        raise QueryError(
            f"{function} needs a constant string as {constant}",
            detail=f"got {value!r}",
            hint=f"write e.g. {example}",
        )


def check_count(function: str, constant: str, value: object, least: int, example: str) -> None:
    """Raises unless a constant is an integer that is large enough."""
    if type(value) is not int or value < least:
        raise QueryError(
            f"{function} needs an integer of at least {least} as {constant}",
            detail=f"got {value!r}",
            hint=f"write e.g. {example}",
        )


@lru_cache(256)
def compiled(pattern: str, function: str = "regexp") -> re.Pattern[str]:
    """A regular expression; what is wrong with it is a ``QueryError``."""
    check_text(function, "pattern", pattern, "r'[0-9]+'")
    try:
        return re.compile(pattern)
    except re.error as error:
        raise QueryError(
            f"{function} got no regular expression",
            detail=f"{pattern!r}: {error}",
            hint="patterns are those of Python's re module; write r'\\.' for a dot",
        ) from None
