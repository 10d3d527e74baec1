"""What functions, aggregates and windows have in common: a word of the language says all of itself."""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import Iterable
from dataclasses import fields
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, ClassVar, TypeVar


class Word(ABC):
    """One word with its constants, which are the fields of the dataclass.

    A subclass is a frozen dataclass with ``@declared`` on top. Its docstring is its line in the reference.
    """

    #: What kind of word it is, and all words of that kind by name.
    word: ClassVar[str]
    words: ClassVar[dict[str, Any]]
    #: What a subclass has to say besides its abstract methods.
    answers: ClassVar[tuple[str, ...]] = ("name",)

    #: The one word in queries, explain, metrics and checkpoints.
    name: ClassVar[str]
    #: Counts up when it comes to mean something else to state that was kept before.
    version: ClassVar[int] = 1

    def constants(self) -> tuple[str, ...]:
        """The constants as people read them."""
        return tuple(repr(value) for value in self._values())

    def text(self) -> str:
        """The word as people read it."""
        return f"{self.name}({', '.join(self.constants())})"

    def said(self) -> tuple[Any, ...]:
        """What it means to a checkpoint: plain values, the same in every run. Not to be reworded."""
        return (self.name, self.version, *self._values())

    def key(self) -> tuple[Any, ...]:
        """What it is, as a value that can be compared and hashed."""
        return (self.name, self.version, *((type(value).__name__, repr(value)) for value in self._values()))

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, one.name) for one in fields(self))  # type: ignore[arg-type]


_Kind = TypeVar("_Kind", bound=type[Word])


def complete(kind: _Kind) -> _Kind:
    """Checks that a word says all of itself; a ``TypeError`` names what it does not say."""
    missing = [name for name in kind.answers if not hasattr(kind, name)]
    missing += sorted(getattr(kind, "__abstractmethods__", ()))
    text = kind.__dict__.get("__doc__") or ""
    if not text or text.startswith(f"{kind.__name__}("):  # a dataclass makes one up
        missing.append("a docstring")
    parameters: Any = getattr(kind, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        missing.append("@dataclass(frozen=True)")
    if missing:
        raise TypeError(
            f"{kind.word} {kind.__name__} does not say all of itself: {', '.join(missing)} missing"
        )
    return kind


def declared(kind: _Kind) -> _Kind:
    """Makes a word part of the language, once it is complete and its name is free."""
    complete(kind)
    if kind.name in kind.words:
        raise TypeError(f"{kind.word} {kind.__name__} takes the name '{kind.name}', which is taken already")
    kind.words[kind.name] = kind
    return kind


def check_declared(kinds: Iterable[type[Word]], registered: str) -> None:
    """Raises where something is registered for a word that is not declared, nor the family of one that is."""
    for kind in kinds:
        if not any(issubclass(word, kind) for word in kind.words.values()):
            raise TypeError(f"{registered} {kind.__name__}, which is not declared: put @declared on it")


def load(room: ModuleType) -> None:
    """Imports all modules of a package and its rooms, so that whatever registers itself has done so."""
    for module in iter_modules(room.__path__, f"{room.__name__}."):
        imported = import_module(module.name)
        if module.ispkg:
            load(imported)


def meaning(kind: Any) -> str:
    """What a word or a function that writes it does, in the words of the reference."""
    return " ".join(inspect.cleandoc(kind.__doc__ or "").split())
