"""The menu of steps that random graphs are made of, written through the public API.

Kernels are compiled per shape, so there are few shapes, and constants are random: a few steps per operator
over the two sources, and a slim schema that every step can return to, so that any step can follow any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from penstock.query.aggregates import (
    arg_max,
    arg_min,
    avg,
    collect_list,
    count,
    count_distinct,
    first,
    last,
    max_,
    median,
    min_,
    stddev,
    sum_,
    variance,
)
from penstock.query.expr import Expr, coalesce, col, least, lit, when
from penstock.query.patterns.bound import bound
from penstock.query.patterns.patterns import event
from penstock.query.stream.stream import Stream
from penstock.query.types import Schema
from penstock.query.user_functions import Context, ProcessFunction
from penstock.query.windows import Window, session, sliding, tumbling
from tests.reference import Row

Draw = Callable[[st.SearchStrategy[Any]], Any]

SLIM = Schema(k="int32?", v="float64?", n="int64")


@dataclass(frozen=True)
class Made:
    """What a step made, and how the slim columns follow from it (None: it is slim as it is)."""

    stream: Stream
    slimming: tuple[Expr, Expr, Expr] | None = None

    def slim(self) -> Stream:
        """The slim schema, whatever the nullability of what it is made of."""
        if self.slimming is None:
            return self.stream
        k, v, n = self.slimming
        return self.stream.select(
            k=when(lit(True), k), v=when(lit(True), v.cast("float64")), n=coalesce(n.cast("int64"), 0)
        )


def pick(draw: Draw, *choices: Any) -> Any:
    return draw(st.sampled_from(choices))


def us(value: int | None) -> str | None:
    return None if value is None else f"{value}us"


def windows(draw: Draw, *, sessions: bool = True) -> Window:
    """Constants vary, the kinds are three."""
    kind = pick(draw, "tumbling", "sliding", "session") if sessions else pick(draw, "tumbling", "sliding")
    if kind == "tumbling":
        return tumbling(f"{pick(draw, 7, 20, 45)}us")
    if kind == "sliding":
        size, every = pick(draw, (20, 10), (30, 20), (12, 12), (21, 3))
        return sliding(f"{size}us", f"{every}us", offset="5us")
    return session(f"{pick(draw, 2, 5, 15)}us")


def by(draw: Draw, stream: Stream, *choices: tuple[str, ...]) -> tuple[Stream, Expr]:
    keys = pick(draw, *choices)
    return stream.key_by(*keys) if keys else stream, col("k") if "k" in keys else lit(1, "int32")


# -- patterns --------------------------------------------------------------------------------------


def modes(draw: Draw) -> dict[str, Any]:
    contiguity = pick(draw, "strict", "next", "next", "any")
    return {
        "within": f"{pick(draw, 5, 15, 40)}us",
        "contiguity": contiguity,
        "after_match": pick(draw, "no_skip", "to_next", "past_last"),
        "consumption": pick(draw, "unrestricted", "consumed"),
        "max_runs": 100_000,
    }


def match_cars(draw: Draw, cars: Stream) -> Made:
    """A repetition, a condition on earlier events, a negation between or at the end; by key or over all."""
    c = draw(st.integers(-1, 2))
    keyed, k = by(draw, cars, ("k",), ("g", "f"), ())
    low = event("low", col("y") < float(c))
    rise = event("rise", (col("y") >= low["y"]) & (bound("rise").count() < 3))
    stop = ~event("stop", col("n").is_null() & (col("k") == c))
    pattern = pick(draw, low >> rise.one_or_more() >> stop, low >> stop >> rise.times(1, 2))
    output = {
        "low": low["y"],
        "rises": rise.count(),
        "total": rise.sum("y"),
        "mean": rise.avg("x"),
        "name": rise["g"],
    }
    result = keyed.match(pattern, output, **modes(draw))
    return Made(result, (k, col("total"), col("rises")))


def match_rows_of_cars(draw: Draw, cars: Stream) -> Made:
    c = draw(st.integers(-1, 2))
    low, high = event("low", col("y") < float(c)), event("high", col("y") >= float(c))
    result = cars.key_by("k").match((low & high) >> ~event("odd", col("f")), rows="all", **modes(draw))
    return Made(result, (col("k"), col("y"), col("id")))


# -- cars to cars ----------------------------------------------------------------------------------


def filter_cars(draw: Draw, cars: Stream) -> Stream:
    c = draw(st.integers(-3, 3))
    if draw(st.booleans()):
        return cars.filter(col("g").is_in(pick(draw, ["a", "b"], ["", "zz"])) & (col("k") != c))
    return cars.filter((col("x") > float(c)) | col("n").is_null() | ~(col("f") & (col("y") <= float(c))))


def widen_cars(draw: Draw, cars: Stream) -> Stream:
    c = draw(st.integers(0, 3))
    return cars.with_columns(
        y=col("y") * float(c) + col("x").fill_null(1.0),
        n=(col("n") + c) % 4,
        g=when(col("k") == c, lit("a")).otherwise(col("g").lower()),
        w=least(col("w"), col("w") * 2),
    )


def move_time(draw: Draw, cars: Stream) -> Stream:
    """Writes over the column that held the event time: the event time itself stays."""
    return cars.with_columns(ts=col("ts").truncate(f"{pick(draw, 10, 25)}us"))


def deduplicate_cars(draw: Draw, cars: Stream) -> Stream:
    return cars.deduplicate(*pick(draw, ("k",), ("g", "f")), within=us(pick(draw, None, 3, 20)))


# -- cars to anything ------------------------------------------------------------------------------


def select_cars(draw: Draw, cars: Stream) -> Made:
    return Made(cars, (when(col("y") > -25.0, col("k")), col("x"), col("id")))  # null is a key too


def explode_cars(draw: Draw, cars: Stream) -> Made:
    c = draw(st.integers(-3, 3))
    rows: list[dict[str, Expr]] = [
        {"v": col("x"), "n": col("id"), "word": col("g").concat(":", col("id").cast("string"))},
        {"v": col("y"), "n": lit(c), "word": lit("second")},
        {"v": col("x") + 1.0, "n": col("id") * 2, "word": lit("third")},
    ]
    exploded = cars.explode(rows, where=[None, col("y") > float(c), col("f")], keep=["k"])
    return Made(exploded, (col("k"), col("v"), col("n")))


def _copies(event: Row) -> list[Row]:
    """As many rows as the key says, from none to three."""
    k, x, number = event["k"], event["x"], event["id"]
    return [{"k": k, "v": x, "n": number + 10_000 * copy} for copy in range(k)]


def flat_map_cars(draw: Draw, cars: Stream) -> Made:
    return Made(cars.flat_map(_copies, output=SLIM))


def _failing_copies(event: Row) -> Iterator[Row]:
    yield from _copies(event)
    if event["id"] % 5 == 1:
        raise ValueError(f"copies of {event['id']}")


def _negated(batch: pa.RecordBatch) -> pa.RecordBatch:
    values = pc.negate(batch.column("x"))
    return pa.RecordBatch.from_pydict({"k": batch.column("k"), "v": values, "n": batch.column("id")})


def _odd_ids_twice(batch: pa.RecordBatch) -> pa.RecordBatch:
    ids: list[Any] = batch.column("id").to_pylist()
    rows = pa.array([row for row, number in enumerate(ids) for _ in range(number % 3)], pa.int64())
    names = {"k": "k", "v": "x", "n": "id"}
    taken = {name: batch.column(ours).take(rows) for name, ours in names.items()}
    return pa.RecordBatch.from_pydict({**taken, "_row": rows})


def batch_cars(draw: Draw, cars: Stream) -> Made:
    return Made(cars.batch(pick(draw, _negated, _odd_ids_twice), output=SLIM, arrow=True))


def _shifted(columns: dict[str, Any]) -> dict[str, Any]:
    return {"k": columns["k"], "v": columns["y"] * 0.5, "n": columns["id"] + columns["k"]}


def _even_keys_twice(columns: dict[str, Any]) -> dict[str, Any]:
    rows = np.flatnonzero(columns["k"] % 2 == 0).repeat(2)
    return {"k": columns["k"][rows], "v": columns["x"][rows], "n": columns["id"][rows], "_row": rows}


def _failing_shifted(columns: dict[str, Any]) -> dict[str, Any]:
    if (columns["id"] % 5 == 2).any():
        raise ArithmeticError("shifted")
    return _shifted(columns)


def _failing_negated(batch: pa.RecordBatch) -> pa.RecordBatch:
    if any(number % 7 == 3 for number in batch.column("id").to_pylist()):
        raise ArithmeticError("negated")
    return _negated(batch)


def numpy_batch_cars(draw: Draw, cars: Stream) -> Made:
    return Made(cars.batch(pick(draw, _shifted, _even_keys_twice), output=SLIM))


_RATES = pa.table({"key": pa.array([0, 1, 2], pa.int32()), "rate": pa.array([0.5, None, float("nan")])})
_NAMES = pa.table({"g": ["a", "Bä", "other"], "name": ["one", None, "three"], "size": pa.array([1, 2, 3])})


def lookup_cars(draw: Draw, cars: Stream) -> Made:
    if draw(st.booleans()):
        found = cars.lookup(_RATES, on={"k": "key"}, columns=["rate"])
        return Made(found, (col("k"), col("rate") + col("y"), col("id")))
    found = cars.lookup(_NAMES, on="g", columns={"label": "name", "size": "size"}, how="left")
    return Made(found, (col("label").length(), col("x"), col("size")))


def aggregate_cars(draw: Draw, cars: Stream) -> Made:
    keyed, k = by(draw, cars, ("k",), ("g", "f"))
    result = keyed.window(windows(draw)).agg(
        n=count(),
        seen=count("x", where=col("y") > 0.0),
        total=sum_("x"),
        most=max_("y", where=col("f")),
        mean=avg("k"),
        low=min_("w"),
    )
    return Made(result, (k, col("total"), col("n") + col("seen")))


def spread_of_cars(draw: Draw, cars: Stream) -> Made:
    keyed, k = by(draw, cars, ("x",), ())  # NaN, −0.0 and null as keys
    result = keyed.window(windows(draw)).agg(
        spread=variance("k"),
        total=sum_("n"),
        mean=avg("w"),
        earliest=min_("ts"),
        wide=variance("y"),
        usual=stddev("y"),
    )
    return Made(result, (k, col("spread"), col("total")))


def order_of_cars(draw: Draw, cars: Stream) -> Made:
    result = (
        cars.key_by("k")
        .window(windows(draw))
        .agg(
            opening=first("x"),
            best=arg_max("x", "y"),
            listed=collect_list("g", 3),
            least=arg_min("y", "n", where=col("f")),
            closing=last("g"),
            distinct=count_distinct("x"),
            middle=median("x"),
            n=last("id"),
        )
    )
    return Made(
        result,
        (
            col("k"),
            col("opening") + col("best") + col("least"),
            col("distinct") + col("n") + col("listed").length(),
        ),
    )


def nested_cars(draw: Draw, cars: Stream) -> Made:
    keyed, k = by(draw, cars, ("k",), ("g", "f"), ())
    window, c = windows(draw, sessions=False), draw(st.integers(-3, 3))
    if draw(st.booleans()):
        grouped = keyed.window(window).per(
            "n", "x", where=col("y") > float(c), having=col("seen") > 1, seen=count()
        )
        result = grouped.agg(rows=count(), most=max_("seen"), values=count_distinct("x"), total=sum_("n"))
        return Made(result, (k, col("total"), col("rows") + col("most")))
    grouped = keyed.window(window).per("id", mean=avg("x"), opening=first("y"), distinct=count_distinct("w"))
    result = grouped.agg(mean=avg("mean"), low=min_("opening"), rows=count(), having=col("rows") > c)
    return Made(result, (k, col("mean"), col("rows")))


def top_cars(draw: Draw, cars: Stream) -> Made:
    keyed, _ = by(draw, cars, ("k",), ())
    window = windows(draw, sessions=False)
    k = draw(st.integers(1, 4))
    if draw(st.booleans()):
        best = keyed.window(window).top(k, by="x", descending=draw(st.booleans()))
    else:
        directions = draw(st.lists(st.booleans(), min_size=2, max_size=2))
        best = keyed.window(window).top(k, ["g", "x"], directions, ties=draw(st.booleans()))
    return Made(best, (col("k"), col("x"), col("id") * 10 + col("rank")))


class Bursts(ProcessFunction):
    """Per key, says when it was quiet for a while; some timers are in the past, most are deleted again."""

    def __init__(self, quiet_us: int, value: str, number: str, clears: bool) -> None:
        self.quiet_us, self.value, self.number, self.clears = quiet_us, value, number, clears

    def on_event(self, event: Row, context: Context) -> list[Row]:
        state = context.state
        if state["until"] is not None:
            context.delete_timer(state["until"])
        state["until"] = context.time + self.quiet_us
        context.set_timer(state["until"])
        if event[self.number] % 7 == 0:
            context.set_timer(context.time - 5)
        state["n"] += 1
        state["last"] = event[self.value]
        return [{"k": context.key[0], "v": event[self.value], "n": state["n"]}] if state["n"] % 2 else []

    def on_timer(self, time_us: int, context: Context) -> list[Row]:
        state = context.state
        if time_us != state["until"]:
            return [{"k": context.key[0], "v": None, "n": -1}]
        n, state["n"], state["until"], last = state["n"], 0, None, state["last"]
        if self.clears:
            context.clear()
        return [{"k": context.key[0], "v": last, "n": n + copy} for copy in range(2)]


_BURST_STATE = Schema(n="int64", until="timestamp?", last="float64?")


class FailingBursts(Bursts):
    """Fails for some events and timers, after it has changed state and timers."""

    def on_event(self, event: Row, context: Context) -> Iterator[Row]:  # type: ignore[override]
        yield from super().on_event(event, context)
        if event[self.number] % 5 == 1:
            context.clear()
            raise ValueError(f"event {event[self.number]}")

    def on_timer(self, time_us: int, context: Context) -> Iterator[Row]:  # type: ignore[override]
        yield from super().on_timer(time_us, context)
        if time_us % 3 == 0:
            context.set_timer(time_us + 1)
            raise KeyError(time_us)


def failing_cars(draw: Draw, cars: Stream) -> Made:
    """Functions that fail for some events, which are set aside: ``failed`` has them."""
    aside: dict[str, Any] = {"output": SLIM, "on_error": "set_aside"}
    which = draw(st.integers(0, 3))
    if which == 0:
        return Made(cars.flat_map(_failing_copies, **aside))
    if which == 1:
        return Made(cars.batch(_failing_shifted, **aside))
    if which == 2:
        return Made(cars.batch(_failing_negated, arrow=True, **aside))
    function = FailingBursts(pick(draw, 3, 12), "x", "id", draw(st.booleans()))
    ttl = pick(draw, None, "4us", "30us")
    return Made(cars.key_by("k").process(function, state=_BURST_STATE, ttl=ttl, **aside))


def bursts(draw: Draw, stream: Stream, value: str, number: str) -> Made:
    function = Bursts(pick(draw, 3, 12), value, number, draw(st.booleans()))
    ttl = pick(draw, None, "4us", "12us", "30us")
    return Made(stream.key_by("k").process(function, output=SLIM, state=_BURST_STATE, ttl=ttl))


def process_cars(draw: Draw, cars: Stream) -> Made:
    return bursts(draw, cars, "x", "id")


def late_cars(draw: Draw, cars: Stream) -> Made:
    """What an operator left out. Late events stay late, so nothing that depends on time can follow."""
    made = pick(draw, aggregate_cars, top_cars, process_cars)(draw, cars)
    return Made(made.stream.late(), (col("k"), col("x"), col("id")))


Step = Callable[[Draw, Stream], Made]

CARS_TO_CARS = (filter_cars, widen_cars, move_time, deduplicate_cars)
CARS_TO_ANY: tuple[Step, ...] = (
    select_cars,
    explode_cars,
    flat_map_cars,
    batch_cars,
    numpy_batch_cars,
    lookup_cars,
    aggregate_cars,
    spread_of_cars,
    order_of_cars,
    nested_cars,
    top_cars,
    process_cars,
    failing_cars,
    match_cars,
    match_rows_of_cars,
)
