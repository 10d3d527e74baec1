"""How functions of timestamps are written in a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kernels.code import Code
from penstock.kernels.functions.emitters import emits
from penstock.kernels.texts import made
from penstock.query.functions.times import (
    Day,
    DayOfWeek,
    FormatTime,
    Hour,
    Minute,
    Month,
    Quarter,
    Second,
    Truncate,
    Year,
)
from penstock.query.functions.times.time_function import TimeFunction
from penstock.query.types import DataType

if TYPE_CHECKING:
    from penstock.kernels.builder import KernelBuilder


@emits(Truncate)
def truncate(builder: KernelBuilder, function: Truncate, operands: list[Code], result: DataType) -> Code:
    (time,) = operands
    unit = builder.constant(function.unit_us, DataType.INT64)
    return Code(builder.assign(f"{time.value} - floor_mod({time.value}, {unit})"), time.null, result)


@emits(Year, Month, Day)
def date_part(builder: KernelBuilder, function: TimeFunction, operands: list[Code], result: DataType) -> Code:
    (time,) = operands
    return Code(builder.assign(f"int32(civil_{function.name}({time.value}))"), time.null, result)


@emits(Quarter)
def quarter(builder: KernelBuilder, function: Quarter, operands: list[Code], result: DataType) -> Code:
    (time,) = operands
    return Code(builder.assign(f"int32((civil_month({time.value}) + 2) // 3)"), time.null, result)


@emits(Hour, Minute, Second, DayOfWeek)
def cyclic_part(
    builder: KernelBuilder, function: TimeFunction, operands: list[Code], result: DataType
) -> Code:
    (time,) = operands
    unit_us, count, first = _CYCLES[type(function)]
    value = f"int32(floor_mod(floor_div({time.value}, {unit_us}) + {first[0]}, {count}) + {first[1]})"
    return Code(builder.assign(value), time.null, result)


@emits(FormatTime)
def format_time(builder: KernelBuilder, function: FormatTime, operands: list[Code], result: DataType) -> Code:
    return made(builder, function.of, operands)


#: Microseconds of a unit, how many there are until it begins anew, and where it stood in 1970.
_CYCLES: dict[type[TimeFunction], tuple[int, int, tuple[int, int]]] = {
    Second: (1_000_000, 60, (0, 0)),
    Minute: (60_000_000, 60, (0, 0)),
    Hour: (3_600_000_000, 24, (0, 0)),
    DayOfWeek: (86_400_000_000, 7, (3, 1)),  # 1970 began on a Thursday
}
