"""State by virtual partition: taken out anywhere, split and put back into any number of tasks, it changes
no result.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.memory.edges import START_OF_TIME
from penstock.memory.layout import LATE, ORDER, TIME
from penstock.memory.strings import StringPool
from penstock.operators.columns.rows import RowSteps
from penstock.operators.windows.window_aggregate import WindowAggregate
from penstock.query.aggregates import count, count_distinct
from penstock.query.expr import col
from penstock.query.steps import FilterSpec, WindowAggregateSpec
from penstock.query.types import Schema
from penstock.query.windows import Sliding
from penstock.state import delta, state_file
from penstock.state.errors import StateError
from penstock.state.groups import grouped
from penstock.state.tables import StateTables, merge, select, virtual_partitions
from tests.harness import Harness, Row, layout
from tests.operators.state_steps import STEPS, Step, counted
from tests.reference_aggregates import xxhash64
from tests.window_cases import EVENT, INPUT, TYPES, aggregate_types

V = 16
#: They remember keys, or how far they have come, for ever. Names begin so.
REMEMBERING = ("deduplicate", "match splitter", "process", "splitter")

EVENTS = st.lists(st.tuples(EVENT, st.booleans()), min_size=12, max_size=50)
CUTS = st.lists(st.integers(0, 50), min_size=1, max_size=6)


def partition_of(event: Row, keys: Sequence[str]) -> int:
    """Where an event is routed, by the plain-Python hash."""
    schema = Schema.of(TYPES)
    return xxhash64((event[key], schema[key].dtype) for key in keys) % V


def contents(tables: StateTables) -> dict[str, Counter[tuple[Any, ...]]]:
    """Rows by table, as they are; times as numbers, since a date cannot show them all."""
    times = pa.timestamp("us", tz="UTC")
    tables = {
        name: table.cast(pa.schema([f.with_type(pa.int64()) if f.type == times else f for f in table.schema]))
        for name, table in tables.items()
    }
    return {name: Counter(map(repr, table.to_pylist())) for name, table in tables.items()}  # type: ignore[misc]


def through_a_file(tables: StateTables, partitions: Sequence[int], count: int) -> StateTables:
    groups = grouped({"other": {}, "step": tables})
    data, _, _ = state_file.encode(delta.snapshot(groups).parts, count)
    read = state_file.rows_of([state_file.decode(data, "memory")], ["step"], partitions)
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
@settings(max_examples=6)
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
    if not name.startswith(REMEMBERING):
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
    harness = Harness(RowSteps, FilterSpec(col("lane") > 1), [INPUT], INPUT, node_id="fast")
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


@pytest.mark.parametrize(
    "name", ["tumbling", "session", "top", "deduplicate", "match", "process", "splitter"]
)
def test_a_key_that_is_given_twice_is_refused(name: str) -> None:
    harness = STEPS[name][0]()
    harness.feed([{"ts": 1, "town": "a", "speed": 0.5}])
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
