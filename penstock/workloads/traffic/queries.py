"""The three traffic queries of the rebinding paper, replicated to any number, each with constants of its
own."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.query.aggregates import avg, count
from penstock.query.expr import col
from penstock.query.stream.stream import Stream
from penstock.query.windows import tumbling


def replicated(cars: Stream, number: int, roads: int) -> Iterator[tuple[str, Stream]]:
    """``number`` queries by name, in triples: agent count, mean speed and top k speed of one road.

    Every triple has its own road and its own k. Queries about one road share its filter.
    """
    for index in range(number):
        triple, kind = divmod(index, 3)
        road = triple % roads
        match kind:
            case 0:
                yield f"count_{triple}", agent_count(cars, road)
            case 1:
                yield f"speed_{triple}", mean_speed(cars, road)
            case _:
                yield f"top_{triple}", top_speed(cars, road, 3 + triple % 10)


def agent_count(cars: Stream, road: int) -> Stream:
    """Q1: cars on a road, per lane and second: constant work per event."""
    return cars.filter(col("road") == road).key_by("lane").window(tumbling("1s")).agg(reports=count())


def mean_speed(cars: Stream, road: int) -> Stream:
    """Q2: the mean speed on a road per second."""
    return cars.filter(col("road") == road).window(tumbling("1s")).agg(speed=avg("speed"))


def top_speed(cars: Stream, road: int, k: int) -> Stream:
    """Q3: the k fastest reports on a road per second: they are ranked when the window closes."""
    return cars.filter(col("road") == road).window(tumbling("1s")).top(k, by="speed")
