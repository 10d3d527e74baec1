"""What a function of the expression language must say of itself before it exists."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from penstock.query.expr import Expr
    from penstock.query.inference import Typed

#: All that are declared, by the name that queries, explain and checkpoints use.
FUNCTIONS: dict[str, type[Function]] = {}


class Function(ABC):
    """One function; an instance is the function with its constants, which are the fields of the dataclass.

    A subclass is a frozen dataclass with ``@declared`` on top. Its docstring is its line in the reference.
    What kernels and Spark make of it is registered there, by its class; each fails at import for a function
    that it does not know.
    """

    name: ClassVar[str]
    #: The operands in order; a last one that begins with ``*`` stands for one or more.
    operands: ClassVar[tuple[str, ...]]
    #: Whether a null operand gives null, whatever the others are.
    strict: ClassVar[bool]
    #: Whether it can be written behind its first operand: ``x.name(...)``.
    method: ClassVar[bool] = True

    @abstractmethod
    def result(self, call: Expr, operands: tuple[Typed, ...]) -> Typed:
        """The type of the call; raises ``QueryError`` where the operands do not fit."""

    def constants(self) -> tuple[str, ...]:
        """The constants as people read them."""
        return tuple(repr(getattr(self, field.name)) for field in fields(self))  # type: ignore[arg-type]

    def key(self) -> tuple[Any, ...]:
        """What it is, as a value that can be compared and hashed."""
        values = (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        return (self.name, *((type(value).__name__, repr(value)) for value in values))


_Kind = TypeVar("_Kind", bound=type[Function])


def declared(kind: _Kind) -> _Kind:
    """Makes a function part of the language; a ``TypeError`` names what it does not say."""
    missing = [name for name in ("name", "operands", "strict") if not hasattr(kind, name)]
    missing += sorted(getattr(kind, "__abstractmethods__", ()))
    text = kind.__dict__.get("__doc__") or ""
    if not text or text.startswith(f"{kind.__name__}("):  # a dataclass makes one up
        missing.append("a docstring")
    parameters: Any = getattr(kind, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        missing.append("@dataclass(frozen=True)")
    if missing:
        raise TypeError(f"function {kind.__name__} does not say all of itself: {', '.join(missing)} missing")
    if kind.name in FUNCTIONS:
        raise TypeError(f"function {kind.__name__} takes the name '{kind.name}', which is taken already")
    FUNCTIONS[kind.name] = kind
    return kind


def meaning(kind: type[Function]) -> str:
    """What it does, in the words of the reference."""
    return " ".join(inspect.cleandoc(kind.__doc__ or "").split())
