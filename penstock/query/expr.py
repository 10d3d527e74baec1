"""Expressions over the columns of one event. They describe, they do not compute.

The same expression is read by the reference interpreter, by the kernel compiler and by the Spark lowering;
what each means, nulls and corner cases included, is written in ``docs/expressions.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from penstock.query.durations import duration_us
from penstock.query.errors import QueryError
from penstock.query.expr_methods import Methods
from penstock.query.misuse import public_names, refused, told, unknown_name
from penstock.query.types import DataType, parse_type

if TYPE_CHECKING:
    from penstock.query.functions.function import Function

Operand = Any  # an Expr, or a Python value that becomes a Literal
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
told(Methods)  # which is made, and builds on nothing
_STRUCTURE = ("children", "columns", "key")  # for those who read expressions, not for those who write them


@told
class Expr(Methods):
    """A value computed from one event. Build with ``col``, ``lit`` and Python's operators.

    >>> (col("speed") * 3.6 > 130) & col("lane").is_in([1, 2])
    (((speed * 3.6) > 130) and (lane in (1, 2)))
    """

    # -- arithmetic -------------------------------------------------------------------------------------
    def __add__(self, other: Operand) -> Expr:
        return Arithmetic("+", self, as_expr(other))

    def __radd__(self, other: Operand) -> Expr:
        return Arithmetic("+", as_expr(other), self)

    def __sub__(self, other: Operand) -> Expr:
        return Arithmetic("-", self, as_expr(other))

    def __rsub__(self, other: Operand) -> Expr:
        return Arithmetic("-", as_expr(other), self)

    def __mul__(self, other: Operand) -> Expr:
        return Arithmetic("*", self, as_expr(other))

    def __rmul__(self, other: Operand) -> Expr:
        return Arithmetic("*", as_expr(other), self)

    def __truediv__(self, other: Operand) -> Expr:
        return Arithmetic("/", self, as_expr(other))

    def __rtruediv__(self, other: Operand) -> Expr:
        return Arithmetic("/", as_expr(other), self)

    def __floordiv__(self, other: Operand) -> Expr:
        return Arithmetic("//", self, as_expr(other))

    def __rfloordiv__(self, other: Operand) -> Expr:
        return Arithmetic("//", as_expr(other), self)

    def __mod__(self, other: Operand) -> Expr:
        return Arithmetic("%", self, as_expr(other))

    def __rmod__(self, other: Operand) -> Expr:
        return Arithmetic("%", as_expr(other), self)

    def __neg__(self) -> Expr:
        return _call("neg", self)

    def __abs__(self) -> Expr:
        return self.abs()

    # -- comparison and logic ---------------------------------------------------------------------------
    def __eq__(self, other: Operand) -> Expr:  # type: ignore[override]
        return Comparison("==", self, as_expr(other))

    def __ne__(self, other: Operand) -> Expr:  # type: ignore[override]
        return Comparison("!=", self, as_expr(other))

    def __lt__(self, other: Operand) -> Expr:
        return Comparison("<", self, as_expr(other))

    def __le__(self, other: Operand) -> Expr:
        return Comparison("<=", self, as_expr(other))

    def __gt__(self, other: Operand) -> Expr:
        return Comparison(">", self, as_expr(other))

    def __ge__(self, other: Operand) -> Expr:
        return Comparison(">=", self, as_expr(other))

    def between(self, low: Operand, high: Operand) -> Expr:
        """Both ends included."""
        return Logic("and", self >= as_expr(low), self <= as_expr(high))

    def __and__(self, other: Operand) -> Expr:
        return Logic("and", self, as_expr(undecided(other)))

    def __rand__(self, other: Operand) -> Expr:
        return Logic("and", as_expr(undecided(other)), self)

    def __or__(self, other: Operand) -> Expr:
        return Logic("or", self, as_expr(undecided(other)))

    def __ror__(self, other: Operand) -> Expr:
        return Logic("or", as_expr(undecided(other)), self)

    def __invert__(self) -> Expr:
        return Not(self)

    def __bool__(self) -> NoReturn:
        raise QueryError(
            "an expression has no truth value while the query is written",
            detail=f"got {self!r}",
            hint="write & for and, | for or, ~ for not, .between(a, b) for a <= x <= b",
        )

    __hash__ = object.__hash__

    if not TYPE_CHECKING:  # mypy tells what is not there by itself
        __pow__ = __rpow__ = refused("there is no ** of expressions", "write .pow(2)")
        __round__ = refused("expressions are rounded by a method", "write .round(1)")
        __len__ = refused("an expression has no length while the query is written", "write .length()")
        __float__ = __int__ = refused(
            "an expression has no value while the query is written",
            "functions of math do not fit: write .sqrt(), .log(), .exp(); to change the type .cast('int64')",
        )
        __getitem__ = refused("an expression has no parts", "write .substr(1, 3) or .split_part(',', 1)")

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):  # what Python and numpy look for
                raise AttributeError(name)
            known = [method for method in public_names(type(self)) if method not in _STRUCTURE]
            raise unknown_name("Expr", "expressions have", name, known)

    def is_in(self, values: Any) -> Expr:
        """Whether the value is one of these constants."""
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise QueryError(
                "is_in needs a list of constants", detail=f"got {values!r}", hint="write is_in([1, 2])"
            )
        return InList(self, tuple(_constant(value) for value in values))

    def is_null(self) -> Expr:
        return IsNull(self)

    def is_not_null(self) -> Expr:
        return Not(IsNull(self))

    def fill_null(self, value: Operand) -> Expr:
        return coalesce(self, value)

    # -- the rest -----------------------------------------------------------------------------------------
    def cast(self, dtype: str | DataType) -> Expr:
        return Cast(self, parse_type(dtype)[0])

    # -- structure ------------------------------------------------------------------------------------------
    def children(self) -> Iterator[Expr]:
        """The expressions directly below this one."""
        for field in fields(self):  # type: ignore[arg-type]
            yield from _expressions_in(getattr(self, field.name))

    def columns(self) -> frozenset[str]:
        """The names of all columns it reads."""
        return frozenset[str]().union(*(child.columns() for child in self.children()))

    def key(self) -> tuple[Any, ...]:
        """What it is, as a value that can be compared and hashed (``==`` builds an expression instead)."""
        parts = (_key_of(getattr(self, field.name)) for field in fields(self))  # type: ignore[arg-type]
        return (type(self).__name__, *parts)


@dataclass(frozen=True, eq=False, repr=False)
class Column(Expr):
    name: str

    def columns(self) -> frozenset[str]:
        return frozenset((self.name,))

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False, repr=False)
class Literal(Expr):
    """A constant. A number without a type of its own takes the type of what it meets."""

    value: bool | int | float | str | None
    dtype: DataType | None = None

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, eq=False, repr=False)
class Arithmetic(Expr):
    op: str
    left: Expr
    right: Expr

    def __repr__(self) -> str:
        return f"({self.left!r} {self.op} {self.right!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Expr):
    op: str
    left: Expr
    right: Expr

    def __repr__(self) -> str:
        return f"({self.left!r} {self.op} {self.right!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Logic(Expr):
    op: str
    left: Expr
    right: Expr

    def __repr__(self) -> str:
        return f"({self.left!r} {self.op} {self.right!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Not(Expr):
    operand: Expr

    def __repr__(self) -> str:
        return f"(not {self.operand!r})"


@dataclass(frozen=True, eq=False, repr=False)
class IsNull(Expr):
    operand: Expr

    def __repr__(self) -> str:
        return f"({self.operand!r} is null)"


@dataclass(frozen=True, eq=False, repr=False)
class InList(Expr):
    operand: Expr
    values: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"({self.operand!r} in {self.values!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Cast(Expr):
    operand: Expr
    dtype: DataType

    def __repr__(self) -> str:
        return f"cast({self.operand!r} as {self.dtype})"


@dataclass(frozen=True, eq=False, repr=False)
class Call(Expr):
    """A function of the language over some operands; written as a method, or as a function of that name."""

    function: Function
    operands: tuple[Expr, ...]

    def __post_init__(self) -> None:
        names = self.function.operands
        takes_any = names[-1].startswith("*")
        if not self.operands or (len(self.operands) != len(names) and not takes_any):
            wanted = "at least one value" if takes_any else " and ".join(names)
            raise QueryError(
                f"{self.function.name} needs {wanted}",
                detail=f"got {len(self.operands)} operands",
                hint=f"write e.g. {self.function.name}(col('a'){'' if len(names) == 1 else ', ...'})",
            )

    def __repr__(self) -> str:
        return f"{self.function.name}({', '.join([*map(repr, self.operands), *self.function.constants()])})"


@dataclass(frozen=True, eq=False, repr=False)
class When(Expr):
    """The first branch whose condition is true; without ``otherwise`` the rest is null."""

    branches: tuple[tuple[Expr, Expr], ...]
    default: Expr | None = None

    def when(self, condition: Expr, value: Operand) -> When:
        return When((*self.branches, (as_expr(condition), as_expr(value))), self.default)

    def otherwise(self, value: Operand) -> Expr:
        return When(self.branches, as_expr(value))

    def __repr__(self) -> str:
        branches = " ".join(f"when {condition!r} then {value!r}" for condition, value in self.branches)
        return f"({branches} otherwise {self.default!r})"


def col(name: str) -> Column:
    """The column of that name."""
    if not isinstance(name, str):
        raise QueryError(
            "a column's name must be text", detail=f"got {name!r}", hint="write e.g. col('speed')"
        )
    return Column(name)


def lit(value: Any, dtype: str | DataType | None = None) -> Literal:
    """A constant; ``lit(None, 'int64')`` is a typed null."""
    wanted = None if dtype is None else parse_type(dtype)[0]
    value = _plain(value)
    if isinstance(value, datetime):
        if wanted not in (None, DataType.TIMESTAMP):
            raise _unfit(value, wanted)
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        microseconds = (aware - _EPOCH) // _EPOCH.resolution
        return Literal(microseconds, DataType.TIMESTAMP)
    if isinstance(value, timedelta) and wanted in (None, DataType.INT64):
        return Literal(duration_us(value), DataType.INT64)
    if value is None and wanted is None:
        raise QueryError(
            "a null constant needs a type",
            hint="write e.g. lit(None, 'int64'); whether a value is null is asked by .is_null()",
        )
    if not isinstance(value, bool | int | float | str | None):
        raise QueryError(
            f"a constant cannot be a {type(value).__name__}",
            detail=f"got {value!r}",
            hint=_constant_hint(value),
        )
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise QueryError("a constant must fit in 64 bits", detail=f"got {value}", hint="write it as a float")
    if value is None or wanted is None:
        return Literal(value, wanted)
    return Literal(_typed_constant(value, wanted), wanted)


def _constant_hint(value: Any) -> str:
    if isinstance(getattr(value, "__self__", None), Expr):
        return f"call it: .{value.__name__}()"
    if callable(value):
        return "write an expression of columns; any Python runs in flat_map, batch or process"
    return "constants are bool, int, float, str, datetime, timedelta or a typed null"


def when(condition: Expr, value: Operand) -> When:
    """``when(cond, a).when(cond2, b).otherwise(c)``."""
    return When(((as_expr(condition), as_expr(value)),))


def coalesce(*values: Operand) -> Expr:
    """The first that is not null."""
    return _call("coalesce", *values)


def least(*values: Operand) -> Expr:
    """The smallest of several values of one event."""
    return _call("least", *values)


def greatest(*values: Operand) -> Expr:
    """The largest of several values of one event."""
    return _call("greatest", *values)


def hash_of(*values: Operand) -> Expr:
    """A 64-bit hash, equal to Spark's ``xxhash64`` of the same columns."""
    return _call("hash_of", *values)


def undecided(condition: Any) -> Any:
    """A condition as it is; refuses one that Python has answered before any event came."""
    if isinstance(condition, bool):
        raise QueryError(
            f"a condition is {condition} before any event came",
            detail="a method that is not called, or 'is None', compares nothing",
            hint="write e.g. col('ts').hour() == 8, .is_null() for is None; a constant is lit(True)",
        )
    return condition


def as_expr(value: Operand) -> Expr:
    """An expression as it is; anything else as a constant."""
    return value if isinstance(value, Expr) else lit(value)


def _constant(value: Any) -> Any:
    """What ``InList`` keeps: a bool, int, float or str; None is refused when the expression is typed."""
    if isinstance(value, Expr):
        raise QueryError(
            "is_in takes constants only", detail=f"got {value!r}", hint="write (x == a) | (x == b)"
        )
    return None if value is None else lit(value).value


def _typed_constant(value: bool | int | float | str, dtype: DataType) -> bool | int | float | str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if dtype is DataType.BOOL and isinstance(value, bool):
        return value
    if dtype is DataType.STRING and isinstance(value, str):
        return value
    if dtype.is_float and is_number:
        return float(value)
    if (
        isinstance(value, int)
        and is_number
        and not dtype.is_float
        and dtype not in (DataType.BOOL, DataType.STRING)
    ):
        bits = 31 if dtype is DataType.INT32 else 63
        if -(1 << bits) <= value < 1 << bits:
            return value
    raise _unfit(value, dtype)


def _unfit(value: Any, dtype: DataType | None) -> QueryError:
    return QueryError(
        f"a constant does not fit its type {dtype}",
        detail=f"got {value!r}",
        hint="leave the type out, or cast",
    )


def _plain(value: Any) -> Any:
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")
    item = getattr(value, "item", None)  # numpy scalars become Python numbers
    return item() if callable(item) else value


def _call(name: str, *operands: Operand) -> Expr:
    from penstock.query.functions.calls import call  # which builds on this

    return call(name, *operands)


def _expressions_in(value: Any) -> Iterator[Expr]:
    if isinstance(value, Expr):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _expressions_in(item)


def _key_of(value: Any) -> Any:
    if hasattr(value, "key"):  # an expression or a function
        return value.key()
    if isinstance(value, tuple):
        return tuple(_key_of(item) for item in value)
    return (type(value).__name__, repr(value))  # 1, 1.0 and True are three different constants
