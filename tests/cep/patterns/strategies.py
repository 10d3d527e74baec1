"""Random patterns, ways to match them, and streams with many ties and few values."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from penstock.query.errors import QueryError
from penstock.query.expr import Expr, col
from penstock.query.patterns.bound import bound, previous
from penstock.query.patterns.checks import bound_names
from penstock.query.patterns.matching import matched
from penstock.query.patterns.patterns import Pattern, event
from penstock.query.steps import MatchSpec
from penstock.query.types import Schema

SCHEMA = Schema(ts="timestamp", k="int32", x="int64?", y="int64")


@st.composite
def conditions(draw: Any, name: str, others: list[str], references: bool) -> Expr:
    """On the event itself, often; on earlier ones, sometimes. Many events fit several conditions."""
    c = draw(st.integers(0, 3))
    # One shape for all, so that kernels are shared: what differs are the constants.
    ranges = ((0, 3), (0, 3), (c, c), (c, 3), (0, c), (-1, -1) if draw(st.integers(0, 9)) == 0 else (1, 2))
    low, high = draw(st.sampled_from(ranges))
    nulls = draw(st.booleans())
    local = col("y").between(low, high) & (col("x") != draw(st.integers(-1, 3))).fill_null(nulls)
    if not references or draw(st.integers(0, 2)):
        return local
    other = bound(draw(st.sampled_from([*others, name])))
    more = draw(
        st.sampled_from(
            (
                col("y") >= other["y"],
                col("x") != other.first("x"),
                other.count() < 2,
                other.sum("x").fill_null(0) + col("y") < 6,
                (other.max("x") >= col("y")) | other["y"].is_null(),
                other.avg("y").fill_null(1.0) > other.min("x").fill_null(0),
                previous("y").fill_null(0) <= col("y"),
            )
        )
    )
    return local & more


@st.composite
def forks(draw: Any, references: bool) -> Pattern:
    """Patterns with a part that an event can begin although the match then goes on without that part."""
    names = [f"e{number}" for number in range(5)]
    a, b, c, d, e = (event(name, draw(conditions(name, names, references))) for name in names)
    inner = draw(st.sampled_from((b >> c, b.times(2), b & c, b >> ~e >> c, b >> c.one_or_more())))
    part = draw(
        st.sampled_from(
            (
                inner.optional() >> d,
                inner.optional().reluctant() >> d,
                inner.one_or_more() >> d,
                inner.times(1, 2).reluctant() >> d,
                inner | d,
                d | inner,
                d & inner,
                inner.optional(),
                inner.optional() >> d.optional(),
            )
        )
    )
    if any(one.name == "e4" for one in inner.events()) or draw(st.booleans()):
        return a >> part
    return draw(st.sampled_from((a >> part >> ~e, (a >> part).times(1, 2), a >> ~e >> part, (a >> part) | e)))


@st.composite
def patterns(draw: Any, references: bool = True) -> Pattern:
    if draw(st.integers(0, 2)) == 0:
        return draw(forks(references))
    names = [f"e{number}" for number in range(draw(st.integers(2, 5)))]
    unused = list(names)

    def single() -> Any:
        name = unused.pop(0)
        return event(name, draw(conditions(name, names, references)))

    def repeated(one: Pattern) -> Pattern:
        least, most = draw(
            st.sampled_from(((0, 1), (1, None), (0, None), (2, None), (1, 2), (2, 2), (0, 2), (1, 3)))
        )
        again = one.times(least, most)
        return again if draw(st.booleans()) else again.reluctant()

    def grown(depth: int) -> Pattern:
        kind = draw(st.sampled_from(("event", "event", "repeat", "then", "then", "or", "and", "not")))
        if depth == 0 or len(unused) < 2 or kind in ("event", "repeat"):
            one: Pattern = single()
            return repeated(one) if kind == "repeat" else one
        left = grown(depth - 1)
        if not unused:
            return left
        if kind == "not":
            negated = ~single()
            return left >> negated >> grown(depth - 1) if unused and draw(st.booleans()) else left >> negated
        right = grown(depth - 1)
        both = left | right if kind == "or" else left & right if kind == "and" else left >> right
        return repeated(both) if draw(st.integers(0, 5)) == 0 else both

    return grown(3)


@st.composite
def specs(
    draw: Any,
    keys: tuple[str, ...] = (),
    references: bool = True,
    contiguity: tuple[str, ...] = ("strict", "next", "any"),
    after: tuple[str, ...] = ("no_skip", "to_next", "past_last"),
    consumption: tuple[str, ...] = ("unrestricted", "consumed"),
    rows: tuple[str, ...] = ("one",),
) -> tuple[MatchSpec, Schema] | None:
    """A pattern and how to match it; None where it is refused."""
    pattern = draw(patterns(references))
    within, within_events = draw(
        st.sampled_from((("4us", None), ("9us", None), (None, 4), ("6us", 5), ("0us", None)))
    )
    mode = draw(st.sampled_from(contiguity))
    if mode == "strict" and draw(st.booleans()):
        within = within_events = None
    try:
        return matched(
            SCHEMA,
            keys,
            pattern,
            _output(pattern),
            within,
            within_events,
            mode,
            draw(st.sampled_from(after)),
            draw(st.sampled_from(consumption)),
            draw(st.sampled_from(rows)),
            1_000_000,
        )
    except QueryError:
        return None


def _output(pattern: Pattern) -> dict[str, Expr]:
    """A few columns of each event that can be bound; those that never can be have nulls of their own."""
    columns: dict[str, Expr] = {"latest": previous("y")}
    for one in bound_names(pattern):
        events = bound(one)
        columns |= {f"{one}_n": events.count(), f"{one}_x": events["x"], f"{one}_first": events.first("ts")}
    return columns


@st.composite
def streams(draw: Any, most: int = 10) -> list[dict[str, Any]]:
    """Rows in the order of time, several at one time now and then."""
    time, rows = draw(st.sampled_from((0, -5, 1_700_000_000_000_000))), []
    for _ in range(draw(st.integers(most // 2, most) | st.just(0))):
        time += draw(st.sampled_from((0, 1, 1, 2, 5)))
        rows.append(
            {
                "ts": time,
                "k": draw(st.integers(0, 1)),
                "x": draw(st.sampled_from((None, 0, 1, 2, 3))),
                "y": draw(st.integers(0, 3)),
            }
        )
    return rows
