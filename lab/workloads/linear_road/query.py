"""The toll and accident query of the Linear Road benchmark (enjima 5.1.1), in ten operators."""

from __future__ import annotations

from penstock.query.aggregates import avg, count
from penstock.query.expr import Expr, col, when
from penstock.query.stream.stream import Stream
from penstock.query.windows import sliding, tumbling

_SEGMENT = ("xway", "dir", "seg")
_MINUTE = tumbling("60s")

#: A car has had an accident when it reports the same position so often, standing still, and another one with
#: it.
STOPPED_REPORTS = 4
CARS_IN_ACCIDENT = 2
#: An accident makes the segment it happened in free, and as many before it: cars there drive towards it.
SEGMENTS_BEFORE = 4


def position_reports(events: Stream) -> Stream:
    """source → filter → project: what the three branches share."""
    reports = events.filter(col("type") == 0)
    return reports.select("ts", "vid", "speed", "xway", "lane", "dir", "seg", "pos")


def accidents(reports: Stream) -> Stream:
    """filter → sliding window: where two cars at least stood at one position for four reports each."""
    place = (*_SEGMENT, "lane", "pos")
    return (
        reports.filter(col("lane").between(1, 3))
        .key_by(*place)
        .window(sliding("120s", every="30s"))
        .per("vid", where=col("speed") == 0, reports=count(), having=col("reports") >= STOPPED_REPORTS)
        .agg(stopped=count(), having=col("stopped") >= CARS_IN_ACCIDENT, bounds=False)
    )


def mean_speeds(reports: Stream) -> Stream:
    """tumbling window: the mean, over the cars of a segment, of each one's mean speed."""
    windowed = reports.key_by(*_SEGMENT).window(_MINUTE)
    return windowed.per("vid", speed=avg("speed")).agg(speed=avg("speed"), bounds=False)


def car_counts(reports: Stream) -> Stream:
    """tumbling window: how many cars were in a segment."""
    return reports.key_by(*_SEGMENT).window(_MINUTE).per("vid").agg(cars=count(), bounds=False)


def toll() -> Expr:
    """2 · (cars − 50)² where it is full and slow, else nothing."""
    over = col("cars") - 50
    return when((col("speed") < 40) & (col("cars") > 50), 2 * over * over).otherwise(0)


def is_near() -> Expr:
    """Whether a segment lies at most four before the accident's: direction 0 runs up, the other down."""
    ahead = when(col("dir") == 0, col("seg_right") - col("seg")).otherwise(col("seg") - col("seg_right"))
    return ahead.between(0, SEGMENTS_BEFORE)


def tolls(events: Stream) -> Stream:
    """The toll of every segment and minute with cars in it; there is none near an accident.

    The tenth operator is the sink. The paper computes a toll in the join and strikes it out in the co-group;
    here the co-group does both.
    """
    reports = position_reports(events)
    traffic = mean_speeds(reports).join(car_counts(reports), on=_SEGMENT, window=_MINUTE)
    return traffic.group_join(
        accidents(reports),
        on=("xway", "dir"),
        window=_MINUTE,
        aggregates={"accidents": count()},
        where=is_near(),
        select=[
            "window_end",
            *_SEGMENT,
            "speed",
            "cars",
            {"accident": col("accidents") > 0, "toll": when(col("accidents") > 0, 0).otherwise(toll())},
        ],
    )
