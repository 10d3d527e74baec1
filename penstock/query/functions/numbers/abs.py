"""The absolute value of a number."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.numbers.number_function import NumberFunction


@declared
@dataclass(frozen=True)
class Abs(NumberFunction):
    """Without its sign; keeps the type, and the smallest integer stays what it is."""

    name = "abs"
