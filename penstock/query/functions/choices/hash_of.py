"""A hash of several values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.query.functions.function import Function, declared
from penstock.query.inference import Typed
from penstock.query.types import DataType

if TYPE_CHECKING:
    from penstock.query.expr import Expr


@declared
@dataclass(frozen=True)
class HashOf(Function):
    """A 64-bit hash, equal to Spark's ``xxhash64`` of the same columns with seed 42; never null."""

    name = "hash_of"
    tabulated = True
    operands = ("*values",)
    strict = False
    method = False

    def result(self, call: Expr, operands: tuple[Typed, ...]) -> Typed:
        return Typed(DataType.INT64)
