"""The power of a number."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.numbers.number_function import NumberFunction
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class Pow(NumberFunction):
    """x to the power of y as float64; NaN where x is negative and y has a fraction."""

    name = "pow"
    operands = ("x", "y")
    gives = DataType.FLOAT64
