"""State by virtual partition: taken out anywhere, split and put back into any number of tasks, it changes
no result.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.memory.edges import START_OF_TIME
from penstock.memory.layout import LATE, ORDER, SUB, TIME
from penstock.memory.strings import StringPool
from penstock.operators.cogroup import CoGroup
from penstock.operators.deduplicate import Deduplicate
from penstock.operators.filter import Filter
from penstock.operators.interval_join import IntervalJoin
from penstock.operators.process import Process
from penstock.operators.session_aggregate import SessionAggregate
from penstock.operators.window_aggregate import WindowAggregate
from penstock.operators.window_join import WindowJoin
from penstock.operators.window_top import WindowTop
from penstock.query.aggregates import count, count_distinct
from penstock.query.expr import col
from penstock.query.functions import Context, Group, ProcessFunction
from penstock.query.graph import (
    CoGroupSpec,
    DeduplicateSpec,
    FilterSpec,
    IntervalJoinSpec,
    ProcessSpec,
    WindowAggregateSpec,
    WindowJoinSpec,
    WindowTopSpec,
)
from penstock.query.types import Schema
from penstock.query.windows import Session, Sliding
from penstock.state import state_file
from penstock.state.errors import StateError
from penstock.state.tables import StateTables, merge, select, virtual_partitions
from tests.harness import Harness, Row, layout
from tests.reference_aggregates import xxhash64
from tests.window_cases import EVENT, EVERYTHING, INPUT, TYPES, aggregate_types

V = 16
Step = Callable[..., Harness]


def aggregating(window: Any, keys: Sequence[str]) -> Step:
    kind: Any = SessionAggregate if isinstance(window, Session) else WindowAggregate
    spec = WindowAggregateSpec(tuple(keys), window, tuple(EVERYTHING.items()))
    output = layout(aggregate_types(keys, EVERYTHING), TIME, [TIME, ORDER])
    return lambda **options: Harness(kind, spec, [INPUT], output, **options)


def top(k: int, window: Sliding, keys: Sequence[str]) -> Step:
    spec = WindowTopSpec(tuple(keys), window, k, col("speed"), True)
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


def deduplicating(within: int | None) -> Step:
    spec = DeduplicateSpec(("town", "speed"), within)
    return lambda **options: Harness(Deduplicate, spec, [INPUT], layout(TYPES, "ts", [ORDER, SUB]), **options)


class Remembering(ProcessFunction):
    """Counts, remembers a string, sets timers ahead and takes some back."""

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
        return [{"text": f"timer {time_us} at {context.time}: {context.state}"}]


def processing(keys: Sequence[str]) -> Step:
    state = Schema.of({"count": "int64", "sum": "float32", "last": "string?", "name": "string"})
    spec = ProcessSpec(tuple(keys), Remembering(), state)
    output = layout({"text": "string"}, TIME, [TIME, ORDER, SUB])
    return lambda **options: Harness(Process, spec, [INPUT], output, **options)


#: name → (how to make one, its key columns, inputs)
STEPS: dict[str, tuple[Step, tuple[str, ...], int]] = {
    "tumbling": (aggregating(Sliding(10, 10), ["town"]), ("town",), 1),
    "sliding": (aggregating(Sliding(20, 5), ["speed", "town"]), ("speed", "town"), 1),
    "sliding with gaps": (aggregating(Sliding(5, 20), ["share", "seen"]), ("share", "seen"), 1),
    "without key": (aggregating(Sliding(10, 4), []), (), 1),
    "session": (aggregating(Session(9), ["town"]), ("town",), 1),
    "top": (top(2, Sliding(20, 20), ["town"]), ("town",), 1),
    "sliding top": (top(3, Sliding(30, 10), ["lane"]), ("lane",), 1),
    "large top": (top(100, Sliding(30, 10), []), (), 1),
    "join": (joining(WindowJoinSpec, Sliding(20, 20), keys=["town"]), ("town",), 2),
    "sliding join": (joining(WindowJoinSpec, Sliding(20, 5), keys=["speed"]), ("speed",), 2),
    "interval join": (joining(IntervalJoinSpec, -7, 12, keys=["town", "share"]), ("town", "share"), 2),
    "co-group": (cogrouping(Sliding(20, 20)), ("town", "lane"), 2),
    "sliding co-group": (cogrouping(Sliding(15, 5)), ("town", "lane"), 2),
    "deduplicate": (deduplicating(None), ("town", "speed"), 1),
    "deduplicate within": (deduplicating(25), ("town", "speed"), 1),
    "process": (processing(["town", "speed"]), ("town", "speed"), 1),
    "process without key": (processing([]), (), 1),
}
EVENTS = st.lists(st.tuples(EVENT, st.booleans()), min_size=12, max_size=50)
CUTS = st.lists(st.integers(0, 50), min_size=1, max_size=6)


def partition_of(event: Row, keys: Sequence[str]) -> int:
    """Where an event is routed, by the plain-Python hash."""
    schema = Schema.of(TYPES)
    return xxhash64((event[key], schema[key].dtype) for key in keys) % V


def plain(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value + 0.0:.9g}"
    return value


def counted(rows: Iterable[Row]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple((name, plain(value)) for name, value in row.items()) for row in rows)


def contents(tables: StateTables) -> dict[str, Counter[tuple[Any, ...]]]:
    """Rows by table, as they are; times as numbers, since a date cannot show them all."""
    times = pa.timestamp("us", tz="UTC")
    tables = {
        name: table.cast(pa.schema([f.with_type(pa.int64()) if f.type == times else f for f in table.schema]))
        for name, table in tables.items()
    }
    return {name: Counter(map(repr, table.to_pylist())) for name, table in tables.items()}  # type: ignore[misc]


def through_a_file(tables: StateTables, partitions: Sequence[int], count: int) -> StateTables:
    data, _, _ = state_file.encode({"other": {}, "step": tables}, count)
    read = state_file.decode(data, "memory", ["step"], partitions)
    return {name: rows for (_, name), (_, rows) in read.items()}


class Tasks:
    """A run of several tasks, each with the virtual partitions that a routing table gives it."""

    def __init__(self, step: Step, keys: Sequence[str], seed: int) -> None:
        self._step, self._keys = step, keys
        self._random = random.Random(seed)
        self._watermark = START_OF_TIME
        self.rows: list[Row] = []
        self._start(1, [{}])

    def _start(self, count: int, states: Sequence[StateTables]) -> None:
        self.routing = [self._random.randrange(count) for _ in range(V)]
        self.tasks = []
        for task in range(count):
            strings = StringPool()
            strings.codes(self._random.sample(["x", "b", "y", "a", "z"], 3))  # codes of its own
            harness = self._step(strings=strings, seed=self._random.randrange(99))
            mine = [vp for vp, owner in enumerate(self.routing) if owner == task]
            chosen = self._random.choice([select, through_a_file])
            parts = [chosen(tables, mine, V) for tables in states]
            if self._random.random() < 0.5:
                for part in parts:
                    harness.operator.import_state(part, self._watermark)
            else:
                harness.operator.import_state(merge(parts), self._watermark)
            assert contents(harness.operator.export_state()) == contents(merge(parts))
            self.tasks.append(harness)

    def restart(self, count: int) -> None:
        self.collect()
        self._start(count, [task.operator.export_state() for task in self.tasks])

    def feed(self, events: Sequence[tuple[Row, bool]], inputs: int) -> None:
        for index in range(inputs):
            for number, task in enumerate(self.tasks):
                mine = [
                    event
                    for event, right in events
                    if (right and inputs == 2) == bool(index)
                    and self.routing[partition_of(event, self._keys)] == number
                ]
                task.feed(mine, index)

    def watermark(self, time_us: int) -> None:
        self._watermark = time_us
        for task in self.tasks:
            task.watermark(time_us)

    def end(self) -> None:
        for task in self.tasks:
            task.end()
        self.collect()

    def collect(self) -> None:
        for task in self.tasks:
            self.rows += task.rows()
            task.rows().clear()


@pytest.mark.parametrize("name", STEPS)
@settings(max_examples=25)
@given(events=EVENTS, cuts=CUTS, seed=st.integers(0, 1000))
@example(events=[], cuts=[0], seed=0)
def test_a_run_cut_anywhere_into_any_number_of_tasks_gives_the_rows_of_one_run(
    name: str, events: list[tuple[Row, bool]], cuts: list[int], seed: int
) -> None:
    step, keys, inputs = STEPS[name]
    events = sorted(events, key=lambda pair: pair[0]["ts"] // 15)  # nearly in order: the watermark moves on
    events = [({**event, ORDER: number}, right) for number, (event, right) in enumerate(events)]
    choice = random.Random(seed)
    whole, cut_up = Tasks(step, keys, seed), Tasks(step, keys, seed)
    position = 0
    for cut in [*sorted({min(cut, len(events)) for cut in cuts}), len(events)]:
        for run in (whole, cut_up):
            run.feed(events[position:cut], inputs)
        position = cut
        on_time = [event["ts"] for event, _ in events[cut:] if not event[LATE]]
        if on_time and choice.random() < 0.8:
            for run in (whole, cut_up):
                run.watermark(min(on_time))
        whole.collect()
        cut_up.restart(choice.randint(1, 4))
        assert counted(cut_up.rows) == counted(whole.rows)
    for run in (whole, cut_up):
        run.end()
    assert counted(cut_up.rows) == counted(whole.rows)
    if name not in ("deduplicate", "process", "process without key"):  # they remember keys for ever
        assert all(task.operator.export_state() == {} for task in cut_up.tasks)


def test_rows_know_the_partition_that_their_events_are_routed_by() -> None:
    step, keys, _ = STEPS["sliding"]
    harness = step()
    events: list[Row] = [
        {"ts": 1, "town": town, "speed": speed} for town in ("a", None) for speed in (0.5, None)
    ]
    harness.feed(events)
    for table in harness.operator.export_state().values():
        found = virtual_partitions(table, V).tolist()
        keyed = zip(table["$key.speed"].to_pylist(), table["$key.town"].to_pylist(), strict=True)
        assert found == [partition_of({"speed": speed, "town": town}, keys) for speed, town in keyed]


def test_strings_leave_as_strings_and_a_group_without_value_as_null() -> None:
    step, _, _ = STEPS["tumbling"]
    harness = step()
    harness.feed([{"ts": 1, "town": None}, {"ts": 2, "town": "b"}])
    groups = harness.operator.export_state()["groups"]
    assert sorted(groups["$key.town"].to_pylist(), key=str) == [None, "b"]
    assert groups["$town_first.0"].to_pylist() == groups["$key.town"].to_pylist()


def test_equal_values_of_a_distinct_count_leave_once() -> None:
    aggregates = {"n": count(), "towns": count_distinct("town")}
    spec = WindowAggregateSpec((), Sliding(10, 10), tuple(aggregates.items()))
    harness = Harness(WindowAggregate, spec, [INPUT], layout(aggregate_types((), aggregates), TIME, [TIME]))
    harness.feed([{"ts": 1, "town": town} for town in "abaab"])
    table = harness.operator.export_state()["values.towns"]
    assert sorted(table["$value"].to_pylist()) == ["a", "b"]


def test_an_operator_without_state_exports_nothing_and_refuses_some() -> None:
    harness = Harness(Filter, FilterSpec(col("lane") > 1), [INPUT], INPUT, node_id="fast")
    assert harness.operator.export_state() == {}
    harness.operator.import_state({})
    with pytest.raises(StateError, match="'fast' was given table 'groups', it keeps nothing"):
        harness.operator.import_state({"groups": pa.table({"$hash": [1]})})


def test_state_of_another_shape_is_refused() -> None:
    harness = STEPS["tumbling"][0]()
    harness.feed([{"ts": 1, "town": "a"}])
    other = STEPS["sliding"][0](node_id="per_town")
    with pytest.raises(StateError, match=r"table 'groups' of 'per_town' has \(.*the step has changed"):
        other.operator.import_state(harness.operator.export_state())


@pytest.mark.parametrize("name", ["tumbling", "session", "top", "deduplicate", "process"])
def test_a_key_that_is_given_twice_is_refused(name: str) -> None:
    harness = STEPS[name][0]()
    harness.feed([{"ts": 1, "town": "a"}])
    harness.watermark(5)
    tables = harness.operator.export_state()
    fresh = STEPS[name][0]()
    fresh.operator.import_state(tables, 5)
    with pytest.raises(StateError, match="state was given twice"):
        fresh.operator.import_state(tables, 5)


def test_rows_that_are_not_flushed_yet_cannot_be_left_behind() -> None:
    harness = STEPS["tumbling"][0]()
    harness.feed([{"ts": 1, "town": "a"}])
    harness.operator.on_watermark(100)
    with pytest.raises(RuntimeError, match="has rows to flush"):
        harness.operator.export_state()
