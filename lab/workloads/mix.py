"""Several queries of the Enjima benchmarks at once, each with a source of its own (enjima 5.2.1, 5.2.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Protocol

from lab.workloads.linear_road import data as linear_road
from lab.workloads.linear_road.query import tolls
from lab.workloads.shop import data as shop
from lab.workloads.shop.query import commcount, top_n
from lab.workloads.taxi import data as taxi
from lab.workloads.taxi.query import distance_per_cell
from lab.workloads.yahoo import data as yahoo
from lab.workloads.yahoo.query import views_per_campaign
from penstock.connectors.memory.discard import Discard
from penstock.connectors.memory.generator import Fill, Generator
from penstock.connectors.pacing import Rate
from penstock.query.connectors import Sink, Source
from penstock.query.stream.stream import Stream
from penstock.query.types import Schema

#: Events per second of every query (a number, or steps of (seconds, rate)), or a list with one for each;
#: None reads as fast as the query takes them.
Rates = Rate | list[Rate | None] | None


class Queries(Protocol):
    """What takes sources and queries: a ``penstock.App``."""

    def source(self, name: str, source: Source, event_time: str) -> Stream: ...

    def sink(self, name: str, stream: Stream, sink: Sink) -> None: ...


@dataclass(frozen=True)
class _Workload:
    """One of the benchmarks: its events and its query."""

    name: str
    fields: tuple[tuple[str, str], ...]
    vocabulary: dict[str, tuple[str, ...]]
    event_time: str
    #: ``made(seed, rate)`` has the events' ``fill`` and the query over them.
    made: Callable[[int, Rate | None], tuple[Fill, Callable[[Stream], Stream]]]


def yahoo_queries(app: Queries, n: int, rate: Rates = None, **options: Any) -> list[str]:
    """``n`` queries that count views per campaign. See :func:`mix_queries`.

    >>> from penstock.app import App
    >>> yahoo_queries(App("bench"), 2, rate=100_000)
    ['yahoo-1', 'yahoo-2']
    """
    return _add(app, cycle((YAHOO,)), n, rate, **options)


def linear_road_queries(app: Queries, n: int, rate: Rates = None, **options: Any) -> list[str]:
    """``n`` queries of tolls and accidents. See :func:`mix_queries`."""
    return _add(app, cycle((LINEAR_ROAD,)), n, rate, **options)


def taxi_queries(app: Queries, n: int, rate: Rates = None, **options: Any) -> list[str]:
    """``n`` queries of trips per pickup cell. See :func:`mix_queries`."""
    return _add(app, cycle((TAXI,)), n, rate, **options)


def shop_queries(app: Queries, n: int, rate: Rates = None, **options: Any) -> list[str]:
    """``n`` queries in turn from COMMCOUNT and Top_N. See :func:`mix_queries`.

    >>> from penstock.app import App
    >>> shop_queries(App("bench"), 2, rate=2_000)
    ['commcount-1', 'top_n-2']
    """
    return _add(app, cycle((COMMCOUNT, TOP_N)), n, rate, **options)


def mix_queries(app: Queries, n: int, rate: Rates = None, **options: Any) -> list[str]:
    """``n`` queries in turn from yahoo, linear_road and taxi; returns their names.

    Every query has a generator of its own, with a seed of its own, so no two share an operator. ``limit``
    ends each after so many events; ``sink(name)`` makes the sink of a query, by default one that counts.

    >>> from penstock.app import App
    >>> mix_queries(App("bench"), 4, rate=[1_000_000, 200_000, 500_000, 1_000_000])
    ['yahoo-1', 'linear_road-2', 'taxi-3', 'yahoo-4']
    """
    return _add(app, cycle((YAHOO, LINEAR_ROAD, TAXI)), n, rate, **options)


def _add(
    app: Queries,
    workloads: Iterator[_Workload],
    n: int,
    rate: Rates,
    *,
    limit: int | None = None,
    seed: int = 0,
    sink: Callable[[str], Sink] | None = None,
) -> list[str]:
    if n < 1:
        raise ValueError(f"a mix needs a query: got n={n}; write e.g. 6")
    names = []
    for number, (workload, its_rate) in enumerate(zip(workloads, _rates(rate, n), strict=False), 1):
        name = f"{workload.name}-{number}"
        fill, query = workload.made(seed + number, its_rate)
        source = Generator(
            fill,
            Schema.of(dict(workload.fields)),
            limit=limit,
            rate=its_rate,
            vocabulary=workload.vocabulary,
        )
        events = app.source(f"{name}-events", source, event_time=workload.event_time)
        app.sink(name, query(events), Discard() if sink is None else sink(name))
        names.append(name)
    return names


def _rates(rate: Rates, n: int) -> Sequence[Rate | None]:
    if not isinstance(rate, list) or (rate and isinstance(rate[0], tuple)):
        return [rate] * n  # type: ignore[list-item]
    if len(rate) != n:
        raise ValueError(
            f"one rate for each query: got {len(rate)} for {n}; write one number for all of them"
        )
    return rate


def _per_second(rate: Rate | None, otherwise: int) -> int:
    """How many events share a second of event time: as many as come in a second, where that is known."""
    return max(1, round(rate)) if isinstance(rate, int | float) else otherwise


def _yahoo(seed: int, rate: Rate | None) -> tuple[Fill, Callable[[Stream], Stream]]:
    per_second = _per_second(rate, yahoo.YahooSettings.events_per_second)
    events = yahoo.YahooEvents(yahoo.YahooSettings(seed=seed, events_per_second=per_second))
    return events.fill, lambda stream: views_per_campaign(stream, events)


def _linear_road(seed: int, rate: Rate | None) -> tuple[Fill, Callable[[Stream], Stream]]:
    # Event time runs ahead of the clock: as many cars as a rate of millions stands for are on no expressway.
    events = linear_road.LinearRoadEvents(linear_road.LinearRoadSettings(seed=seed))
    return events.fill, tolls


def _taxi(seed: int, rate: Rate | None) -> tuple[Fill, Callable[[Stream], Stream]]:
    per_second = _per_second(rate, taxi.TaxiSettings.events_per_second)
    trips = taxi.TaxiTrips(taxi.TaxiSettings(seed=seed, events_per_second=per_second))
    return trips.fill, distance_per_cell


def _shop(query: Callable[[Stream], Stream]) -> Callable[..., tuple[Fill, Callable[[Stream], Stream]]]:
    def made(seed: int, rate: Rate | None) -> tuple[Fill, Callable[[Stream], Stream]]:
        per_second = _per_second(rate, shop.ShopSettings.events_per_second)
        return shop.ShopEvents(shop.ShopSettings(seed=seed, events_per_second=per_second)).fill, query

    return made


YAHOO = _Workload("yahoo", yahoo.FIELDS, yahoo.VOCABULARY, "ts", _yahoo)
LINEAR_ROAD = _Workload("linear_road", linear_road.FIELDS, linear_road.VOCABULARY, "ts", _linear_road)
TAXI = _Workload("taxi", taxi.FIELDS, taxi.VOCABULARY, "dropoff_datetime", _taxi)
COMMCOUNT = _Workload("commcount", shop.FIELDS, shop.VOCABULARY, "ts", _shop(commcount))
TOP_N = _Workload("top_n", shop.FIELDS, shop.VOCABULARY, "ts", _shop(top_n))
