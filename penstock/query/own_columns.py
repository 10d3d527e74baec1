"""Columns that Penstock keeps beside the user's; a stream carries those that someone reads."""

from __future__ import annotations

from penstock.query.types import DataType

TIME = "$time"  # event time in microseconds, where no visible column equals it
ORDER = "$order"  # source and offset in one number: breaks ties between equal event times
SUB = "$sub"  # position among the events made from one event; absent means 0
LATE = "$late"  # came after the lateness its source declared; absent means never

SYSTEM_TYPES: dict[str, DataType] = {
    TIME: DataType.TIMESTAMP,
    ORDER: DataType.INT64,
    SUB: DataType.INT64,
    LATE: DataType.BOOL,
}
