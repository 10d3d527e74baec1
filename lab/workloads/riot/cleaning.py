"""ETL's steps that expressions can say: the range filter, the join of a message's parts, the annotation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from lab.workloads.riot.settings import OBSERVATIONS, RANGES
from penstock.query.aggregates import first, max_
from penstock.query.expr import col, when
from penstock.query.stream.stream import Stream
from penstock.query.windows import tumbling


def range_filtered(fields: Stream, *, name: str = "range_filter") -> Stream:
    """The fields with null in place of values that their range does not allow."""
    value, kind = col("value"), col("observation")
    allowed = [(kind == one) & value.between(low, high) for one, (low, high) in RANGES.items()]
    return fields.with_columns(value=when(reduce(lambda a, b: a | b, allowed), value), name=name)


def joined(fields: Stream, *, name: str = "join") -> Stream:
    """One event per message again, from its six parts.

    They are of one event time, so they are complete when the time has moved on: the join holds a message
    for a millisecond of event time and then forgets it.
    """
    observed = {kind: max_(when(col("observation") == kind, col("value"))) for kind in OBSERVATIONS}
    keyed = fields.key_by("message", "taken_ms", "longitude", "latitude")
    return keyed.window(tumbling("1ms")).agg({"source": first(col("source")), **observed}, name=name)


def annotated(messages: Stream, metadata: Mapping[str, Sequence[str]], *, name: str = "annotate") -> Stream:
    """Messages of known sensors with the sensor's location and type; others are left out."""
    return messages.lookup(dict(metadata), on={"source": "sensor"}, name=name)
