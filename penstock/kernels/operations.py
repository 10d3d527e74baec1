"""How arithmetic, casts and hashing are written in a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kernels import texts
from penstock.kernels.code import SCALAR, Code, either, settled
from penstock.query.expr import Arithmetic, Cast
from penstock.query.types import DataType

if TYPE_CHECKING:
    from penstock.kernels.builder import KernelBuilder


def arithmetic(builder: KernelBuilder, expr: Arithmetic) -> Code:
    result = settled(builder.infer(expr))
    operand = DataType.INT64 if result is DataType.TIMESTAMP else result  # timestamps compute as integers
    left, right = builder.emit(expr.left, operand), builder.emit(expr.right, operand)
    a, b = left.value, right.value
    null = either(left.null, right.null)
    if expr.op in ("+", "-", "*"):
        # Numba computes int32 in int64, so the conversion is what wraps
        return Code(builder.assign(f"{SCALAR[result]}({a} {expr.op} {b})"), builder.flag(null), result)
    by_zero = builder.assign(f"{b} == 0")
    if expr.op == "/":
        value = f"{a} / {b}"
    else:
        function = "floor_div" if expr.op == "//" else "floor_mod"
        divisor = builder.assign(f"int64(1) if {by_zero} else int64({b})")
        value = f"{SCALAR[result]}({function}(int64({a}), {divisor}))"
    return Code(builder.assign(value), builder.flag(either(null, by_zero)), result)


def explicit_cast(builder: KernelBuilder, expr: Cast) -> Code:
    return cast(builder, builder.emit(expr.operand), expr.dtype)


def cast(builder: KernelBuilder, code: Code, dtype: DataType) -> Code:
    """``code`` as another type."""
    source, x = code.dtype, code.value
    if source is dtype:
        return code
    if source is DataType.STRING:
        return texts.parse_number(builder, code, dtype)
    if dtype is DataType.STRING:
        return texts.written(builder, code)
    if dtype is DataType.BOOL:
        value = f"{x} != 0"
    elif source.is_float and dtype.is_integer:
        value = f"to_{dtype}({x})"
    else:
        value = f"{SCALAR[dtype]}({x})"
    return Code(builder.assign(value), code.null, dtype)


def hash_codes(builder: KernelBuilder, codes: list[Code]) -> Code:
    """``xxhash64`` of values already emitted, as Spark gives it; never null."""
    seed = "uint64(42)"
    for code in codes:
        x = code.value
        if code.dtype is DataType.STRING:
            bytes_place, offsets_place = builder.parameters.add_byte_tables()
            data, offsets = builder.table(bytes_place), builder.table(offsets_place)
            place = builder.assign(f"uint64({x})")
            ends = f"{offsets}[{place}], {offsets}[{place} + uint64(1)]"
            hashed = f"hash_bytes({data}, {ends}, {seed})"
        else:
            hashed = f"{_HASHES[code.dtype]}({x}, {seed})"
        seed = builder.assign(hashed if code.null is None else f"{seed} if {code.null} else {hashed}")
    return Code(builder.assign(f"int64({seed})"), None, DataType.INT64)


_HASHES = {
    DataType.BOOL: "hash_i32",
    DataType.INT32: "hash_i32",
    DataType.INT64: "hash_i64",
    DataType.TIMESTAMP: "hash_i64",
    DataType.FLOAT32: "hash_f32",
    DataType.FLOAT64: "hash_f64",
}
