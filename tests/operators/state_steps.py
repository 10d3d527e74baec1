"""One step of every kind that keeps state, for the tests of what happens to that state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock.cep.patterns.match import Match
from penstock.cep.patterns.match_splitter import MatchSplitter
from penstock.cep.selections.shipped_detection import (
    AT,
    ShippedSplitterPart,
    ShippingSplitter,
    shipped_schema,
)
from penstock.cep.selections.splitter_pairs import Sequence as SequenceOf
from penstock.cep.selections.splitter_pairs import one_of
from penstock.cep.selections.splitter_rows import OpenSelection, RowPredicates
from penstock.memory.layout import ORDER, SUB, TIME, Layout
from penstock.operators.joins.group_join import GroupJoin
from penstock.operators.joins.interval_join import IntervalJoin
from penstock.operators.joins.window_join import WindowJoin
from penstock.operators.keyed.deduplicate import Deduplicate
from penstock.operators.keyed.process import Process
from penstock.operators.windows.cogroup import CoGroup
from penstock.operators.windows.nested_aggregate import NestedAggregate
from penstock.operators.windows.session_aggregate import SessionAggregate
from penstock.operators.windows.window_aggregate import WindowAggregate
from penstock.operators.windows.window_top import WindowTop
from penstock.query.aggregates import avg, count, count_distinct, last, max_, sum_
from penstock.query.expr import col
from penstock.query.patterns.bound import bound
from penstock.query.patterns.by_start import GIVEN
from penstock.query.patterns.degree import Degree
from penstock.query.patterns.matching import matched
from penstock.query.patterns.patterns import Pattern, event, periodic
from penstock.query.steps import (
    CoGroupSpec,
    DeduplicateSpec,
    DetectSpec,
    GroupJoinSpec,
    IntervalJoinSpec,
    MatchSplitSpec,
    NestedAggregateSpec,
    ProcessSpec,
    WindowAggregateSpec,
    WindowJoinSpec,
    WindowTopSpec,
)
from penstock.query.types import Schema
from penstock.query.user_functions import Context, Group, ProcessFunction
from penstock.query.windows import Session, Sliding
from tests.harness import Harness, Row, layout
from tests.window_cases import EVERYTHING, INPUT, TYPES, aggregate_types

Step = Callable[..., Harness]


def aggregating(window: Any, keys: Sequence[str]) -> Step:
    kind: Any = SessionAggregate if isinstance(window, Session) else WindowAggregate
    spec = WindowAggregateSpec(tuple(keys), window, tuple(EVERYTHING.items()))
    output = layout(aggregate_types(keys, EVERYTHING), TIME, [TIME, ORDER])
    return lambda **options: Harness(kind, spec, [INPUT], output, **options)


def top(k: int, window: Sliding, keys: Sequence[str], *, by_text: bool = False) -> Step:
    spec = WindowTopSpec(tuple(keys), window, k, col("speed"), True)
    if by_text:
        spec = WindowTopSpec(tuple(keys), window, k, col("town"), False, ((col("speed"), True),), ties=True)
    types = {"window_start": "timestamp", "window_end": "timestamp", "rank": "int32", **TYPES}
    output = layout(types, TIME, [TIME, ORDER, SUB])
    return lambda **options: Harness(WindowTop, spec, [INPUT], output, **options)


def joining(spec: type, *parameters: Any, keys: Sequence[str]) -> Step:
    columns = (("town", 0, "town"), ("left", 0, "lane"), ("right", 1, "speed"), ("name", 1, "town"))
    types = {"town": "string?", "left": "int32", "right": "float64?", "name": "string?"}
    kind: Any = WindowJoin if spec is WindowJoinSpec else IntervalJoin
    made = spec(tuple((key, key) for key in keys), *parameters, columns)
    return lambda **options: Harness(
        kind, made, [INPUT, INPUT], layout(types, TIME, [TIME, ORDER]), **options
    )


def listing(group: Group) -> list[Row]:
    sides = [[(row["ts"], row["speed"]) for row in side] for side in (group.left, group.right)]
    return [{"town": group.key[0], "text": f"{group.window_start} {sides}"}]


def cogrouping(window: Sliding) -> Step:
    spec = CoGroupSpec((("town", "town"), ("lane", "lane")), window, listing)
    output = layout({"town": "string?", "text": "string"}, TIME, [TIME, ORDER, SUB])
    return lambda **options: Harness(CoGroup, spec, [INPUT, INPUT], output, **options)


def nesting(window: Sliding, keys: Sequence[str], per: Sequence[str]) -> Step:
    inner = {"n": count(), "mean": avg("share"), "values": count_distinct("speed")}
    outer = {"rows": count(), "most": max_("n"), "mean": avg("mean"), "values": sum_("values")}
    spec = NestedAggregateSpec(
        tuple(keys),
        window,
        tuple(per),
        tuple(inner.items()),
        tuple(outer.items()),
        col("lane") != 3,
        col("n") < 9,
        None,
    )
    made = {"rows": "int64", "most": "int64", "mean": "float64", "values": "int64"}
    types = {**{key: TYPES[key] for key in keys}, "window_end": "timestamp", **made}
    output = layout(types, TIME, [TIME, ORDER])
    return lambda **options: Harness(NestedAggregate, spec, [INPUT], output, **options)


def group_joining(window: Sliding) -> Step:
    pair = (("lane", 0, "lane"), ("speed", 0, "speed"), ("lane_right", 1, "lane"), ("other", 1, "speed"))
    aggregates = {"n": count(), "total": sum_("other"), "latest": last("lane_right")}
    columns = {name: col(name) for name in ("window_end", "town", "lane", "n", "total", "latest")}
    where = col("lane_right") >= col("lane")
    spec = GroupJoinSpec(
        (("town", "town"),), window, pair, where, tuple(aggregates.items()), tuple(columns.items())
    )
    types = {"window_end": "timestamp", "town": "string?", "lane": "int32"}
    types |= {"n": "int64", "total": "float64?", "latest": "int32?"}
    output = layout(types, TIME, [TIME, ORDER])
    return lambda **options: Harness(GroupJoin, spec, [INPUT, INPUT], output, **options)


def deduplicating(within: int | None) -> Step:
    spec = DeduplicateSpec(("town", "speed"), within)
    return lambda **options: Harness(Deduplicate, spec, [INPUT], layout(TYPES, "ts", [ORDER, SUB]), **options)


class Remembering(ProcessFunction):
    """Counts, remembers a string, sets timers ahead and takes some back; may forget its keys now and then."""

    def __init__(self, clears: bool = False) -> None:
        self.clears = clears

    def on_event(self, event: Row, context: Context) -> Iterable[Row]:
        state = context.state
        state["count"] += 1
        state["last"], before = event["town"], state["last"]
        state["sum"] += event["share"]
        context.set_timer(event["ts"] + 10)
        if event["seen"]:
            context.set_timer(event["ts"] - 3)
            context.delete_timer(context.time + 10 - event["lane"])
        return [{"text": f"{state['count']} {state['sum']} {before}"}]

    def on_timer(self, time_us: int, context: Context) -> Iterable[Row]:
        context.state["count"] += 100
        if context.state["count"] % 3 == 0:
            context.set_timer(time_us + 4)
        text = f"timer {time_us} at {context.time}: {context.state}"
        if self.clears and context.state["count"] % 2 == 0:
            context.clear()
        return [{"text": text}]


def processing(keys: Sequence[str], ttl_us: int | None = None, clears: bool = False) -> Step:
    state = Schema.of({"count": "int64", "sum": "float32", "last": "string?", "name": "string"})
    spec = ProcessSpec(tuple(keys), Remembering(clears), state, ttl_us)
    output = layout({"text": "string"}, TIME, [TIME, ORDER, SUB])
    return lambda **options: Harness(Process, spec, [INPUT], output, **options)


def matching(pattern: Pattern, keys: Sequence[str], **options: Any) -> Step:
    given = {
        "within": "15us", "within_events": None, "contiguity": None, "after_match": "no_skip",
        "consumption": "unrestricted", "rows": "one", "max_runs": 10_000,
    } | options  # fmt: skip
    spec, schema = matched(Schema.of(TYPES), tuple(keys), pattern, None, **given)
    output = layout(schema, TIME, [TIME, ORDER, SUB])
    return lambda **more: Harness(Match, spec, [INPUT], output, **more)


def splitting(pattern: Pattern, degree: Degree, **options: Any) -> Step:
    given = {
        "within": "15us", "within_events": None, "contiguity": None, "after_match": "no_skip",
        "consumption": "unrestricted", "rows": "one", "max_runs": 10_000,
    } | options  # fmt: skip
    match, _ = matched(Schema.of(TYPES), (), pattern, None, **given)
    output = layout(Schema([*Schema.of(TYPES), *GIVEN]), "ts", [ORDER, SUB])
    spec = MatchSplitSpec(match, degree)
    return lambda **more: Harness(MatchSplitter, spec, [INPUT], output, **more)


class Nothing:
    """A detector that is never asked."""


def third_of_its_lane(selection: OpenSelection, event: Row, state: Row) -> bool:
    """With state of its own, and state that all share."""
    if event["lane"] == selection.start_event["lane"]:
        selection.state["seen"] = [*selection.state.get("seen", []), event["town"]]
    state["asked"] = state.get("asked", 0) + 1
    return len(selection.state.get("seen", ())) == 3 or state["asked"] % 50 == 0


def cutting(selections: Callable[[], Any]) -> Step:
    degree = Degree(1, 4, ((3, 3), (9, 4), (20, 2)))
    spec: Any = ShippedSplitterPart(DetectSpec(selections, Nothing, (), degree, "round_robin"))
    output = Layout(shipped_schema(Schema.of(TYPES)), AT)
    return lambda **options: Harness(ShippingSplitter, spec, [INPUT], output, **options)


_SLOW = event("slow", col("speed") < 2.0)
_FAST = event("fast", (col("speed") >= _SLOW["speed"]) & (bound("fast").count() < 2))
_SEEN = event("seen", col("seen"))
_LATER = event("later", col("speed") >= 1.0)

#: name → (how to make one, its key columns, inputs)
STEPS: dict[str, tuple[Step, tuple[str, ...], int]] = {
    "tumbling": (aggregating(Sliding(10, 10), ["town"]), ("town",), 1),
    "sliding": (aggregating(Sliding(20, 5), ["speed", "town"]), ("speed", "town"), 1),
    "sliding with gaps": (aggregating(Sliding(5, 20), ["share", "seen"]), ("share", "seen"), 1),
    "without key": (aggregating(Sliding(10, 4), []), (), 1),
    "session": (aggregating(Session(9), ["town"]), ("town",), 1),
    "nested": (nesting(Sliding(20, 20), ["town"], ["lane"]), ("town",), 1),
    "sliding nested": (nesting(Sliding(20, 5), ["speed", "seen"], ["town", "lane"]), ("speed", "seen"), 1),
    "nested without key": (nesting(Sliding(10, 10), [], ["town"]), (), 1),
    "top": (top(2, Sliding(20, 20), ["town"]), ("town",), 1),
    "sliding top": (top(3, Sliding(30, 10), ["lane"]), ("lane",), 1),
    "large top": (top(100, Sliding(30, 10), []), (), 1),
    "top by text": (top(2, Sliding(20, 10), ["lane"], by_text=True), ("lane",), 1),
    "join": (joining(WindowJoinSpec, Sliding(20, 20), keys=["town"]), ("town",), 2),
    "sliding join": (joining(WindowJoinSpec, Sliding(20, 5), keys=["speed"]), ("speed",), 2),
    "interval join": (joining(IntervalJoinSpec, -7, 12, keys=["town", "share"]), ("town", "share"), 2),
    "co-group": (cogrouping(Sliding(20, 20)), ("town", "lane"), 2),
    "sliding co-group": (cogrouping(Sliding(15, 5)), ("town", "lane"), 2),
    "group join": (group_joining(Sliding(20, 20)), ("town",), 2),
    "sliding group join": (group_joining(Sliding(15, 5)), ("town",), 2),
    "deduplicate": (deduplicating(None), ("town", "speed"), 1),
    "deduplicate within": (deduplicating(25), ("town", "speed"), 1),
    "match": (matching(_SLOW >> _FAST.one_or_more() >> ~_SEEN, ["town"]), ("town",), 1),
    "match passing over": (matching(_SLOW >> (_FAST >> _SEEN).optional() >> _LATER, ["town"]), ("town",), 1),
    "match any": (matching(_SLOW >> _FAST.one_or_more(), ["lane"], contiguity="any"), ("lane",), 1),
    "match past last": (matching(_SLOW >> _FAST, [], after_match="past_last", rows="all"), (), 1),
    "match consumed": (
        matching((_SLOW & _SEEN).times(1, 2), ["town"], consumption="consumed", within_events=4),
        ("town",),
        1,
    ),
    "match periodically": (matching(periodic(_SLOW, every="4us", until=_SEEN), ["town"]), ("town",), 1),
    "match splitter": (splitting(_SLOW >> _FAST.one_or_more(), Degree(3, changes=((9, 1), (20, 4)))), (), 1),
    "match splitter, counted": (splitting(_SLOW >> _SEEN, Degree(2), within=None, within_events=3), (), 1),
    "match splitter, strict": (splitting(_SLOW >> _SEEN, Degree(2), within=None, contiguity="strict"), (), 1),
    "process": (processing(["town", "speed"]), ("town", "speed"), 1),
    "process without key": (processing([]), (), 1),
    "forgetting process": (processing(["town"], ttl_us=12), ("town",), 1),
    "process that clears": (processing(["town", "lane"], clears=True), ("town", "lane"), 1),
    "splitter": (
        cutting(lambda: SequenceOf(one_of("seen", True), one_of("town", "a", "x"), by="lane")),
        (),
        1,
    ),
    "splitter by rows": (
        cutting(lambda: RowPredicates(lambda event, _: event["seen"] is True, third_of_its_lane)),
        (),
        1,
    ),
}


def plain(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value + 0.0:.9g}"
    return value


def counted(rows: Iterable[Row]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple((name, plain(value)) for name, value in row.items()) for row in rows)
