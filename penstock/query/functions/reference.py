"""What is made from the declarations: the reference's tables, and the methods that editors and mypy see."""

from __future__ import annotations

import inspect
import json
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from penstock.query.functions import FUNCTIONS
from penstock.query.functions.function import Function, meaning

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


_METHODS = Path("penstock/query/expr_methods.py")
_PAGE = Path("docs/expressions.md")


def main() -> None:
    """Writes both anew, below the current folder."""
    _METHODS.write_text(methods())
    page = _PAGE.read_text()
    for room, table in tables().items():
        before, begin, rest = page.partition(f"<!-- {room} -->")
        _, end, after = rest.partition("<!-- end -->")
        page = f"{before}{begin}\n\n{table}\n\n{end}{after}"
    _PAGE.write_text(page)


def tables() -> dict[str, str]:
    """By room, a Markdown table of its functions."""
    rooms: dict[str, list[type[Function]]] = {}
    for kind in FUNCTIONS.values():
        rooms.setdefault(kind.__module__.split(".")[-2], []).append(kind)
    return {room: _table(sorted(kinds, key=lambda kind: kind.name)) for room, kinds in sorted(rooms.items())}


def methods() -> str:
    """The text of ``expr_methods.py``."""
    kinds = sorted((kind for kind in FUNCTIONS.values() if kind.method), key=lambda kind: kind.name)
    return _HEADER + "".join(map(_method, kinds))


def _table(kinds: list[type[Function]]) -> str:
    lines = ["| function | meaning |", "|---|---|"]
    for kind in kinds:
        lines.append(
            f"| `{_signature(kind)}` | {meaning(kind).replace('``', '`').replace('|', chr(92) + '|')} |"
        )
    return "\n".join(lines)


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
