"""Events that functions fail for: set aside with the error, and as if they had never come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

import penstock as ps
from penstock.memory.layout import ORDER, SUB, TIME
from penstock.operators.columns.batch import BatchFunction
from penstock.operators.columns.flat_map import FlatMap
from penstock.operators.keyed.process import Process
from penstock.query.errors import QueryError, RunError
from penstock.query.failures import OnError
from penstock.query.graph import Port
from penstock.query.identity import stable_content
from penstock.query.steps import BatchSpec, FlatMapSpec, ProcessSpec
from penstock.query.types import Schema
from penstock.query.user_functions import Context, ProcessFunction
from tests.harness import Harness, Row, layout

EVENT = {"t": "timestamp", "k": "int64", "v": "string?"}
FAILED = {**EVENT, "error": "string", "step": "string"}
INPUT = layout(EVENT, "t", [ORDER, SUB])


def running(operator: Any, spec: Any, output: dict[str, str], nullable: bool = False) -> Harness:
    failed = {"t": "timestamp?", "k": "int64", "v": "string?", "error": "string", "step": "string"}
    return Harness(
        operator,
        spec,
        inputs=[INPUT],
        output=layout(output, TIME, [TIME, ORDER, SUB]),
        failed=layout(failed if nullable else FAILED, TIME if nullable else "t", [TIME] if nullable else []),
    )


def errors(harness: Harness) -> list[tuple[Any, ...]]:
    return [(row["t"], row["k"], row["error"]) for row in harness.rows(Port.FAILED)]


def lengths(event: Row) -> Iterator[Row]:
    yield {"n": event["k"]}
    yield {"n": len(event["v"]) if event["k"] != 2 else "two"}


def test_a_flat_map_sets_aside_what_raises_and_what_does_not_fit_without_any_row_of_it() -> None:
    harness = running(FlatMap, FlatMapSpec(lengths, OnError.SET_ASIDE), {"n": "int64"})
    harness.feed([{"t": 1, "k": 1, "v": "abc"}, {"t": 2, "k": 2, "v": "x"}, {"t": 3, "k": 3}])
    harness.end()
    assert [row["n"] for row in harness.rows()] == [1, 3]
    (misfit, raised) = harness.rows(Port.FAILED)
    assert misfit == {
        "t": 2, "k": 2, "v": "x", "error": "returned str 'two' for column 'n'", "step": "step",
    }  # fmt: skip
    assert raised["v"] is None
    assert raised["error"] == "TypeError: object of type 'NoneType' has no len()"
    assert harness.operator.failed_events == 2


def test_without_it_the_run_stops() -> None:
    harness = running(FlatMap, FlatMapSpec(lengths), {"n": "int64"})
    with pytest.raises(
        RunError, match=r"'lengths' returned str 'two' for column 'n': step 'step' at .*, event"
    ):
        harness.feed([{"t": 2, "k": 2, "v": "x"}])


def test_a_batch_that_fails_is_halved_until_the_events_that_fail_stand_alone() -> None:
    sizes = []

    def doubled(columns: dict[str, Any]) -> dict[str, Any]:
        sizes.append(len(columns["k"]))
        if (columns["k"] == 37).any():
            raise ValueError("37")
        return {"n": columns["k"] * 2 if (columns["k"] != 50).all() else columns["k"] * 0.5}

    harness = running(BatchFunction, BatchSpec(doubled, False, OnError.SET_ASIDE), {"n": "int64"})
    harness.feed([{"t": t, "k": t} for t in range(64)], cut=False)
    harness.end()
    assert sorted(row["n"] for row in harness.rows()) == [2 * k for k in range(64) if k not in (37, 50)]
    assert errors(harness) == [
        (37, 37, "ValueError: 37"),
        (50, 50, "returned float64 values for column 'n'"),
    ]
    assert len(sizes) <= 1 + 2 * 2 * 6


class Adding(ProcessFunction):
    """Counts, sets a timer, and fails half way for events that say so; timers of odd times fail."""

    def on_event(self, event: Row, context: Context) -> Iterable[Row]:
        yield {"text": f"before {context.state['n']}"}
        context.state["n"] += 1
        context.set_timer(event["t"] + 10)
        if event["v"] == "clear":
            context.clear()
        if event["v"] is not None:
            context.state["n"] = "many" if event["v"] == "misfit" else 100
            context.delete_timer(event["k"])
            if event["v"] != "misfit":
                raise ValueError(event["v"])
        yield {"text": f"after {context.state['n']}"}

    def on_timer(self, time_us: int, context: Context) -> Iterable[Row]:
        context.state["n"] += 1000
        yield {"text": f"timer {time_us}: {context.state['n']}"}
        if time_us % 2:
            raise KeyError(time_us)


def adding(ttl_us: int | None = None) -> Harness:
    spec = ProcessSpec(("k",), Adding(), Schema(n="int64"), ttl_us, OnError.SET_ASIDE)
    return running(Process, spec, {"text": "string"}, nullable=True)


@pytest.mark.parametrize("reason", ["no", "clear", "misfit"])
def test_an_event_that_fails_changes_neither_state_nor_timers(reason: str) -> None:
    harness = adding()
    harness.feed([{"t": 2, "k": 12}, {"t": 3, "k": 12, "v": reason}, {"t": 4, "k": 12}])
    harness.end()
    assert [row["text"] for row in harness.rows()] == [
        "before 0", "after 1", "before 1", "after 2", "timer 12: 1002", "timer 14: 2002",
    ]  # fmt: skip
    said = "left str 'many' in the state field 'n'" if reason == "misfit" else f"ValueError: {reason}"
    assert errors(harness) == [(3, 12, said)]


def test_a_timer_that_fails_is_set_aside_with_its_key_alone() -> None:
    harness = adding()
    harness.feed([{"t": 1, "k": 7}, {"t": 2, "k": 7}])
    harness.end()
    assert [row["text"] for row in harness.rows()][4:] == ["timer 12: 1002"]
    (timer,) = harness.rows(Port.FAILED)
    assert (timer["t"], timer["k"], timer["v"], timer[TIME]) == (None, 7, None, 11)
    assert timer["error"] == "KeyError: 11 (timer at 11)"


def test_an_event_that_fails_leaves_no_key_behind_and_makes_none_younger() -> None:
    harness = adding(ttl_us=5)
    harness.feed([{"t": 1, "k": 1, "v": "no"}, {"t": 2, "k": 2}, {"t": 6, "k": 2, "v": "no"}])
    harness.watermark(3)
    assert harness.operator.export_state()["keys"]["$key.k"].to_pylist() == [2]
    harness.watermark(7)
    assert "keys" not in harness.operator.export_state()


def numbers(on_error: str) -> tuple[ps.App, ps.sinks.Memory, ps.sinks.Memory, ps.sinks.Memory]:
    def inverse(event: Row) -> list[Row]:
        return [{"inverse": 12 // event["x"]}]

    app = ps.App("numbers")
    rows = [{"ts": t, "x": t % 4} for t in range(12)]
    source = app.source("n", ps.sources.Rows(rows, {"ts": "timestamp", "x": "int64"}), event_time="ts")
    inverses = source.flat_map(inverse, {"inverse": "int64"}, on_error=on_error, name="inverses")
    good, failed, others = ps.sinks.Memory(), ps.sinks.Memory(), ps.sinks.Memory()
    app.sink("good", inverses, good)
    if on_error == "set_aside":
        app.sink("failed", inverses.failed(), failed)
    app.sink("others", source, others)
    return app, good, failed, others


def test_other_queries_of_a_run_on_a_node_go_on_and_the_summary_tells() -> None:
    app, good, failed, others = numbers("set_aside")
    summary = app.run(on=ps.Node(workers=1))
    assert (len(good.rows()), len(others.rows())) == (9, 12)
    said = "ZeroDivisionError: integer division or modulo by zero"
    assert failed.rows() == [{"ts": t, "x": 0, "error": said, "step": "inverses"} for t in (0, 4, 8)]
    assert summary.metrics.failed == {"inverses": 3}
    assert "events that 'inverses' failed for, set aside: 3 (read them with .failed())" in str(summary)
    with pytest.raises(RunError, match="step 'inverses'"):
        numbers("stop")[0].run(on=ps.Node(workers=1))


def test_what_cannot_be_set_aside_is_refused_in_words() -> None:
    app = ps.App("refused")
    source = app.source("s", ps.sources.Rows([], {"ts": "timestamp", "error": "string"}), event_time="ts")
    with pytest.raises(QueryError, match=r"unknown on_error: .*'ignore'; choose one of 'stop', 'set_aside'"):
        source.flat_map(lengths, {"n": "int64"}, on_error="ignore")
    with pytest.raises(QueryError, match="only a step that sets events aside has a failed output"):
        source.flat_map(lengths, {"n": "int64"}).failed()
    with pytest.raises(QueryError, match=r"'error' is taken by the failed output.*rename\(error="):
        source.flat_map(lengths, {"n": "int64"}, on_error="set_aside").failed()


def test_setting_aside_is_no_other_step_to_a_checkpoint() -> None:
    said = {stable_content(FlatMapSpec(lengths, on_error), Schema(n="int64")) for on_error in OnError}
    assert len(said) == 1
