"""The sign of a number."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.numbers.number_function import NumberFunction


@declared
@dataclass(frozen=True)
class Sign(NumberFunction):
    """-1, 0 or 1 in the type of x; NaN gives NaN."""

    name = "sign"
