"""Process: events and timers of a key in the order of event time, typed state, and clear errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.memory.layout import LATE, ORDER, SUB, TIME
from penstock.operators.keyed import process
from penstock.operators.keyed.process import Process
from penstock.query.errors import RunError
from penstock.query.graph import Port
from penstock.query.steps import ProcessSpec
from penstock.query.types import DataType, Schema
from penstock.query.user_functions import Context, ProcessFunction
from tests.harness import Harness, Row, layout
from tests.reference_aggregates import xxhash64
from tests.replay import replay

EVENT = {"t": "timestamp", "k": "int32?", "v": "float64?"}
RESULT = {"k": "int64?", "text": "string"}
STATE = {"count": "int64", "sum": "float64", "last": "string?", "seen": "bool", "name": "string"}


def running(
    function: ProcessFunction,
    state: dict[str, str] | None = None,
    keys: tuple[str, ...] = ("k",),
    ttl_us: int | None = None,
    **settings: Any,
) -> Harness:
    return Harness(
        Process,
        ProcessSpec(keys, function, Schema.of(state or {}), ttl_us),
        inputs=[layout(EVENT, "t", [ORDER, SUB, LATE])],
        output=layout(RESULT, TIME, [TIME, ORDER, SUB]),
        **settings,
    )


def texts(harness: Harness) -> list[str]:
    return [row["text"] for row in harness.rows()]


class Counting(ProcessFunction):
    def on_event(self, event: Row, context: Context) -> Iterable[Row]:
        context.state["count"] += 1
        context.state["sum"] += event["v"]
        yield {"k": event["k"], "text": f"{context.state['count']} {context.state['sum']}"}


class Scripted(ProcessFunction):
    """Sets the timers that ``v`` of the events, or the timers' times, ask for; tells all that happens."""

    def __init__(self, after_event: dict[int, list[int]], after_timer: dict[int, list[int]] | None = None):
        self.after_event, self.after_timer = after_event, after_timer or {}

    def on_event(self, event: Row, context: Context) -> Iterable[Row]:
        for time in self.after_event.get(event["t"], []):
            context.set_timer(time)
        return [{"k": event["k"], "text": f"event {event['t']} at {context.time}"}]

    def on_timer(self, time_us: int, context: Context) -> Iterable[Row]:
        for time in self.after_timer.get(time_us, []):
            context.set_timer(time)
        return [{"k": context.key[0], "text": f"timer {time_us} at {context.time}"}]


def test_events_of_a_key_are_handled_in_order_with_its_own_state() -> None:
    harness = running(Counting(), {"count": "int64", "sum": "float64"})
    harness.feed([{"t": 2, "k": 1, "v": 0.5}, {"t": -1, "k": 1, "v": 1.0}, {"t": 1, "k": 2, "v": 8.0}])
    harness.watermark(2)
    assert [(row["k"], row["text"]) for row in harness.rows()] == [(1, "1 1.0"), (2, "1 8.0")]
    harness.end()
    assert [(row["k"], row["text"]) for row in harness.rows()][2:] == [(1, "2 1.5")]


def test_null_is_a_key_of_its_own() -> None:
    harness = running(Counting(), {"count": "int64", "sum": "float64"})
    harness.feed([{"t": t, "k": k, "v": 1.0} for t, k in enumerate([None, 0, None])])
    harness.end()
    assert texts(harness) == ["1 1.0", "1 1.0", "2 2.0"]


def test_rows_of_an_event_take_its_place_and_rows_of_a_timer_that_of_the_key() -> None:
    harness = running(Scripted({3: [7]}))
    harness.feed([{"t": 3, "k": 5, "$order": 11, "$sub": 2}])
    harness.end()
    timer_order = xxhash64([(5, DataType.INT32)])
    places = [(row[TIME], row[ORDER], row[SUB]) for row in harness.rows()]
    assert places == [(3, 11, 2 << 20), (7, timer_order, 1)]


def test_a_timer_fires_before_events_of_its_time_and_once_the_watermark_reaches_it() -> None:
    harness = running(Scripted({1: [5, 8]}))
    harness.feed([{"t": t, "k": 1} for t in (1, 4, 5)])
    harness.watermark(4)
    assert texts(harness) == ["event 1 at 1"]
    assert harness.operator.open_windows == 2
    harness.watermark(5)
    assert texts(harness)[1:] == ["event 4 at 4", "timer 5 at 5"]
    harness.watermark(8)
    assert texts(harness)[3:] == ["event 5 at 5", "timer 8 at 8"]
    assert harness.operator.open_windows == 0


def test_a_timer_in_the_past_fires_next_at_the_time_that_was_reached() -> None:
    harness = running(Scripted({5: [2, -9]}, {7: [1]}))
    harness.feed([{"t": 5, "k": 1}, {"t": 6, "k": 1}])
    harness.end()
    assert texts(harness) == ["event 5 at 5", "timer -9 at 5", "timer 2 at 5", "event 6 at 6"]


def test_timers_set_by_timers_fire_too_also_after_the_end() -> None:
    harness = running(Scripted({1: [10]}, {10: [20], 20: [30, 4]}))
    harness.feed([{"t": 1, "k": 1}])
    harness.end()
    assert texts(harness)[1:] == ["timer 10 at 10", "timer 20 at 20", "timer 4 at 20", "timer 30 at 30"]


def test_a_deleted_timer_does_not_fire_and_one_set_twice_fires_once() -> None:
    class Timers(ProcessFunction):
        def on_event(self, event: Row, context: Context) -> None:  # type: ignore[override]
            context.set_timer(10)
            context.set_timer(20)
            context.set_timer(20)
            context.delete_timer(10)
            context.delete_timer(99)
            context.set_timer(30)
            context.delete_timer(30)
            context.set_timer(30)

        def on_timer(self, time_us: int, context: Context) -> Iterable[Row]:
            yield {"text": str(time_us)}

    harness = running(Timers())
    harness.feed([{"t": 1, "k": 1}])
    harness.end()
    assert texts(harness) == ["20", "30"]


def test_moving_a_timer_again_and_again_takes_no_more_memory() -> None:
    class Timeout(ProcessFunction):
        def on_event(self, event: Row, context: Context) -> None:  # type: ignore[override]
            context.delete_timer(context.state["due"])
            context.state["due"] = event["t"] + 1000
            context.set_timer(context.state["due"])

        def on_timer(self, time_us: int, context: Context) -> Iterable[Row]:
            yield {"text": str(time_us)}

    harness = running(Timeout(), {"due": "timestamp"})
    harness.feed([{"t": t, "k": 1} for t in range(900)], cut=False)
    harness.watermark(900)
    assert harness.operator.open_windows == 1
    assert harness.operator.state_bytes < 10_000
    harness.end()
    assert texts(harness) == ["1899"]


def test_timers_without_end_stop_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(ProcessFunction):
        def __init__(self, step: int):
            self.step = step

        def on_event(self, event: Row, context: Context) -> None:  # type: ignore[override]
            context.set_timer(event["t"])

        def on_timer(self, time_us: int, context: Context) -> None:  # type: ignore[override]
            context.set_timer(time_us + self.step)

    monkeypatch.setattr(process, "MOST_TIMERS", 50)
    advancing = running(Endless(1))
    advancing.feed([{"t": 1, "k": 1}])
    advancing.watermark(500)  # each comes in its time: no fault
    with pytest.raises(RunError, match=r"Endless.on_timer' set more than 50 timers after the end"):
        advancing.end()
    standing = running(Endless(0))
    standing.feed([{"t": 1, "k": 1}])
    with pytest.raises(
        RunError, match=r"set more than 50 timers up to 1 at that time: step 'step' at .*, timer at 1"
    ):
        standing.watermark(2)


def test_state_starts_as_declared_and_can_be_taken_as_columns() -> None:
    class Writing(ProcessFunction):
        def on_event(self, event: Row, context: Context) -> Iterable[Row]:
            yield {"k": event["k"], "text": repr(context.state)}
            context.state.update(count=event["t"], sum=1, last="z", seen=True)
            context.set_timer(event["t"] + 100)

    harness = running(Writing(), STATE)
    harness.feed([{"t": 1, "k": 7}, {"t": 2, "k": None}])
    harness.watermark(50)
    assert texts(harness) == ["{'count': 0, 'sum': 0.0, 'last': None, 'seen': False, 'name': ''}"] * 2
    tables = harness.operator.export_state()
    keys, timers = tables["keys"], tables["timers"].select(["$key.k", "$set_for"])
    assert keys.select(["$key.k", *STATE]).to_pydict() == {
        "$key.k": [7, None],
        "count": [1, 2],
        "sum": [1.0, 1.0],
        "last": ["z", "z"],
        "seen": [True, True],
        "name": ["", ""],
    }
    assert keys["$handled"].cast("int64").to_pylist() == [1, 2]
    assert timers.cast(timers.schema.set(1, pa.field("$set_for", "int64"))).to_pylist() == [
        {"$key.k": 7, "$set_for": 101},
        {"$key.k": None, "$set_for": 102},
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"count": "1"}, "left str '1' in the state field 'count'"),
        ({"count": None}, "left None in the state field 'count'"),
        ({"sum": True}, "left bool True in the state field 'sum'"),
        ({"more": 1}, "state field 'more' that was not declared"),
    ],
)
def test_state_of_the_wrong_type_stops_the_run(change: Row, said: str) -> None:
    class Wrong(ProcessFunction):
        def on_event(self, event: Row, context: Context) -> None:  # type: ignore[override]
            context.state.update(change)

    harness = running(Wrong(), STATE, node_id="alarms")
    harness.feed([{"t": 1, "k": 7, "v": 2.5}])
    with pytest.raises(RunError) as caught:
        harness.end()
    for part in (said, "step 'alarms'", "Wrong.on_event", "'v': 2.5"):
        assert part in str(caught.value)


def test_an_exception_names_step_function_and_event_or_timer() -> None:
    class Failing(ProcessFunction):
        def on_event(self, event: Row, context: Context) -> Iterable[Row]:
            context.set_timer(9)
            if event["v"] is None:
                raise KeyError("v")
            yield {"text": "fine"}

        def on_timer(self, time_us: int, context: Context) -> Iterable[Row]:
            raise ValueError("too late")

    harness = running(Failing())
    harness.feed([{"t": 1, "k": 7, "v": 1.0}, {"t": 2, "k": 8}])
    with pytest.raises(
        RunError, match=r"Failing.on_event' raised KeyError: 'v': step 'step' at .*, event {'t': 2"
    ):
        harness.watermark(5)
    harness = running(Failing())
    harness.feed([{"t": 1, "k": 7, "v": 1.0}])
    with pytest.raises(RunError, match=r"Failing.on_timer' raised ValueError: .*timer at 9 of key \(7,\)"):
        harness.end()


@pytest.mark.parametrize("time", [1.5, "1s", None, True, 1 << 63])
def test_a_timer_needs_a_time(time: Any) -> None:
    harness = running(Scripted({1: [time]}))
    harness.feed([{"t": 1, "k": 1}])
    with pytest.raises(RunError, match="a timer's time must"):
        harness.end()


def test_late_events_go_to_the_late_output() -> None:
    harness = running(Scripted({}), late=layout({"t": "timestamp"}))
    harness.feed([{"t": 1, "k": 1, "$late": True}, {"t": 2, "k": 1}])
    harness.end()
    assert texts(harness) == ["event 2 at 2"]
    assert harness.rows(Port.LATE) == [{"t": 1}]
    assert harness.operator.late_events == 1


class Visits(ProcessFunction):
    """Counts events; ``v`` of an event asks for a timer so much later, and a negative one clears the key."""

    def on_event(self, event: Row, context: Context) -> Iterable[Row]:
        context.state["n"] += 1
        text = f"{context.time}: {context.state['n']}"
        if event["v"] is not None and event["v"] < 0:
            context.clear()
        elif event["v"] is not None:
            context.set_timer(event["t"] + int(event["v"]))
        return [{"k": event["k"], "text": text}]

    def on_timer(self, time_us: int, context: Context) -> Iterable[Row]:
        return [{"k": context.key[0], "text": f"timer {time_us}: {context.state['n']}"}]


def keys_held(harness: Harness) -> int:
    tables = harness.operator.export_state()
    return tables["keys"].num_rows if "keys" in tables else 0


def test_a_cleared_key_starts_anew_without_timers_and_is_in_no_checkpoint() -> None:
    harness = running(Visits(), {"n": "int64"})
    harness.feed([{"t": 1, "k": 1, "v": 50.0}, {"t": 2, "k": 1, "v": -1.0}, {"t": 3, "k": 2}])
    harness.watermark(3)
    assert keys_held(harness) == 0
    assert harness.operator.open_windows == 0
    harness.feed([{"t": 5, "k": 1}])
    harness.end()
    assert texts(harness) == ["1: 1", "2: 2", "3: 1", "5: 1"]


def test_a_function_that_keeps_nothing_holds_no_keys() -> None:
    harness = running(Scripted({}))
    harness.feed([{"t": t, "k": t} for t in range(50)])
    harness.watermark(50)
    assert harness.operator.state_bytes == 0


def test_timers_of_one_time_are_told_apart_also_when_the_key_was_cleared_between_them() -> None:
    class Clearing(ProcessFunction):
        def on_event(self, event: Row, context: Context) -> None:  # type: ignore[override]
            context.set_timer(5)

        def on_timer(self, time_us: int, context: Context) -> Iterable[Row]:
            context.clear()
            return [{"k": 0, "text": str(time_us)}]

    harness = running(Clearing())
    harness.feed([{"t": 1, "k": 1}])
    harness.watermark(5)
    harness.feed([{"t": 5, "k": 1}])
    harness.end()
    assert [(row[TIME], row[SUB]) for row in harness.rows()] == [(5, 1), (5, (1 << 20) + 1)]


@pytest.mark.parametrize("step", [1, 100])
def test_a_key_without_an_event_for_the_ttl_starts_anew(step: int) -> None:
    harness = running(Visits(), {"n": "int64"}, ttl_us=10)
    times = [1, 10, 19, 29, 38, 60]
    harness.feed([{"t": t, "k": 1} for t in times])
    for watermark in range(0, 101, step):
        harness.watermark(watermark)
    assert texts(harness) == ["1: 1", "10: 2", "19: 3", "29: 1", "38: 2", "60: 1"]


@pytest.mark.parametrize("step", [1, 100])
def test_timers_of_a_key_that_is_forgotten_do_not_fire(step: int) -> None:
    harness = running(Visits(), {"n": "int64"}, ttl_us=10)
    harness.feed([{"t": 1, "k": 1, "v": 9.0}, {"t": 2, "k": 2, "v": 10.0}, {"t": 3, "k": 3, "v": 15.0}])
    harness.feed([{"t": 9, "k": 3}])
    for watermark in range(0, 101, step):
        harness.watermark(watermark)
    assert texts(harness)[4:] == ["timer 10: 1", "timer 18: 2"]
    assert harness.operator.open_windows == 0


def test_forgotten_keys_take_no_memory_and_are_in_no_checkpoint() -> None:
    harness = running(Visits(), {"n": "int64"}, ttl_us=10, block_events=64)
    most = 0
    for start in range(0, 3_000, 50):
        harness.feed([{"t": t, "k": t, "v": 1_000.0} for t in range(start, start + 50)], cut=False)
        harness.watermark(start + 50)
        assert keys_held(harness) == 9
        most = max(most, harness.operator.state_bytes)
    assert most < 40_000  # 3,000 keys would take ten times that


def test_the_order_of_last_events_is_kept_when_state_comes_from_several_tasks() -> None:
    parts = []
    for rows in ([{"t": 1, "k": 1}, {"t": 9, "k": 2}], [{"t": 5, "k": 3}, {"t": 2, "k": 4}]):
        one = running(Visits(), {"n": "int64"}, ttl_us=10)
        one.feed(rows)
        one.watermark(10)
        parts.append(one.operator.export_state())
    both = running(Visits(), {"n": "int64"}, ttl_us=10)
    for part in parts:
        both.operator.import_state(part, 10)
    held = []
    for watermark in (10, 11, 12, 15, 19):
        both.watermark(watermark)
        held.append(keys_held(both))
    assert held == [4, 3, 2, 1, 0]


class Session(ProcessFunction):
    """Sums until a key was quiet for 5 µs: uses state, timers set, moved and deleted."""

    def on_event(self, event: Row, context: Context) -> Iterable[Row]:
        context.delete_timer(context.state["due"])
        context.state["due"] = event["t"] + 5
        context.set_timer(context.state["due"])
        context.state["names"] += event["v"]
        if event["t"] % 7 == 0:
            context.set_timer(event["t"] - 3)
        return [{"k": event["k"], "text": f"{context.state['names']}@{context.time}"}]

    def on_timer(self, time_us: int, context: Context) -> Iterable[Row]:
        names, context.state["names"] = context.state["names"], ""
        yield {"k": context.key[0], "text": f"{time_us}: {names}@{context.time}"}
        yield {"k": context.key[0], "text": "done"}


def naive(rows: list[Row]) -> list[tuple[Any, ...]]:
    """Key by key: rows as (time, order, sub, k, text)."""
    made = []
    for key in {row["k"] for row in rows}:
        function, timers, reached, ties = Session(), set(), 0, Counter()
        context = Context((key,), {"due": 0, "names": ""}, timers)

        def fire(until: float) -> None:
            nonlocal reached
            while timers and min(timers) <= until:  # noqa: B023
                time = min(timers)  # noqa: B023
                timers.remove(time)  # noqa: B023
                reached = context.time = max(time, reached)  # noqa: B023
                order = xxhash64([(key, DataType.INT32)])  # noqa: B023
                made.extend(
                    (reached, order, (ties[reached] << 20) + 2 * index + 1, row["k"], row["text"])  # noqa: B023
                    for index, row in enumerate(function.on_timer(time, context))  # noqa: B023
                )
                ties[reached] += 1  # noqa: B023

        mine = [row for row in rows if row["k"] == key]
        for row in sorted(mine, key=lambda row: (row["t"], row["$order"])):
            fire(row["t"])
            reached = context.time = row["t"]
            (result,) = function.on_event(dict(row), context)
            made.append((row["t"], row["$order"], 0, key, result["text"]))
        fire(float("inf"))
    return sorted(made, key=str)


@given(
    st.lists(st.tuples(st.integers(-40, 40), st.none() | st.integers(0, 2)), max_size=50),
    st.integers(0, 1000),
    st.integers(0, 10),
)
def test_any_order_and_cut_gives_what_the_naive_one_gives(
    found: list[tuple[int, int | None]], seed: int, slack: int
) -> None:
    rows = [{"t": t, "k": k, "v": f"{n}.", "$order": n} for n, (t, k) in enumerate(found)]
    columns = {**EVENT, "v": "string"}
    harness = Harness(
        Process,
        ProcessSpec(("k",), Session(), Schema(due="timestamp", names="string")),
        inputs=[layout(columns, "t", [ORDER])],
        output=layout(RESULT, TIME, [TIME, ORDER, SUB]),
        seed=seed,
        block_events=3,
    )
    replay(harness, rows, seed=seed, slack=slack)
    made = [(row[TIME], row[ORDER], row[SUB], row["k"], row["text"]) for row in harness.rows()]
    assert sorted(made, key=str) == naive(rows)
    assert [row[0] for row in made] == sorted(row[0] for row in made)
