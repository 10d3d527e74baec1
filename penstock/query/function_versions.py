"""By what a step's function is known again in the next run: a version that its user gave it, and its code."""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any

from penstock.query.errors import QueryError
from penstock.query.steps.spec import Spec, Version

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))


def checked_version(version: Version) -> Version:
    """A version as a user may give it."""
    if version is None or type(version) in (int, str):
        return version
    raise QueryError(
        "a version is a number or a text", detail=f"got {version!r}", hint="write e.g. version=2"
    )


def described(spec: Spec) -> dict[str, str] | None:
    """What is kept of a step's functions: their code, and the version if there is one; None: it has none."""
    functions = spec.functions()
    if not functions:
        return None
    codes = "".join(code_digest(function) for function in functions)
    version = getattr(getattr(spec, "spec", spec), "function_version", None)
    return {
        "code": _digest(codes),
        "python": _PYTHON,
        **({} if version is None else {"version": str(version)}),
    }


def is_changed(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether a function has changed without its user saying so.

    Whoever gives a version says by it whether the function is the same; and the code of another Python
    cannot be compared.
    """
    if "version" in now or before.get("python") != now.get("python"):
        return False
    return before.get("code") != now.get("code")


def code_digest(function: Any) -> str:
    """A text that changes when a function does something else: with its instructions, constants, defaults,
    what it encloses, and functions and constants of its module that it names. Line numbers, comments and the
    docstring do not count.

    >>> code_digest(lambda event: [event]) == code_digest(lambda event: [event])
    True
    >>> code_digest(lambda event: [event]) == code_digest(lambda event: [event, event])
    False
    """
    module = getattr(function, "__module__", None) or ""
    return _digest(repr(_said(function, _Seen(module.partition(".")[0]))))


_HAS_DOCSTRING = 0x4000000  # inspect has no name for it before 3.13
_PYTHON = f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class _Seen:
    """What one function has said already, and the package that it is of."""

    def __init__(self, home: str) -> None:
        self._home = home
        self.ids: set[int] = set()  # of objects that live as long as the function

    def is_library(self, kind: type) -> bool:
        """Whether a class is none of the user's: its code changes with a library, not with the app."""
        root = kind.__module__.partition(".")[0]
        if root == self._home or root == "__main__":
            return False
        file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
        return root in ("penstock", *sys.stdlib_module_names) or "site-packages" in file


def _said(value: Any, seen: _Seen) -> Any:
    """All that a value says, as something whose ``repr`` is the same in every run."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, tuple | list):
        return (type(value).__name__, *(_said(item, seen) for item in value))
    if isinstance(value, set | frozenset):
        return (type(value).__name__, *sorted(repr(_said(item, seen)) for item in value))
    if isinstance(value, dict):
        return ("dict", *((_said(key, seen), _said(item, seen)) for key, item in value.items()))
    if id(value) in seen.ids:  # it calls itself, or stands in two places
        return "again"
    seen.ids.add(id(value))
    value = getattr(value, "py_func", value)  # a compiled function is its source
    if isinstance(value, CodeType):
        return (value.co_code, _said(_constants(value), seen), value.co_names, value.co_exceptiontable)
    if isinstance(value, FunctionType):
        return _function(value, seen)
    if isinstance(value, MethodType):
        return (_said(value.__func__, seen), _said(value.__self__, seen))
    if isinstance(value, functools.partial):
        return ("partial", _said(value.func, seen), _said(value.args, seen), _said(value.keywords, seen))
    if isinstance(value, type):
        return _class(value, seen)
    kind = type(value)
    if seen.is_library(kind):  # what it holds is its own affair
        return kind.__qualname__
    return (_class(kind, seen), _said(getattr(value, "__dict__", {}), seen))


def _function(function: FunctionType, seen: _Seen) -> Any:
    enclosed = [_cell(cell, seen) for cell in function.__closure__ or ()]
    named = [
        (name, _said(value, seen))
        for name in _names(function.__code__)
        if (value := function.__globals__.get(name)) is not None and _counts(value, function.__module__)
    ]
    defaults = (function.__defaults__, function.__kwdefaults__)
    return (_said(function.__code__, seen), _said(defaults, seen), enclosed, named)


def _class(kind: type, seen: _Seen) -> Any:
    parts = []
    for one in kind.__mro__:
        if seen.is_library(one):
            continue
        for name, value in sorted(vars(one).items()):
            value = getattr(value, "__func__", getattr(value, "fget", value))
            if isinstance(value, FunctionType) or (isinstance(value, _PLAIN) and not name.startswith("__")):
                parts.append((name, _said(value, seen)))
    return (kind.__qualname__, *parts)


def _counts(value: Any, module: str) -> bool:
    """Whether a global name is part of a function: constants, and functions and classes of its own module."""
    if isinstance(value, FunctionType | type):
        return value.__module__ == module
    return isinstance(value, _PLAIN)


def _names(code: CodeType) -> list[str]:
    """The names that a function and those inside it look up."""
    names = set(code.co_names)
    for one in code.co_consts:
        if isinstance(one, CodeType):
            names.update(_names(one))
    return sorted(names)


def _cell(cell: Any, seen: _Seen) -> Any:
    try:
        return _said(cell.cell_contents, seen)
    except ValueError:  # it is filled later
        return "empty"


def _constants(code: CodeType) -> tuple[Any, ...]:
    """The constants without the docstring, which stands first."""
    has_docstring = code.co_flags & _HAS_DOCSTRING or sys.version_info < (3, 13)
    if has_docstring and code.co_consts and isinstance(code.co_consts[0], str):
        return (None, *code.co_consts[1:])
    return code.co_consts
