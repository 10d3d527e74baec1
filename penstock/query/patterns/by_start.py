"""The columns that travel between the three steps that a match by start becomes."""

from __future__ import annotations

from penstock.query.types import DataType, Field, Schema

INSTANCE = "$instance"  # the key of the instance that an event is sent to
POSITION = "$position"  # the place of an event in the whole stream, counted from 0
OPENS = "$opens"  # whether it is a first event that this instance was given
FITS = "$fits"  # the events of the pattern that it could be, as bits
START = "$start"  # of a match: the position of its first event

#: What the splitter adds to every event.
GIVEN = Schema(
    [
        Field(INSTANCE, DataType.INT64),
        Field(POSITION, DataType.INT64),
        Field(OPENS, DataType.BOOL),
        Field(FITS, DataType.INT64),
    ]
)
