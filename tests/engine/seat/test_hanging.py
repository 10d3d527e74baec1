"""A function or sink that never returns: a stopped run ends without it and names it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import penstock as ps
from penstock.engine.node import Node
from penstock.query.errors import PenstockError, QueryError, RunError
from tests.engine.seat.test_execution import numbers


class Gate:
    """Stays in its first call until it is opened."""

    def __init__(self) -> None:
        self.entered, self.opened, self.left = threading.Event(), threading.Event(), threading.Event()

    def __call__(self, event: Any) -> list[Any]:
        self.entered.set()
        self.opened.wait()
        self.left.set()
        return [event] if isinstance(event, dict) else []


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.opened.set()
    if gate.entered.is_set():
        assert gate.left.wait(60)


def _app(gate: Gate, where: str) -> ps.App:
    app = ps.App("hanging")
    events = app.source("numbers", numbers(None), event_time="ts")
    app.sink("even", events, ps.sinks.Memory())
    if where == "step":
        slow = events.flat_map(gate, {"ts": "timestamp", "x": "int64"}, name="slow")
        app.sink("slow_rows", slow, ps.sinks.Memory())
    else:
        app.sink("slow", events, ps.sinks.Callback(gate))
    return app


RUNNERS: list[dict[str, Any]] = [{}, {"threads": "per_operator"}, {"binding": "greedy"}]


@pytest.mark.parametrize("where", ["step", "sink"])
@pytest.mark.parametrize("settings", RUNNERS)
def test_a_stopped_run_leaves_behind_what_hangs_and_names_it(
    where: str, settings: dict[str, Any], gate: Gate
) -> None:
    execution = Node(workers=2, block_events=16, stop_grace="100ms", **settings).start(
        _app(gate, where).graph()
    )
    assert gate.entered.wait(60)
    execution.stop()
    assert execution.wait(60)
    with pytest.raises(
        RunError, match=r"the run was stopped and step 'slow' did not come back within 0\.1 s"
    ):
        execution.finish()
    assert not gate.left.is_set()


def test_what_comes_back_after_all_disturbs_nobody(gate: Gate) -> None:
    execution = Node(workers=2, block_events=16, stop_grace="50ms").start(_app(gate, "step").graph())
    assert gate.entered.wait(60)
    execution.stop()
    with pytest.raises(RunError, match="step 'slow' did not come back"):
        execution.finish()
    gate.opened.set()
    assert gate.left.wait(60)
    with pytest.raises(RunError, match="step 'slow' did not come back"):
        execution.finish()


def test_without_a_grace_time_the_run_waits(gate: Gate) -> None:
    execution = Node(workers=2, block_events=16, stop_grace=None).start(_app(gate, "step").graph())
    assert gate.entered.wait(60)
    execution.stop()
    assert not execution.wait(0.3)
    gate.opened.set()
    assert not execution.finish().complete


def test_turns_that_end_are_given_all_the_time_they_need() -> None:
    app = ps.App("slow")
    events = app.source("numbers", numbers(200), event_time="ts")
    step = threading.Semaphore(0)

    def slow(event: dict[str, Any]) -> list[dict[str, Any]]:
        step.acquire()
        return [event]

    sink = ps.sinks.Memory()
    app.sink("rows", events.flat_map(slow, {"ts": "timestamp", "x": "int64"}), sink)
    execution = Node(workers=1, block_events=1, turn_blocks=1, stop_grace="30s").start(app.graph())
    execution.stop()
    while not execution.wait(0.001):
        step.release()
    assert not execution.finish().complete


@pytest.mark.parametrize("grace", ["0s", "-1s"])
def test_a_grace_time_that_is_none_is_refused(grace: str) -> None:
    with pytest.raises(QueryError, match="stop_grace must be positive"):
        Node(stop_grace=grace)


def test_a_grace_time_that_is_no_time_is_refused() -> None:
    with pytest.raises(PenstockError, match="stop_grace must be text or a timedelta"):
        Node(stop_grace=30)  # type: ignore[arg-type]
