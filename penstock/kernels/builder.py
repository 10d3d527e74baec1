"""The expression compiler: writes the body of a loop over events, one temporary per value, without branches.

What expressions mean is written in ``docs/expressions.md``. Constants become parameters, so queries that
differ only in constants have the same source and share one kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.kernels import conditions, operations
from penstock.kernels.code import SCALAR, ZERO, Code
from penstock.kernels.functions import emit_call
from penstock.kernels.parameters import Parameters, column_types
from penstock.memory.layout import LATE, SUB, TIME, Layout
from penstock.memory.strings import StringPool
from penstock.query.expr import (
    Arithmetic,
    Call,
    Cast,
    Column,
    Comparison,
    Expr,
    InList,
    IsNull,
    Literal,
    Logic,
    Not,
    When,
)
from penstock.query.inference import Typed, infer, literal_type
from penstock.query.types import DataType

__all__ = ["HEADER", "Code", "KernelBuilder", "Parameters", "column_types"]

#: What every generated module begins with.
HEADER = """\
import math

import numpy as np
from numpy import bool_, float32, float64, int32, int64, uint64
from penstock.kernels.calendar import civil_day, civil_month, civil_year
from penstock.kernels.hashing import hash_bytes, hash_f32, hash_f64, hash_i32, hash_i64
from penstock.kernels.hashing import canonical_f32, canonical_f64
from penstock.kernels.numbers import contains_float, contains_int, floor_div, floor_mod
from penstock.kernels.numbers import round_half_away, to_int32, to_int64
from penstock.kernels.makers import make_text
from penstock.kernels.probing import mix
"""


class KernelBuilder:
    """Writes the code that computes expressions over one event of ``layout``.

    ``lines`` is the loop's body so far, unindented; ``preamble()`` goes before the loop. A kernel that reads
    two inputs uses two builders with different ``columns`` and ``row`` and the first one's ``parameters``.
    ``row`` should be a uint64: Numba allows for negative indices otherwise, which costs a factor of 3.
    """

    def __init__(
        self,
        layout: Layout,
        strings: StringPool,
        *,
        columns: str = "inp",
        row: str = "k",
        parameters: Parameters | None = None,
        temporaries: int = 0,
    ) -> None:
        """``temporaries``: how many names others have used in the same kernel."""
        self.layout = layout
        self.strings = strings
        self.schema = layout.schema
        self.parameters = parameters or Parameters(strings)
        self.lines: list[str] = []
        self._columns = columns
        self._row = row
        self._preamble: dict[str, str] = {}
        self._loaded: dict[str, Code] = {}
        self._temporaries = temporaries

    def emit(self, expr: Expr, dtype: DataType | None = None) -> Code:
        """Appends the statements that compute ``expr``, cast to ``dtype`` if given; says where it is."""
        if isinstance(expr, Literal):
            code = self._literal(expr)
        elif isinstance(expr, Column):
            code = self.load(expr.name)
        else:
            code = _EMITTERS[type(expr)](self, expr)
        return code if dtype is None else operations.cast(self, code, dtype)

    def load(self, name: str) -> Code:
        """A column of the event, Penstock's own included. Absent ``$sub`` is 0, absent ``$late`` False."""
        code = self._loaded.get(name)
        if code is None:
            code = self._loaded[name] = self._load(name)
        return code

    @property
    def inputs(self) -> Layout:
        """The layout of the columns that the kernel is given."""
        return self.layout

    @property
    def temporaries(self) -> int:
        """How many names are used so far."""
        return self._temporaries

    def preamble(self) -> list[str]:
        """Statements before the loop: columns, constants and tables into locals."""
        return [f"{name} = {value}" for name, value in self._preamble.items()]

    # -- for those who write code with it ------------------------------------------------------------------

    def assign(self, value: str) -> str:
        """A new temporary of the loop's body."""
        self._temporaries += 1
        name = f"{self._columns}_t{self._temporaries}"
        self.lines.append(f"{name} = {value}")
        return name

    def flag(self, null: str | None) -> str | None:
        """A compound null flag in a temporary of its own, so that it is computed and written once."""
        return self.assign(null) if null is not None and null.startswith("(") else null

    def column(self, place: int) -> str:
        """A local for an array of the input."""
        return self._local(f"{self._columns}_{place}", f"{self._columns}[{place}]")

    def table(self, place: int) -> str:
        """A local for a table of the parameters."""
        return self._local(f"table_{place}", f"tables[{place}]")

    def constant(self, value: bool | int | float | str, dtype: DataType) -> str:
        """A local for a constant, which becomes a parameter."""
        if dtype.is_float:
            place = self.parameters.add_float(float(value))
            return self._local(f"float_{place}", f"{SCALAR[dtype]}(floats[{place}])")
        if isinstance(value, str):
            value = self.strings.code(value)
        place = self.parameters.add_int(int(value))
        text = f"ints[{place}] != 0" if dtype is DataType.BOOL else f"{SCALAR[dtype]}(ints[{place}])"
        return self._local(f"int_{place}", text)

    def maker(self, function: Callable[..., str], words: int) -> str:
        """A local for the address of what makes texts of so many words."""
        place = self.parameters.add_maker(function, words)
        return self._local(f"int_{place}", f"ints[{place}]")

    def infer(self, expr: Expr) -> Typed:
        return infer(expr, self.schema)

    def _local(self, name: str, value: str) -> str:
        self._preamble[name] = value
        return name

    def _load(self, name: str) -> Code:
        if name not in self.layout:
            if name == SUB:
                return Code("int64(0)", None, DataType.INT64)
            if name == LATE:
                return Code("False", None, DataType.BOOL)
            if name == TIME and self.layout.time is not None:
                return self.load(self.layout.time)
        return self._stored(name)

    def _stored(self, name: str) -> Code:
        value = self.assign(f"{self.column(self.layout.data(name))}[{self._row}]")
        place = self.layout.nulls(name)
        null = None if place is None else self.assign(f"{self.column(place)}[{self._row}]")
        return Code(value, null, self.layout.field(name).dtype)

    def _literal(self, literal: Literal) -> Code:
        dtype = literal_type(literal)
        if literal.value is None:
            return Code(ZERO[dtype], "True", dtype)
        return Code(self.constant(literal.value, dtype), None, dtype)


_EMITTERS: dict[type[Expr], Callable[[KernelBuilder, Any], Code]] = {
    Arithmetic: operations.arithmetic,
    Cast: operations.explicit_cast,
    Comparison: conditions.comparison,
    Logic: conditions.logic,
    Not: conditions.negation,
    IsNull: conditions.is_null,
    InList: conditions.in_list,
    When: conditions.when,
    Call: emit_call,
}
