"""Random graphs over random data, and a fixed catalogue of graphs with every operator.

A drawn graph is a record of choices: it can be written again, with fresh sinks, as often as a test wants to
run it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.query.aggregates import count, max_
from penstock.query.expr import col
from penstock.query.stream.stream import Stream
from penstock.query.windows import tumbling
from tests.graphs import graph_slim_steps as slims
from tests.graphs import graph_steps as steps
from tests.graphs.graph_data import ADS, CARS, DataShape, Partitions, data_shapes, make_rows
from tests.graphs.graph_slim_steps import SLIM_TO_SLIM, TWO_SLIMS
from tests.graphs.graph_steps import CARS_TO_ANY, CARS_TO_CARS, Draw, Made
from tests.reference import Row

Queries = dict[str, Stream]
Write = Callable[[Draw, Stream, Stream], Queries]


@dataclass(frozen=True)
class Drawn:
    """A graph and its data, as choices: what to write, over which rows."""

    write: Write
    shapes: dict[str, DataShape]
    choices: tuple[Any, ...]

    def in_order(self) -> Drawn:
        """The same graph over sources that promise order."""
        return replace(self, shapes={name: shape.in_order() for name, shape in self.shapes.items()})

    def build(self) -> Built:
        """A new app with these queries and empty sinks."""
        return _build(self.write, self.shapes, _replay(iter(self.choices)))


@dataclass(frozen=True)
class Built:
    """An app with its queries written, ready to run once."""

    app: ps.App
    sinks: dict[str, Any]
    inputs: dict[str, list[list[Row]]] = field(repr=False)

    def results(self) -> dict[str, list[Row]]:
        """What the sinks hold after a run."""
        return {name: sink.rows() for name, sink in self.sinks.items()}


def _build(write: Write, shapes: dict[str, DataShape], draw: Draw) -> Built:
    app = ps.App("random")
    inputs = {name: make_rows(shape) for name, shape in shapes.items()}
    streams = [
        app.source(
            name,
            Partitions(inputs[name], shape),
            event_time=shape.schema.names[0],
            lateness=f"{shape.lateness_us}us",
        )
        for name, shape in shapes.items()
    ]
    sinks = {}
    for name, stream in write(draw, *streams).items():
        sinks[name] = ps.sinks.Memory()
        app.sink(name, stream, sinks[name])
    return Built(app, sinks, inputs)


@st.composite
def _random_data(draw: Any) -> dict[str, DataShape]:
    start_us = draw(st.sampled_from((0, -60, 1_700_000_000_000_000)))
    return {"cars": draw(data_shapes(CARS, start_us)), "ads": draw(data_shapes(ADS, start_us))}


@st.composite
def drawn(draw: Any, write: Write) -> Drawn:
    """What ``write`` makes of random choices and random data."""
    shapes = draw(_random_data())
    choices: list[Any] = []
    empty = {name: replace(shape, rows=(0,)) for name, shape in shapes.items()}
    _build(write, empty, _recorded(draw, choices))
    return Drawn(write, shapes, tuple(choices))


def _recorded(draw: Draw, choices: list[Any]) -> Draw:
    def record(strategy: st.SearchStrategy[Any]) -> Any:
        choices.append(draw(strategy))
        return choices[-1]

    return record


def _replay(values: Iterator[Any]) -> Draw:
    return lambda _: next(values)


# -- random graphs ---------------------------------------------------------------------------------


def random_queries(draw: Draw, cars: Stream, ads: Stream) -> Queries:
    """One to four queries that may start from, join with, or repeat parts of earlier ones."""
    queries: Queries = {}
    known: list[Stream] = []  # slim streams that later queries may use
    written: list[tuple[tuple[Any, ...], tuple[Stream, ...]]] = []
    for number in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(("new", "new", "new", "again", "late", "failed")))
        if kind == "late":
            queries[f"q{number}"] = steps.late_cars(draw, cars).stream
            continue
        if kind == "failed":
            queries[f"q{number}"] = steps.failing_cars(draw, cars).stream.failed()
            continue
        choices: list[Any] = []
        if kind == "again" and written:  # the same steps written a second time: the graph may share them
            values, earlier = written[draw(st.integers(0, len(written) - 1))]
            made = _query(_replay(iter(values)), cars, ads, earlier)
        else:
            made = _query(_recorded(draw, choices), cars, ads, tuple(known))
            written.append((tuple(choices), tuple(known)))
        for _ in range(draw(st.integers(0, 2))):
            made = draw(st.sampled_from(SLIM_TO_SLIM))(draw, made.slim())
        known.append(made.slim())
        queries[f"q{number}"] = made.stream if draw(st.booleans()) else known[-1]
    return queries


def _query(draw: Draw, cars: Stream, ads: Stream, known: tuple[Stream, ...]) -> Made:
    origin = draw(st.sampled_from(("cars", "ads", "known") if known else ("cars", "ads")))
    if origin == "known":
        made = Made(known[draw(st.integers(0, len(known) - 1))])
    elif origin == "ads":
        made = _slim_ads(ads)
    else:
        for _ in range(draw(st.integers(0, 2))):
            cars = draw(st.sampled_from(CARS_TO_CARS))(draw, cars)
        made = draw(st.sampled_from(CARS_TO_ANY))(draw, cars)
    if draw(st.booleans()):
        others = [_slim_ads(ads), steps.select_cars(draw, cars), *map(Made, known)]
        other = others[draw(st.integers(0, len(others) - 1))].slim()
        made = draw(st.sampled_from(TWO_SLIMS))(draw, made.slim(), other)
    return made


random_graphs = drawn(random_queries)


def _slim_ads(ads: Stream) -> Made:
    return Made(ads, (col("k"), col("v"), col("id")))


# -- the catalogue ---------------------------------------------------------------------------------


def _of_cars(step: Callable[[Draw, Stream], Made]) -> Write:
    """As it comes, and slim; both in one graph, so that they share the operator."""

    def write(draw: Draw, cars: Stream, ads: Stream) -> Queries:
        made = step(draw, cars)
        return {"whole": made.stream, "slim": made.slim()}

    return write


def _then(*chain: Callable[[Draw, Stream], Made]) -> Write:
    def write(draw: Draw, cars: Stream, ads: Stream) -> Queries:
        made = chain[0](draw, cars)
        for step in chain[1:]:
            made = step(draw, made.slim())
        return {"whole": made.stream}

    return write


def _with_ads(
    step: Callable[[Draw, Stream, Stream], Made],
    before: Callable[[Draw, Stream], Made] = steps.select_cars,
    after: Callable[[Draw, Stream], Made] | None = None,
    late: bool = False,
) -> Write:
    def write(draw: Draw, cars: Stream, ads: Stream) -> Queries:
        made = step(draw, before(draw, cars).slim(), _slim_ads(ads).slim())
        queries = {"whole": made.stream}
        if late:
            queries |= {"late_left": made.stream.late(), "late_right": made.stream.late("right")}
        if after is not None:
            queries["after"] = after(draw, made.slim()).stream
        return queries

    return write


def _both_windowed(draw: Draw, cars: Stream, ads: Stream) -> Queries:
    left = steps.aggregate_cars(draw, cars).slim()
    right = slims.aggregate_slim(draw, _slim_ads(ads).slim()).slim()
    joined, near = (step(draw, left, right) for step in (slims.join_slims, slims.interval_join_slims))
    return {"joined": joined.stream, "near": near.stream}


def _shared(draw: Draw, cars: Stream, ads: Stream) -> Queries:
    """Four queries that begin alike; one reads the source as it is."""
    fast = cars.filter(col("y") > draw(st.integers(-3, 3)))
    again = draw(st.integers(-3, 3))
    return {
        "all": cars,
        "counts": steps.aggregate_cars(draw, fast).stream,
        "best": steps.top_cars(draw, cars.filter(col("y") > again)).stream,
        "same": steps.top_cars(draw, cars.filter(col("y") > again)).stream,
    }


def _failed(draw: Draw, cars: Stream, ads: Stream) -> Queries:
    """What functions failed for, as it is and counted by time, beside what they made of the rest."""
    first, second = steps.failing_cars(draw, cars).stream, steps.failing_cars(draw, cars).stream
    counted = second.failed().window(tumbling("20us")).agg(n=count(), latest=max_("id"))
    return {"made": first, "failed": first.failed(), "counted": counted}


def _cars_step(step: Callable[[Draw, Stream], Stream]) -> Write:
    def write(draw: Draw, cars: Stream, ads: Stream) -> Queries:
        return {"whole": step(draw, cars)}

    return write


CATALOGUE: dict[str, Write] = {
    "filter": _cars_step(steps.filter_cars),
    "with columns": _cars_step(steps.widen_cars),
    "event time written over": _cars_step(steps.move_time),
    "deduplicate": _cars_step(steps.deduplicate_cars),
    "select": _of_cars(steps.select_cars),
    "explode": _of_cars(steps.explode_cars),
    "flat map": _of_cars(steps.flat_map_cars),
    "arrow batch": _of_cars(steps.batch_cars),
    "numpy batch": _of_cars(steps.numpy_batch_cars),
    "lookup": _of_cars(steps.lookup_cars),
    "aggregate": _of_cars(steps.aggregate_cars),
    "spread": _of_cars(steps.spread_of_cars),
    "first, last, distinct, median": _of_cars(steps.order_of_cars),
    "top": _of_cars(steps.top_cars),
    "process": _of_cars(steps.process_cars),
    "failing functions": _failed,
    "match": _of_cars(steps.match_cars),
    "match, all rows": _of_cars(steps.match_rows_of_cars),
    "match after window": _then(steps.aggregate_cars, slims.match_slim),
    "match after match after flat map": _then(steps.flat_map_cars, slims.match_slim, slims.match_slim),
    "process after match": _then(steps.match_cars, slims.process_slim),
    "late": _of_cars(steps.late_cars),
    "union": _with_ads(slims.union_slims),
    "join": _with_ads(slims.join_slims, late=True),
    "interval join": _with_ads(slims.interval_join_slims, late=True),
    "co-group": _with_ads(slims.cogroup_slims, late=True),
    "group join": _with_ads(slims.group_join_slims, late=True),
    "nested": _of_cars(steps.nested_cars),
    "window after nested": _then(steps.nested_cars, slims.nested_slim, slims.aggregate_slim),
    "process after group join": _with_ads(slims.group_join_slims, after=slims.process_slim),
    "nested after group join of flat maps": _with_ads(
        slims.group_join_slims, before=steps.flat_map_cars, after=slims.nested_slim
    ),
    "window after window": _then(steps.aggregate_cars, slims.aggregate_slim, slims.aggregate_slim),
    "top after window": _then(steps.aggregate_cars, slims.top_slim),
    "window after top": _then(steps.top_cars, slims.aggregate_slim, slims.filter_slim),
    "process after flat map": _then(steps.flat_map_cars, slims.process_slim),
    "process after process": _then(steps.process_cars, slims.process_slim),
    "order after explode after batch": _then(steps.batch_cars, slims.explode_slim, slims.aggregate_slim),
    "top after explode after flat map": _then(steps.flat_map_cars, slims.explode_slim, slims.top_slim),
    "deduplicate after union": _with_ads(slims.union_slims, after=slims.deduplicate_slim),
    "process after union": _with_ads(slims.union_slims, after=slims.process_slim),
    "window after join": _with_ads(slims.join_slims, after=slims.aggregate_slim),
    "top after interval join": _with_ads(slims.interval_join_slims, after=slims.top_slim),
    "deduplicate after co-group": _with_ads(
        slims.cogroup_slims, before=steps.explode_cars, after=slims.deduplicate_slim
    ),
    "process after join of flat maps": _with_ads(
        slims.join_slims, before=steps.flat_map_cars, after=slims.process_slim
    ),
    "join of windows": _both_windowed,
    "shared prefixes": _shared,
}


# -- the same few for every test -------------------------------------------------------------------


def few(*names: str) -> st.SearchStrategy[Drawn]:
    """Graphs of the catalogue as queries of one app: two versions of each, over random data.

    Every test that asks gets the same versions, so that kernels are compiled once for all of them. Where the
    tests marked slow run too, versions are drawn anew each time.
    """
    write = CATALOGUE[names[0]] if len(names) == 1 else _several(names)
    if _draws_all():
        return drawn(write)
    versions = st.tuples(*(st.sampled_from(_versions(CATALOGUE[name], 2)) for name in names))
    return _over_random_data(write, versions.map(lambda chosen: sum(chosen, ())))


def few_random_graphs() -> st.SearchStrategy[Drawn]:
    """The same five random graphs for every test, over random data; new ones where slow tests run too."""
    if _draws_all():
        return random_graphs
    return _over_random_data(random_queries, st.sampled_from(_versions(random_queries, 5)))


def _draws_all() -> bool:
    return "PENSTOCK_TEST_ALL" in os.environ


def _several(names: tuple[str, ...]) -> Write:
    def write(draw: Draw, cars: Stream, ads: Stream) -> Queries:
        return {
            f"{name}: {query}".replace(" ", "_"): stream
            for name in names
            for query, stream in CATALOGUE[name](draw, cars, ads).items()
        }

    return write


@st.composite
def _over_random_data(draw: Any, write: Write, versions: st.SearchStrategy[tuple[Any, ...]]) -> Drawn:
    return Drawn(write, draw(_random_data()), draw(versions))


@cache
def _versions(write: Write, count: int) -> tuple[tuple[Any, ...], ...]:
    found: dict[str, tuple[Any, ...]] = {}

    @seed(0)
    @settings(max_examples=4 * count, phases=[Phase.generate], database=None)
    @given(drawn(write))
    def record(one: Drawn) -> None:
        found[repr(one.choices)] = one.choices

    record()
    return tuple(found.values())[-count:]  # the first ones are the plainest
