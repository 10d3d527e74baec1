"""Hand-worked cases that pin the reference interpreter down, at least one per operator."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
import xxhash

from penstock.query.aggregates import (
    Aggregate,
    avg,
    count,
    count_distinct,
    first,
    last,
    max_,
    median,
    min_,
    quantile,
    stddev,
    sum_,
    variance,
)
from penstock.query.connectors import Sink, Source
from penstock.query.expr import col, lit
from penstock.query.graph import Graph, Input, Port, QueryVertex
from penstock.query.steps import (
    BatchSpec,
    CoGroupSpec,
    DeduplicateSpec,
    ExplodeSpec,
    FilterSpec,
    FlatMapSpec,
    IntervalJoinSpec,
    LookupSpec,
    ProcessSpec,
    SelectSpec,
    SinkSpec,
    SourceSpec,
    UnionSpec,
    WindowAggregateSpec,
    WindowJoinSpec,
    WindowTopSpec,
)
from penstock.query.steps.spec import Spec
from penstock.query.types import DataType, Schema
from penstock.query.user_functions import Context, Group, ProcessFunction
from penstock.query.windows import Session, Sliding
from tests.reference import Event, Row, interpret
from tests.reference_aggregates import aggregate, windows_over, xxhash64

EVENTS = Schema(ts="timestamp", k="int32?", x="float64?")
WINDOWED = {"window_start": "timestamp", "window_end": "timestamp"}


class Given(Source):
    """A source that only has a schema: the rows are handed to the interpreter."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    @property
    def schema(self) -> Schema:
        return self._schema


class Nowhere(Sink):
    @property
    def guarantee(self) -> str:
        return "none"


def rows(*values: tuple[Any, ...], schema: Schema = EVENTS) -> list[Row]:
    return [dict(zip(schema.names, row, strict=True)) for row in values]


def run(
    spec: Spec,
    *partitions: list[Row],
    result: Schema,
    right: list[Row] | None = None,
    lateness_us: int = 1_000,
    port: Port = Port.MAIN,
) -> list[Event]:
    """The events of one operator over a source ``s`` (and a source ``r`` for its second input)."""
    nodes = [QueryVertex("s", SourceSpec(Given(EVENTS), "ts", lateness_us), (), EVENTS, "ts")]
    inputs: dict[str, Any] = {"s": list(partitions)}
    if right is not None:
        nodes.append(QueryVertex("r", SourceSpec(Given(EVENTS), "ts", lateness_us, 1), (), EVENTS, "ts"))
        inputs["r"] = [right]
    nodes.append(QueryVertex("op", spec, tuple(Input(node.id) for node in nodes), result, None))
    nodes.append(QueryVertex("out", SinkSpec(Nowhere()), (Input("op", port),), result, None))
    interpreted = interpret(Graph(tuple(nodes)), inputs)
    events = interpreted.outputs["op", port]
    assert interpreted.sinks["out"] == [event.row for event in events]
    return events


def places(events: list[Event]) -> list[tuple[int, int, int]]:
    return [event.place for event in events]


def values(events: list[Event]) -> list[tuple[Any, ...]]:
    return [tuple(event.row.values()) for event in events]


def key_hash(key: int | None) -> int:
    return xxhash64([(key, DataType.INT32)])


# -- sources ---------------------------------------------------------------------------------------


def test_source_numbers_events_by_source_partition_and_offset() -> None:
    partitions = rows((5, 1, 0.0)), rows((6, 1, 0.0), (7, 1, 0.0))
    events = run(UnionSpec(), *partitions, right=rows((8, 1, 0.0)), result=EVENTS)
    assert places(events) == [(5, 0, 0), (6, 1 << 44, 0), (7, 1 << 44 | 1, 0), (8, 1 << 56, 1)]


def test_event_is_late_beyond_the_lateness_behind_earlier_events_of_its_own_partition() -> None:
    one = rows((100, 1, 0.0), (90, 1, 0.0), (89, 1, 0.0), (95, 1, 0.0))
    other = rows((1, 1, 0.0), (200, 1, 0.0), (190, 1, 0.0))
    events = run(FilterSpec(lit(True)), one, other, lateness_us=10, result=EVENTS)
    assert [event.late for event in events] == [False, False, True, False, False, False, False]


def test_first_event_of_a_partition_is_never_late_even_before_1970() -> None:
    events = run(FilterSpec(lit(True)), rows((-500, 1, 0.0)), lateness_us=0, result=EVENTS)
    assert [event.late for event in events] == [False]


# -- one event at a time ---------------------------------------------------------------------------


def test_filter_keeps_true_and_drops_null() -> None:
    events = run(FilterSpec(col("x") > 1.0), rows((1, 1, 2.0), (2, 1, None), (3, 1, 0.5)), result=EVENTS)
    assert values(events) == [(1, 1, 2.0)]


def test_select_keeps_time_and_order_of_the_event() -> None:
    result = Schema(double="float64?")
    events = run(SelectSpec((("double", col("x") * 2.0),)), rows((7, 1, 2.0)), result=result)
    assert events == [Event(7, 0, 0, False, {"double": 4.0})]


def test_explode_numbers_rows_by_their_place_in_the_list() -> None:
    result = Schema(x="float64?")
    spec = ExplodeSpec(
        ((("x", col("x")),), (("x", col("x") + 1.0),), (("x", lit(9.0)),)), (None, col("x") > 5.0, None)
    )
    events = run(spec, rows((7, 1, 2.0)), result=result)
    assert events == [Event(7, 0, 0, False, {"x": 2.0}), Event(7, 0, 2, False, {"x": 9.0})]


def test_flat_map_numbers_rows_by_their_place_in_the_result() -> None:
    spec = FlatMapSpec(lambda event: [{"k": event["k"]}] * 2)
    events = run(spec, rows((7, 3, 2.0)), result=Schema(k="int64"))
    assert events == [Event(7, 0, 0, False, {"k": 3}), Event(7, 0, 1, False, {"k": 3})]


def test_batch_with_numpy_columns_keeps_one_row_per_event() -> None:
    spec = BatchSpec(lambda columns: {"t": columns["ts"] + 1}, False)
    events = run(spec, rows((7, 3, 2.0), (8, 3, None)), result=Schema(t="int64"))
    assert events == [Event(7, 0, 0, False, {"t": 8}), Event(8, 1, 0, False, {"t": 9})]


def test_batch_with_arrow_and_row_numbers_gives_several_rows_per_event() -> None:
    def twice(batch: pa.RecordBatch) -> pa.RecordBatch:
        indices = pa.array([index for index in range(batch.num_rows) for _ in range(2)])
        return pa.RecordBatch.from_pydict({"x": batch["x"].take(indices), "_row": indices})

    events = run(BatchSpec(twice, True), rows((7, 3, 2.0), (8, 3, None)), result=Schema(x="float64?"))
    assert [(event.sub, event.row["x"]) for event in events] == [(0, 2.0), (1, 2.0), (0, None), (1, None)]


def test_lookup_matches_no_null_and_left_keeps_what_has_no_match() -> None:
    table = pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["one", None]})
    given = rows((1, 1, 0.0), (2, 2, 0.0), (3, 3, 0.0), (4, None, 0.0))
    result = Schema(k="int32?", name="string?")
    inner = run(LookupSpec(table, (("k", "id"),), (("name", "name"),), False), given, result=result)
    left = run(LookupSpec(table, (("k", "id"),), (("name", "name"),), True), given, result=result)
    assert values(inner) == [(1, "one"), (2, None)]
    assert values(left) == [(1, "one"), (2, None), (3, None), (None, None)]


# -- windows ---------------------------------------------------------------------------------------


def test_tumbling_windows_floor_negative_times() -> None:
    assert windows_over([-1, 0, 9, 10], Sliding(10, 10)) == [(-10, 0), (0, 10), (10, 20)]


def test_sliding_windows_overlap() -> None:
    assert windows_over([-1, 5], Sliding(10, 5)) == [(-10, 0), (-5, 5), (0, 10), (5, 15)]


def test_sessions_split_at_a_distance_of_exactly_the_gap() -> None:
    assert windows_over([0, 9, 19, 18, 40], Session(10)) == [(0, 29), (40, 50)]
    assert windows_over([0, 10], Session(10)) == [(0, 10), (10, 20)]


def test_window_aggregate_emits_per_key_and_window_at_its_end_with_null_a_key() -> None:
    spec = WindowAggregateSpec(("k",), Sliding(10, 10), (("n", count()), ("total", sum_("x"))))
    given = rows((1, 1, 2.0), (5, None, 1.0), (9, 1, 0.5), (10, 1, None), (1, 1, 7.0))
    result = Schema(k="int32?", **WINDOWED, n="int64", total="float64?")
    events = run(spec, given, lateness_us=5, result=result)  # the last one is late
    assert values(events) == [(1, 0, 10, 2, 2.5), (1, 10, 20, 1, None), (None, 0, 10, 1, 1.0)]
    assert places(events) == [(9, key_hash(1), 0), (19, key_hash(1), 0), (9, 42, 0)]
    late = run(spec, given, lateness_us=5, result=result, port=Port.LATE)
    assert values(late) == [(1, 1, 7.0)]


def test_first_and_last_go_by_event_time_then_source_order_and_pass_over_nulls() -> None:
    spec = WindowAggregateSpec((), Sliding(10, 10), (("a", first("x")), ("z", last("x"))))
    one, other = rows((5, 1, 5.0), (1, 1, None), (2, 1, 1.0)), rows((2, 1, 2.0), (5, 1, 6.0), (8, 1, None))
    events = run(spec, one, other, result=Schema(**WINDOWED, a="float64?", z="float64?"))
    assert events == [Event(9, 42, 0, False, {"window_start": 0, "window_end": 10, "a": 1.0, "z": 6.0})]


NAN = math.nan


@pytest.mark.parametrize(
    ("what", "given", "dtype", "expected"),
    [
        (count("x"), [1.0, None, NAN], DataType.INT64, 2),
        (sum_("x"), [2**63 - 1, 1, None], DataType.INT64, -(2**63)),
        (sum_("x"), [1e16, 1.0, -1e16], DataType.FLOAT64, 1.0),
        (sum_("x"), [math.inf, 1.0], DataType.FLOAT64, math.inf),
        (sum_("x"), [math.inf, -math.inf], DataType.FLOAT64, NAN),
        (sum_("x"), [None], DataType.FLOAT64, None),
        (min_("x"), [NAN, 2.0, 1.0], DataType.FLOAT64, 1.0),
        (min_("x"), [NAN, None], DataType.FLOAT64, NAN),
        (max_("x"), [NAN, 2.0, math.inf], DataType.FLOAT64, NAN),
        (avg("x"), [1, 2, None], DataType.FLOAT64, 1.5),
        (variance("x"), [1.0, 2.0, 3.0, 4.0], DataType.FLOAT64, 5 / 3),
        (variance("x"), [1.0, None], DataType.FLOAT64, None),
        (stddev("x"), [1.0, 2.0, 3.0, 4.0, 5.0], DataType.FLOAT64, 2.5**0.5),
        (stddev("x"), [1.0, None], DataType.FLOAT64, None),
        (variance("x"), [1.0, math.inf], DataType.FLOAT64, NAN),
        (count_distinct("x"), [0.0, -0.0, NAN, NAN, None, 1.0], DataType.INT64, 3),
        (median("x"), [4, 1, 2, 3], DataType.FLOAT64, 2.5),
        (quantile("x", 0.25), [1.0, 2.0, None], DataType.FLOAT64, 1.25),
        (quantile("x", 1.0), [NAN, 2.0], DataType.FLOAT64, NAN),
        (quantile("x", 0.0), [NAN, 2.0], DataType.FLOAT64, 2.0),
        (median("x"), [], DataType.FLOAT64, None),
    ],
)
def test_aggregates(what: Aggregate, given: list[Any], dtype: DataType, expected: Any) -> None:
    result = aggregate(what, given, dtype)
    assert result == expected or (isinstance(result, float) and math.isnan(result) and math.isnan(expected))


def test_top_puts_nan_first_nulls_last_and_ties_in_event_order() -> None:
    given = rows((1, 1, None), (2, 1, 3.0), (3, 1, NAN), (4, 1, 3.0), (5, 1, 4.0))
    result = Schema(**WINDOWED, rank="int32", ts="timestamp", k="int32?", x="float64?")
    largest = run(WindowTopSpec((), Sliding(10, 10), 5, col("x"), True), given, result=result)
    assert [(e.row["rank"], e.row["ts"]) for e in largest] == [(1, 3), (2, 5), (3, 2), (4, 4), (5, 1)]
    ranked = [(3, 2), (5, 4), (2, 1), (4, 3), (1, 0)]  # time and offset
    assert places(largest) == [(9, pair_hash(time, offset, 0), 0) for time, offset in ranked]
    smallest = run(WindowTopSpec((), Sliding(10, 10), 4, col("x"), False), given, result=result)
    assert [e.row["ts"] for e in smallest] == [2, 4, 5, 3]


# -- two streams -----------------------------------------------------------------------------------

BOTH = (("ts", 0, "ts"), ("k", 0, "k"), ("ts_right", 1, "ts"))
JOINED = Schema(ts="timestamp", k="int32?", ts_right="timestamp")


def pair_hash(*parts: int) -> int:
    return xxhash64([(part, DataType.INT64) for part in parts])


def test_window_join_pairs_equal_keys_once_per_shared_window_and_never_nulls() -> None:
    left, right = rows((6, 1, 0.0), (6, None, 0.0)), rows((9, 1, 0.0), (9, None, 0.0), (12, 1, 0.0))
    events = run(WindowJoinSpec((("k", "k"),), Sliding(10, 5), BOTH), left, right=right, result=JOINED)
    assert [(e.time, *e.row.values()) for e in events] == [(9, 6, 1, 9), (14, 6, 1, 9), (14, 6, 1, 12)]
    assert events[0].order == pair_hash(6, 0, 0, 9, 1 << 56, 0)


def test_interval_join_includes_both_bounds_and_takes_the_later_time() -> None:
    left, right = rows((10, 1, 0.0)), rows((7, 1, 0.0), (8, 1, 0.0), (15, 1, 0.0), (16, 1, 0.0))
    events = run(IntervalJoinSpec((("k", "k"),), -2, 5, BOTH), left, right=right, result=JOINED)
    assert [(e.time, e.row["ts_right"]) for e in events] == [(10, 8), (15, 15)]
    assert events[1].order == pair_hash(10, 0, 0, 15, 1 << 56 | 2, 0)


def test_co_group_gives_both_sides_in_order_also_for_the_null_key() -> None:
    def sizes(group: Group) -> list[Row]:
        return [{"k": group.key[0], "n": len(group.left), "times": str([e["ts"] for e in group.right])}]

    left = rows((6, 1, 0.0), (3, None, 0.0))
    right = rows((9, 1, 0.0), (2, 1, 0.0), (4, None, 0.0), (14, 2, 0.0))
    result = Schema(k="int32?", n="int64", times="string")
    events = run(CoGroupSpec((("k", "k"),), Sliding(10, 10), sizes), left, right=right, result=result)
    assert events == [
        Event(9, key_hash(1), 0, False, {"k": 1, "n": 1, "times": "[2, 9]"}),
        Event(9, 42, 0, False, {"k": None, "n": 1, "times": "[4]"}),
        Event(19, key_hash(2), 0, False, {"k": 2, "n": 0, "times": "[14]"}),
    ]


# -- order and state -------------------------------------------------------------------------------


def test_deduplicate_keeps_the_first_by_event_time() -> None:
    given = rows((5, 1, 0.0), (3, 1, 0.0), (9, 1, 0.0), (4, None, 0.0), (6, None, 0.0))
    assert [e.time for e in run(DeduplicateSpec(("k",), None), given, result=EVENTS)] == [3, 4]


def test_deduplicate_within_measures_from_the_last_kept_event() -> None:
    given = rows((0, 1, 0.0), (4, 1, 0.0), (8, 1, 0.0), (10, 1, 0.0), (19, 1, 0.0), (20, 1, 0.0))
    assert [e.time for e in run(DeduplicateSpec(("k",), 10), given, result=EVENTS)] == [0, 10, 20]


class Alarm(ProcessFunction):
    """Counts events; ten after each it says so, and once more in the past, which fires at once."""

    def on_event(self, event: Row, context: Context) -> list[Row]:
        context.state["n"] += 1
        context.set_timer(event["ts"] + 10)
        return [{"what": "event", "at": context.time, "n": context.state["n"]}]

    def on_timer(self, time_us: int, context: Context) -> list[Row]:
        if time_us % 2 == 0:
            context.set_timer(time_us - 5)
        return [{"what": "timer", "at": context.time, "n": time_us}]


def test_process_fires_timers_before_events_of_their_time_and_all_of_them_at_the_end() -> None:
    spec = ProcessSpec(("k",), Alarm(), Schema(n="int64"))
    result = Schema(what="string", at="timestamp", n="int64")
    events = run(spec, rows((10, 1, 0.0), (1, 1, 0.0), (11, 1, 0.0)), result=result)
    assert values(events) == [
        ("event", 1, 1),
        ("event", 10, 2),
        ("timer", 11, 11),
        ("event", 11, 3),
        ("timer", 20, 20),
        ("timer", 20, 15),  # set when 20 had passed already
        ("timer", 21, 21),
    ]
    timers = [event for event in events if event.row["what"] == "timer"]
    assert {event.order for event in timers} == {key_hash(1)}
    assert places(events)[:2] == [(1, 1, 0), (10, 0, 0)]


def test_union_tells_the_same_event_from_two_branches_apart_by_its_input() -> None:
    nodes = (
        QueryVertex("s", SourceSpec(Given(EVENTS), "ts", 0), (), EVENTS, "ts"),
        QueryVertex("a", SelectSpec((("x", col("x")),)), (Input("s"),), Schema(x="float64?"), None),
        QueryVertex("b", SelectSpec((("x", col("x") + 1.0),)), (Input("s"),), Schema(x="float64?"), None),
        QueryVertex("u", UnionSpec(), (Input("a"), Input("b")), Schema(x="float64?"), None),
        QueryVertex("d", DeduplicateSpec((), None), (Input("u"),), Schema(x="float64?"), None),
        QueryVertex("out", SinkSpec(Nowhere()), (Input("d"),), Schema(x="float64?"), None),
    )
    result = interpret(Graph(nodes), {"s": [rows((1, 1, 0.0))]})
    assert result.sinks["out"] == [{"x": 0.0}]


# -- the hash --------------------------------------------------------------------------------------


def test_hash_chains_seeds_and_nulls_leave_them() -> None:
    seed = xxhash.xxh64_intdigest((5).to_bytes(4, "little"), 42)
    expected = xxhash.xxh64_intdigest(b"ab", seed)
    values_ = [(None, DataType.INT64), (5, DataType.INT32), (None, DataType.STRING), ("ab", DataType.STRING)]
    assert xxhash64(values_) % 2**64 == expected
    assert xxhash64([]) == 42
    assert xxhash64([(-0.0, DataType.FLOAT64)]) == xxhash64([(0.0, DataType.FLOAT64)])
    # Spark: SELECT xxhash64(1), xxhash64(1L)
    assert xxhash64([(1, DataType.INT32)]) == -6698625589789238999
    assert xxhash64([(1, DataType.INT64)]) == -7001672635703045582
