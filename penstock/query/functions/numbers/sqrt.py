"""The square root of a number."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.numbers.number_function import NumberFunction
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class Sqrt(NumberFunction):
    """The square root as float64; NaN of a negative number."""

    name = "sqrt"
    gives = DataType.FLOAT64
