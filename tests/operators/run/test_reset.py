"""A reset operator is as newly built."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.memory.layout import ORDER, SUB
from penstock.operators.columns.explode import Explode
from penstock.operators.columns.flat_map import FlatMap
from penstock.operators.columns.rows import RowSteps
from penstock.operators.columns.union import Union
from penstock.query.errors import RunError
from penstock.query.expr import col
from penstock.query.steps import ExplodeSpec, FilterSpec, FlatMapSpec, SelectSpec, UnionSpec
from tests.harness import Harness, Row, layout
from tests.operators.state_steps import STEPS, counted
from tests.replay import replay
from tests.window_cases import EVENT, INPUT, TYPES

STREAM = st.lists(st.tuples(EVENT, st.booleans()), max_size=50)


def streams_of(events: list[tuple[Row, bool]], inputs: int) -> list[list[Row]]:
    ordered = sorted(events, key=lambda pair: pair[0]["ts"] // 15)  # nearly in order
    numbered = [({**event, ORDER: number}, right) for number, (event, right) in enumerate(ordered)]
    if inputs == 1:
        return [[event for event, _ in numbered]]
    return [[event for event, right in numbered if right is side] for side in (False, True)]


@pytest.mark.parametrize("name", STEPS)
@settings(max_examples=5)
@given(before=STREAM, after=STREAM, seed=st.integers(0, 1000))
@example(before=[], after=[], seed=0)
def test_nothing_of_an_earlier_stream_is_left(
    name: str, before: list[tuple[Row, bool]], after: list[tuple[Row, bool]], seed: int
) -> None:
    step, _, inputs = STEPS[name]
    choice = random.Random(seed)
    used, fresh = step(seed=seed), step(seed=seed + 1)
    streams = streams_of(before, inputs)
    if choice.random() < 0.3:
        replay(used, *streams, seed=seed, time="ts")
    else:
        for index, stream in enumerate(streams):
            used.feed(stream, index)
        if choice.random() < 0.7:
            used.watermark(choice.randint(-40, 40))
    used.rows()
    if choice.random() < 0.5:
        used.operator.on_watermark(choice.randint(40, 400))  # what that makes ready is lost
    used.operator.reset()
    assert not used.operator.has_ready_rows
    assert used.operator.export_state() == {}
    assert (used.operator.late_events, used.operator.open_windows) == (0, 0)
    used.rows().clear()
    for harness in (used, fresh):
        replay(harness, *streams_of(after, inputs), seed=seed, time="ts")
    assert counted(used.rows()) == counted(fresh.rows())
    assert used.operator.late_events == fresh.operator.late_events


@pytest.mark.parametrize("name", STEPS)
def test_a_large_state_is_forgotten_too(name: str) -> None:
    step, _, inputs = STEPS[name]
    used, fresh = step(block_events=256), step(block_events=256)
    many: list[Row] = [
        {"ts": n % 90, "town": f"t{n}", "lane": n, "speed": float(n), "share": n / 4, ORDER: n}
        for n in range(600)
    ]
    few: list[Row] = [{**row, "ts": row["ts"] - 200} for row in many[:5]]
    for index in range(inputs):
        used.feed(many, index, cut=False)
    used.watermark(20)
    used.operator.reset()
    used.rows().clear()
    assert used.operator.state_bytes <= 2 * fresh.operator.state_bytes + 1_000_000
    for harness in (used, fresh):
        for index in range(inputs):
            harness.feed(few, index, cut=False)
        harness.end()
    assert counted(used.rows()) == counted(fresh.rows())


OUTPUT = layout(TYPES, "ts", [ORDER, SUB])
DOUBLED = (("ts", col("ts")), ("lane", col("lane") * 2))
LANES = layout({"ts": "timestamp", "lane": "int32"}, "ts", [ORDER, SUB])
STATELESS: dict[str, tuple[Any, Any, int, Any]] = {
    "filter": (RowSteps, FilterSpec(col("lane") > 0), 1, OUTPUT),
    "select": (RowSteps, SelectSpec(DOUBLED), 1, LANES),
    "explode": (Explode, ExplodeSpec((DOUBLED, DOUBLED), (None, col("lane") > 0)), 1, LANES),
    "union": (Union, UnionSpec(), 2, OUTPUT),
}


@pytest.mark.parametrize("name", STATELESS)
def test_a_step_without_state_goes_on_as_before(name: str) -> None:
    kind, spec, inputs, output = STATELESS[name]
    harness = Harness(kind, spec, [INPUT] * inputs, output)
    harness.feed([{"ts": n, "lane": n} for n in range(-5, 5)])
    once = list(harness.rows())
    harness.operator.reset()
    harness.feed([{"ts": n, "lane": n} for n in range(-5, 5)])
    assert harness.rows() == once * 2


def test_rows_of_a_function_that_failed_are_not_left() -> None:
    def fail_at_two(event: Row) -> list[Row]:
        if event["lane"] == 2:
            raise ValueError("two")
        return [{"lane": event["lane"]}]

    output = layout({"lane": "int32"}, None, [ORDER])
    harness = Harness(FlatMap, FlatMapSpec(fail_at_two), [INPUT], output)
    with pytest.raises(RunError, match="two"):
        harness.feed([{"lane": 1}, {"lane": 2}], cut=False)
    harness.operator.reset()
    harness.feed([{"lane": 3}])
    assert [row["lane"] for row in harness.rows()] == [3]
