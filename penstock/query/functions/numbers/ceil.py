"""The rounding up of a number."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.numbers.number_function import NumberFunction
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class Ceil(NumberFunction):
    """The smallest int64 not below; beyond its range the nearest int64, and NaN gives 0."""

    name = "ceil"
    gives = DataType.INT64
