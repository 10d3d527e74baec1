"""The rounding to the nearest of a number."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.numbers.number_function import NumberFunction


@declared
@dataclass(frozen=True)
class Round(NumberFunction):
    """The nearest whole number, halves away from zero; keeps the type."""

    name = "round"
