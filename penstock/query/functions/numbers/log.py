"""The natural logarithm of a number."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.numbers.number_function import NumberFunction
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class Log(NumberFunction):
    """The natural logarithm as float64; minus infinity of 0, NaN of a negative number."""

    name = "log"
    gives = DataType.FLOAT64
