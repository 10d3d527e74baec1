"""Which type an expression has over a schema, or why it has none."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.query.errors import QueryError
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
    col,
    lit,
)
from penstock.query.patterns.bound import Bound
from penstock.query.types import DataType, Schema


@dataclass(frozen=True)
class Typed:
    """The type of a value, and whether it may be null. A bare constant's type is ``weak``: it yields."""

    dtype: DataType
    nullable: bool = False
    weak: bool = False


def infer(expr: Expr, schema: Schema) -> Typed:
    """The type of ``expr`` over events of ``schema``; raises ``QueryError`` where there is none."""
    match expr:
        case Column(name):
            field = schema[name]
            return Typed(field.dtype, field.nullable)
        case Literal():
            return _literal(expr)
        case Arithmetic(op, left, right):
            return _arithmetic(expr, op, infer(left, schema), infer(right, schema))
        case Comparison(op, left, right):
            a, b = infer(left, schema), infer(right, schema)
            common = common_type(expr, (a, b))
            if common.dtype is DataType.STRING and op not in ("==", "!="):
                raise misfit(expr, "strings can be compared with == and != only", a, b)
            if common.dtype is DataType.BOOL and op not in ("==", "!="):
                raise misfit(expr, "booleans can be compared with == and != only", a, b)
            return Typed(DataType.BOOL, a.nullable or b.nullable)
        case Logic(_, left, right):
            a, b = _boolean(left, schema, expr), _boolean(right, schema, expr)
            return Typed(DataType.BOOL, a.nullable or b.nullable)
        case Not(operand):
            return _boolean(operand, schema, expr)
        case IsNull(operand):
            infer(operand, schema)
            return Typed(DataType.BOOL)
        case InList(operand, values):
            check_known(expr, schema, operand)
            return _in_list(expr, infer(operand, schema), values)
        case Call(function, operands):
            if function.tabulated:
                check_known(expr, schema, *operands)
            return function.result(expr, tuple(infer(operand, schema) for operand in operands))
        case Cast(operand, dtype):
            if dtype is not DataType.STRING:
                check_known(expr, schema, operand)
            return _cast(expr, infer(operand, schema), dtype)
        case When(branches, default):
            for condition, _ in branches:
                _boolean(condition, schema, expr)
            types = [infer(value, schema) for _, value in branches]
            types += [infer(default, schema)] if default is not None else []
            nullable = default is None or any(t.nullable for t in types)
            return replace(common_type(expr, types), nullable=nullable)
        case Bound():
            raise QueryError(
                "events of a pattern can be read in its conditions and output only",
                detail=f"got {expr!r}",
                hint="write match(pattern, output={...}); on its result use col(...)",
            )
    raise TypeError(f"not an expression: {expr!r}")


def check_known(expr: Expr, schema: Schema, *operands: Expr) -> None:
    """Refuses strings that are made in the same step: what reads strings has tables of those before it."""
    for operand in operands:
        typed = infer(operand, schema)
        if typed.dtype is DataType.STRING and _makes_text(operand, schema):
            raise misfit(
                expr,
                "a string that this step makes cannot be looked into by the same step",
                typed,
                hint="make it a column first: .with_columns(text=...), then use col('text')",
            )


def _makes_text(expr: Expr, schema: Schema) -> bool:
    match expr:
        case Call(function) if function.makes_text:
            return True
        case Cast(operand, DataType.STRING) if infer(operand, schema).dtype is not DataType.STRING:
            return True
    return any(_makes_text(child, schema) for child in expr.children())


def common_type(expr: Expr, types: list[Typed] | tuple[Typed, ...]) -> Typed:
    """The one type that all of these can be read as without losing range."""
    result = types[0]
    for other in types[1:]:
        joined = _join(result, other)
        if joined is None:
            raise misfit(expr, "types do not fit together", *types)
        result = joined
    return result


def numeric_type(a: Typed, b: Typed) -> DataType | None:
    """What arithmetic on two numbers gives."""
    joined = _join(a, b) if a.dtype.is_numeric and b.dtype.is_numeric else None
    return joined.dtype if joined else None


_WIDTH = {DataType.INT32: 0, DataType.INT64: 1, DataType.FLOAT32: 2, DataType.FLOAT64: 3}


def _join(a: Typed, b: Typed) -> Typed | None:
    nullable = a.nullable or b.nullable
    if a.dtype is b.dtype:
        return Typed(a.dtype, nullable, a.weak and b.weak)
    if not (a.dtype.is_numeric and b.dtype.is_numeric):
        return None
    if a.weak != b.weak:  # the constant yields, unless it would lose its fraction or its range
        weak, firm = (a, b) if a.weak else (b, a)
        if firm.dtype.is_float or (weak.dtype.is_integer and weak.dtype is DataType.INT32):
            return Typed(firm.dtype, nullable)
    if a.dtype.is_float != b.dtype.is_float:
        return Typed(DataType.FLOAT64, nullable, a.weak and b.weak)
    wider = a.dtype if _WIDTH[a.dtype] > _WIDTH[b.dtype] else b.dtype
    return Typed(wider, nullable, a.weak and b.weak)


def literal_type(literal: Literal) -> DataType:
    """The type that a constant has where nothing else decides it."""
    dtype = _literal(literal).dtype
    return DataType.INT64 if dtype is DataType.INT32 and literal.dtype is None else dtype


def resolved(expr: Expr, schema: Schema) -> Typed:
    """Like ``infer``, with a bare integer constant settled to int64: the type of a column made from it."""
    return settled(infer(expr, schema))


def settled(typed: Typed) -> Typed:
    """The firm type that a weak one becomes where nothing else decides it."""
    if typed.weak and typed.dtype is DataType.INT32:
        return Typed(DataType.INT64, typed.nullable)
    return replace(typed, weak=False)


def _literal(literal: Literal) -> Typed:
    value = literal.value
    if literal.dtype is not None:
        return Typed(literal.dtype, value is None)
    if isinstance(value, bool):
        return Typed(DataType.BOOL)
    if isinstance(value, int):  # INT32 here means: fits there, so an int32 column stays one
        return Typed(DataType.INT32 if -(2**31) <= value < 2**31 else DataType.INT64, weak=True)
    if isinstance(value, float):
        return Typed(DataType.FLOAT64, weak=True)
    return Typed(DataType.STRING)


def _arithmetic(expr: Expr, op: str, a: Typed, b: Typed) -> Typed:
    nullable = a.nullable or b.nullable or op in ("/", "//", "%")  # a divisor of zero gives null
    stamp_a, stamp_b = a.dtype is DataType.TIMESTAMP, b.dtype is DataType.TIMESTAMP
    if op == "-" and stamp_a and stamp_b:
        return Typed(DataType.INT64, nullable)
    if (op in "+-" and stamp_a and b.dtype.is_integer) or (op == "+" and stamp_b and a.dtype.is_integer):
        return Typed(DataType.TIMESTAMP, nullable)
    dtype = numeric_type(a, b)
    if dtype is None:
        raise misfit(expr, f"'{op}' needs two numbers", a, b)
    if op == "/":
        return Typed(DataType.FLOAT64, nullable)
    if op in ("//", "%") and dtype.is_float:
        raise misfit(expr, f"'{op}' needs two integers", a, b)
    return Typed(dtype, nullable, a.weak and b.weak)


def _cast(expr: Expr, a: Typed, dtype: DataType) -> Typed:
    if dtype is DataType.STRING and a.dtype is not DataType.STRING:
        if a.dtype is DataType.TIMESTAMP:
            raise misfit(expr, "a timestamp is not cast to string", a, hint="write .format_time('%Y-%m-%d')")
        return Typed(dtype, a.nullable)
    if a.dtype is DataType.STRING and dtype is not DataType.STRING:
        if not dtype.is_numeric:
            hint = ".parse_time('%Y-%m-%d')" if dtype is DataType.TIMESTAMP else "a comparison: == 'true'"
            raise misfit(expr, f"a string cannot be cast to {dtype}", a, hint=f"write {hint}")
        return Typed(dtype, True)  # text that is no number gives null
    if DataType.TIMESTAMP in (a.dtype, dtype) and not {a.dtype, dtype} <= {
        DataType.TIMESTAMP,
        DataType.INT64,
    }:
        hint = f"write .cast('int64').cast('{dtype}')"
        raise misfit(expr, "a timestamp can be cast from and to int64 microseconds only", a, hint=hint)
    return Typed(dtype, a.nullable)


def _in_list(expr: Expr, a: Typed, values: tuple[object, ...]) -> Typed:
    if not values:
        raise misfit(expr, "is_in needs at least one value", a)
    for value in values:
        if value is None:
            raise misfit(expr, "is_in takes no null", a, hint="add | x.is_null()")
        if _join(a, _literal(lit(value))) is None and not (
            a.dtype is DataType.TIMESTAMP and isinstance(value, int)
        ):
            raise misfit(expr, f"{value!r} is not a {a.dtype}", a)
        if a.dtype.is_integer and isinstance(value, float):
            raise misfit(expr, f"{value!r} is not a {a.dtype}", a)
    return Typed(DataType.BOOL, a.nullable)


def _boolean(operand: Expr, schema: Schema, expr: Expr) -> Typed:
    a = infer(operand, schema)
    if a.dtype is not DataType.BOOL:
        raise misfit(expr, f"{operand!r} is not a condition", a, hint="compare it with something")
    return a


def misfit(expr: Expr, what: str, *types: Typed, hint: str | None = None) -> QueryError:
    """The error for operands that do not fit an expression."""
    got = " and ".join(str(t.dtype) for t in types)
    columns = ", ".join(sorted(expr.columns()))
    detail = f"in {expr!r}, got {got}" + (f" (columns {columns})" if columns else "")
    return QueryError(what, detail=detail, hint=hint or _misfit_hint(expr, {one.dtype for one in types}))


def cast_hint(name: str, dtype: DataType, wanted: DataType) -> str:
    """How a column of one type and another get one type: by a cast that there is."""
    for ours, theirs in ((dtype, wanted), (wanted, dtype)):
        try:
            _cast(col(name), Typed(ours), theirs)
        except QueryError:
            continue
        side = "here" if ours is dtype else "there"
        return f"cast it {side}: with_columns({name}=col('{name}').cast('{theirs}'))"
    return f"make both one type first: there is no cast between {dtype} and {wanted}"


def _misfit_hint(expr: Expr, dtypes: set[DataType]) -> str:
    """What would help where these types meet."""
    name = min(expr.columns(), default="x")
    if dtypes == {DataType.STRING}:
        return f"strings are put together by col('{name}').concat(...)"
    if DataType.TIMESTAMP in dtypes:
        if isinstance(expr, Arithmetic):
            return f"a length of time is a timedelta: col('{name}') + timedelta(seconds=1)"
        return f"a moment is a datetime: col('{name}') > datetime(2026, 1, 31)"
    if DataType.STRING in dtypes:
        return f"cast one side: col('{name}').cast('float64') of text, or .cast('string') of a number"
    if DataType.BOOL in dtypes:
        return "a condition becomes 0 or 1 by .cast('int32')"
    return f"cast one side: col('{name}').cast('float64')"
