"""The steps of random graphs over the slim schema, from one stream and from two."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st

from penstock.query.aggregates import (
    count,
    first,
    last,
    max_,
    min_,
    sum_,
)
from penstock.query.expr import Expr, coalesce, col
from penstock.query.patterns.bound import bound
from penstock.query.patterns.patterns import event
from penstock.query.stream.stream import Stream
from penstock.query.user_functions import Group
from tests.graphs.graph_steps import SLIM, Draw, Made, Step, bursts, by, modes, pick, us, windows
from tests.reference import Row


def filter_slim(draw: Draw, slim: Stream) -> Made:
    c = draw(st.integers(-3, 3))
    return Made(slim.filter((col("v") >= float(c)) | (col("k") != c)))


def compute_slim(draw: Draw, slim: Stream) -> Made:
    c = draw(st.integers(0, 3))
    return Made(slim, (col("k") * 2 - c, col("v") / (col("n") - c), col("n") // 3))


def explode_slim(draw: Draw, slim: Stream) -> Made:
    rows: list[dict[str, Expr]] = [{"v": col("v"), "n": col("n")}, {"v": col("v") * 2.0, "n": col("n") + 1}]
    return Made(slim.explode(rows, where=[col("k").is_not_null(), None], keep=["k"]))


def _slim_copies(event: Row) -> list[Row]:
    return [{**event, "n": 2 * event["n"] % 2**40 + copy} for copy in range(event["n"] % 3)]


def flat_map_slim(draw: Draw, slim: Stream) -> Made:
    return Made(slim.flat_map(_slim_copies, output=SLIM))


def deduplicate_slim(draw: Draw, slim: Stream) -> Made:
    return Made(slim.deduplicate("k", within=us(pick(draw, None, 5, 30))))


def aggregate_slim(draw: Draw, slim: Stream) -> Made:
    keyed, k = by(draw, slim, ("k",), ())
    result = keyed.window(windows(draw)).agg(n=count(), total=sum_("v"), opening=first("n"))
    return Made(result, (k, col("total"), col("n") + col("opening") % 100))


def nested_slim(draw: Draw, slim: Stream) -> Made:
    keyed, k = by(draw, slim, ("k",), ())
    result = keyed.window(windows(draw, sessions=False)).per("v", n=sum_("n")).agg(n=count(), least=min_("n"))
    return Made(result, (k, col("least"), col("n")))


def top_slim(draw: Draw, slim: Stream) -> Made:
    keyed, _ = by(draw, slim, ("k",), ())
    best = keyed.window(windows(draw, sessions=False)).top(2, by="v")
    return Made(best, (col("k"), col("v"), col("n") + col("rank")))


def process_slim(draw: Draw, slim: Stream) -> Made:
    return bursts(draw, slim, "v", "n")


# -- two slim streams to one -----------------------------------------------------------------------


def union_slims(draw: Draw, one: Stream, other: Stream) -> Made:
    return Made(one.union(other))


def join_slims(draw: Draw, one: Stream, other: Stream) -> Made:
    joined = one.join(other, on="k", window=windows(draw, sessions=False))
    return Made(joined, (col("k"), col("v") + col("v_right"), col("n") - col("n_right")))


def interval_join_slims(draw: Draw, one: Stream, other: Stream) -> Made:
    lower, upper = (timedelta(microseconds=us) for us in pick(draw, (-4, 4), (0, 10), (-12, -2)))
    joined = one.interval_join(other, on="k", lower=lower, upper=upper)
    return Made(joined, (col("k"), col("v_right"), col("n") + col("n_right")))


def _sizes(group: Group) -> list[Row]:
    """The order of both sides shows in the first row; there is a second one if the left is not empty."""
    mixed = sum(place * (event["n"] % 1000) for place, event in enumerate(group.left, 1))
    mixed += sum(7 * place * (event["n"] % 1000) for place, event in enumerate(group.right, 1))
    rows = [{"k": group.key[0], "v": float(len(group.right)), "n": mixed}]
    return rows + [{"k": None, "v": event["v"], "n": event["n"]} for event in group.left[:1]]


def cogroup_slims(draw: Draw, one: Stream, other: Stream) -> Made:
    window = windows(draw, sessions=False)
    return Made(one.cogroup(other, on="k", window=window, function=_sizes, output=SLIM))


def group_join_slims(draw: Draw, one: Stream, other: Stream) -> Made:
    window, c = windows(draw, sessions=False), draw(st.integers(-3, 3))
    aggregates = {"matches": count(), "total": sum_("v_right"), "latest": last("n_right"), "k2": max_("k")}
    where = pick(draw, None, col("n_right") % 4 > c, (col("n") + c > col("n_right")) | (col("v") > 0.0))
    if draw(st.booleans()):
        joined = one.group_join(other, "k", window, aggregates, where=where)
        return Made(joined, (col("k"), col("total") + col("v"), col("n") % 1000 + col("matches")))
    chosen = {"v": col("total") * 2.0, "n": coalesce(col("latest"), col("n")) + col("matches")}
    made = one.group_join(other, "k", window, aggregates, where=where, select=["window_end", "k", chosen])
    return Made(made, (col("k"), col("v"), col("n")))


def match_slim(draw: Draw, slim: Stream) -> Made:
    some, more = event("some", col("v") > 0.0), event("more", col("n") != bound("some")["n"])
    last, even = event("last", col("v") < 1.0), event("even", col("n") % 2 == 0)
    result = slim.key_by("k").match(some >> (more >> even).optional() >> last, **modes(draw))
    return Made(result.select("k", v=col("some_v") + col("last_v"), n=col("last_n")))


SLIM_TO_SLIM: tuple[Step, ...] = (
    filter_slim,
    compute_slim,
    explode_slim,
    flat_map_slim,
    deduplicate_slim,
    aggregate_slim,
    nested_slim,
    top_slim,
    process_slim,
    match_slim,
)
TWO_SLIMS = (union_slims, join_slims, interval_join_slims, cogroup_slims, group_join_slims)
