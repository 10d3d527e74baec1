"""The least of several values."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.choices.extreme import Extreme
from penstock.query.functions.function import declared


@declared
@dataclass(frozen=True)
class Least(Extreme):
    """The smallest of several values of one event; nulls are passed over, NaN is the greatest."""

    name = "least"
