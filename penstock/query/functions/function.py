"""What a function of the expression language must say of itself before it exists."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from penstock.query.word import Word, declared, meaning

if TYPE_CHECKING:
    from penstock.query.expr import Expr
    from penstock.query.inference import Typed

__all__ = ["FUNCTIONS", "Function", "declared", "meaning"]

#: All that are declared, by name.
FUNCTIONS: dict[str, type[Function]] = {}


class Function(Word):
    """One function; an instance is the function with its constants.

    What kernels and Spark make of it is registered there, by its class; each fails at import for a function
    that it does not know.
    """

    word = "function"
    words = FUNCTIONS
    answers = ("name", "operands", "strict")

    #: The operands in order; a last one that begins with ``*`` stands for one or more.
    operands: ClassVar[tuple[str, ...]]
    #: Whether a null operand gives null, whatever the others are.
    strict: ClassVar[bool]
    #: Whether it reads strings by tables of those that are known before a kernel runs: not one made there.
    tabulated: ClassVar[bool] = False
    #: Whether it makes strings while a kernel runs.
    makes_text: ClassVar[bool] = False
    #: Whether it can be written behind its first operand: ``x.name(...)``.
    method: ClassVar[bool] = True

    @abstractmethod
    def result(self, call: Expr, operands: tuple[Typed, ...]) -> Typed:
        """The type of the call; raises ``QueryError`` where the operands do not fit."""
