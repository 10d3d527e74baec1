"""The rounding down of a number."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.numbers.number_function import NumberFunction
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class Floor(NumberFunction):
    """The largest int64 not above; beyond its range the nearest int64, and NaN gives 0."""

    name = "floor"
    gives = DataType.INT64
