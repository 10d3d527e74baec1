"""A function by its name, called with operands and constants."""

from __future__ import annotations

from typing import Any

from penstock.query.expr import Call, Operand, as_expr
from penstock.query.functions import FUNCTIONS


def call(name: str, *arguments: Operand, **constants: Any) -> Call:
    """``name`` over its operands, which come first; what follows are its constants.

    >>> from penstock.query.expr import col
    >>> call("starts_with", col("word"), "ab")
    starts_with(word, 'ab')
    """
    kind = FUNCTIONS[name]
    count = len(arguments) if kind.operands[-1].startswith("*") else len(kind.operands)
    operands = tuple(as_expr(argument) for argument in arguments[:count])
    return Call(kind(*arguments[count:], **constants), operands)
