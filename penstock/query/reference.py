"""What is made from the declarations: the reference's tables, and what editors and mypy see of the words."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from penstock.query.aggregates import AGGREGATES
from penstock.query.functions import FUNCTIONS
from penstock.query.functions.function import Function
from penstock.query.steps.spec import STEPS, PartialStep
from penstock.query.windows import WINDOWS
from penstock.query.word import Word, load, meaning

_HEADER = '''\
"""The functions of the language as methods of expressions. Made by ``make reference``; do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.query.durations import Duration
    from penstock.query.expr import Expr, Operand


def _call(name: str, *arguments: Any) -> Expr:
    from penstock.query.functions.calls import call  # which builds on expressions

    return call(name, *arguments)


class Methods:
    """What can be written behind an expression, besides operators."""
'''


_HEAD = '''\
"""{what}, each in a file of its own. Made by ``make reference``; do not edit."""

from __future__ import annotations

{imports}
'''
_FACE = f"""\
{_HEAD}
__all__ = [
{{names}}
]
"""

#: Rooms whose words are written as plain functions, and the names that else come from there.
_FACES = {
    "aggregates": ("aggregate", ("AGGREGATES", "Aggregate", "AggregateFunction")),
    "windows": ("window", ("WINDOWS", "Window")),
}
#: Rooms of functions, and what is in them.
_ROOMS = {
    "choices": "Functions choosing between values",
    "numbers": "Functions of numbers",
    "texts": "Functions of strings",
    "times": "Functions of timestamps",
}
PAGES = (Path("docs/expressions.md"), Path("docs/guide.md"))


def main() -> None:
    """Writes all of it anew, below the current folder."""
    for path, text in modules().items():
        path.write_text(text)
    for page in PAGES:
        page.write_text(with_tables(page.read_text()))


def modules() -> dict[Path, str]:
    """The text of each module that is made."""
    made = {Path(f"penstock/query/{room}/__init__.py"): face(room) for room in _FACES}
    for room, what in _ROOMS.items():
        folder = f"penstock.query.functions.{room}"
        made[Path(f"penstock/query/functions/{room}/__init__.py")] = _room(folder, what, FUNCTIONS)
    steps = _room("penstock.query.steps", "The steps of the language", STEPS)
    made[Path("penstock/query/steps/__init__.py")] = steps
    return {Path("penstock/query/expr_methods.py"): methods(), **made}


def with_tables(page: str) -> str:
    """A page with the tables that it has a place for: ``<!-- room -->`` to ``<!-- end -->``."""
    for room, table in tables().items():
        before, begin, rest = page.partition(f"<!-- {room} -->")
        _, end, after = rest.partition("<!-- end -->")
        if begin:
            page = f"{before}{begin}\n\n{table}\n\n{end}{after}"
    return page


def tables() -> dict[str, str]:
    """By room, a Markdown table of its words."""
    rooms: dict[str, list[type[Function]]] = {}
    for kind in FUNCTIONS.values():
        rooms.setdefault(kind.__module__.split(".")[-2], []).append(kind)
    result = {}
    for room, kinds in rooms.items():
        listed = sorted(kinds, key=lambda kind: kind.name)
        result[room] = _table("function", [(_signature(kind), meaning(kind)) for kind in listed])
    for room in _FACES:
        written = [(_written_as(function), meaning(function)) for function in functions_of(room).values()]
        result[room] = _table(room.removesuffix("s"), written)
    result["steps"] = _steps()
    return result


def _steps() -> str:
    """The steps that users write, by the names that they have in ``explain`` and metrics."""
    kinds = sorted(
        (kind for kind in STEPS.values() if not issubclass(kind, PartialStep)), key=lambda k: k.name
    )
    lines = ["| step | meaning | inputs | late events |", "|---|---|---|---|"]
    for kind in kinds:
        what = " ".join(inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].split())
        inputs = "any" if kind.inputs is None else str(kind.inputs)
        late = "left out, on an output of their own" if kind.timed else "as others"
        lines.append(f"| `{kind.name}` | {_shown(what)} | {inputs} | {late} |")
    return "\n".join(lines)


def _shown(text: str) -> str:
    """A docstring as Markdown shows it in a table."""
    text = re.sub(r":class:`([^`]+)`", r"``\1``", text)
    return text.replace("``", "`").replace("|", "\\|")


def _room(home: str, what: str, words: Mapping[str, type[Word]]) -> str:
    load(import_module(home))
    homes = sorted((kind.__module__, kind.__name__) for kind in words.values())
    lines = [f"from {module} import {name} as {name}" for module, name in homes if module.startswith(home)]
    return _HEAD.format(what=what, imports="\n".join(lines))


def functions_of(room: str) -> dict[str, Callable[..., Any]]:
    """The functions that write the words of a room, by name."""
    folder = import_module(f"penstock.query.{room}")
    made = {}
    for module in iter_modules(folder.__path__, f"{folder.__name__}."):
        if module.name.rpartition(".")[2] in (_FACES[room][0], "clock"):
            continue
        for name, value in vars(import_module(module.name)).items():
            if inspect.isfunction(value) and value.__module__ == module.name and not name.startswith("_"):
                made[name] = value
    return dict(sorted(made.items()))


def face(room: str) -> str:
    """The text of a room's ``__init__``: classes by their names, functions with a star."""
    base, more = _FACES[room]
    functions = functions_of(room)
    home = f"penstock.query.{room}"
    words = {**AGGREGATES, **WINDOWS}.values()
    classes = {(kind.__module__, kind.__name__) for kind in words if kind.__module__.startswith(home)}
    classes |= {(f"{home}.{base}", name) for name in more}
    bare: dict[str, list[str]] = {}
    for name, function in functions.items():
        bare.setdefault(function.__module__, []).append(name)
    lines = []
    for module in sorted({*bare, *(module for module, _ in classes)}):
        own = sorted(name for place, name in classes if place == module)
        lines += [f"from {module} import {name} as {name}" for name in own]
        lines += [f"from {module} import {', '.join(bare[module])}"] if module in bare else []
    names = "\n".join(f'    "{name}",' for name in functions)
    return _FACE.format(what=f"The {room} of the language", imports="\n".join(lines), names=names)


def methods() -> str:
    """The text of ``expr_methods.py``."""
    kinds = sorted((kind for kind in FUNCTIONS.values() if kind.method), key=lambda kind: kind.name)
    return _HEADER + "".join(map(_method, kinds))


def _table(what: str, rows: list[tuple[str, str]]) -> str:
    lines = [f"| {what} | meaning |", "|---|---|"]
    for signature, text in rows:
        lines.append(f"| `{signature}` | {_shown(text)} |")
    return "\n".join(lines)


def _written_as(function: Callable[..., Any]) -> str:
    """A plain function with the names of its parameters, and their defaults."""
    told, named = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not named:
            named = True
            told.append("*")
        is_bare = parameter.default is parameter.empty
        told.append(parameter.name if is_bare else f"{parameter.name}={_written(parameter.default)}")
    return f"{function.__name__}({', '.join(told)})"


def _signature(kind: type[Function]) -> str:
    constants = [
        field.name if field.default is MISSING else f"{field.name}={_written(field.default)}"
        for field in _fields(kind)
    ]
    if not kind.method:
        return f"{kind.name}({', '.join([*kind.operands, *constants])})"
    first, *others = kind.operands
    return f"{first}.{kind.name}({', '.join([*others, *constants])})"


def _method(kind: type[Function]) -> str:
    others = kind.operands[1:]
    parameters = [f"{name}: Operand" for name in others]
    for field in _fields(kind):
        default = "" if field.default is MISSING else f" = {_written(field.default)}"
        parameters.append(f"{field.name}: {field.type}{default}")
    names = "".join(f", {name}" for name in [*others, *(field.name for field in _fields(kind))])
    text = inspect.cleandoc(kind.__doc__ or "").replace("\n", "\n        ")
    quotes = 'r"""' if "\\" in text else '"""'
    return (
        f"\n    def {kind.name}({', '.join(['self', *parameters])}) -> Expr:\n"
        f'        {quotes}{text}"""\n'
        f'        return _call("{kind.name}", self{names})\n'
    )


def _written(constant: Any) -> str:
    """As the formatter writes it."""
    return json.dumps(constant) if isinstance(constant, str) else repr(constant)


def _fields(kind: type[Function]) -> tuple[Any, ...]:
    return fields(kind)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
