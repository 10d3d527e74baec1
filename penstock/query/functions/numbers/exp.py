"""The exponential of a number."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.numbers.number_function import NumberFunction
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class Exp(NumberFunction):
    """e to the power of x, as float64."""

    name = "exp"
    gives = DataType.FLOAT64
