"""Runs in which threads own operators: they end, stop, fail with a name, and rebind as they were told to."""

from __future__ import annotations

import threading
from random import Random
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import col, count, tumbling
from penstock.binding.greedy import Greedy
from penstock.binding.policy import Binding, Load
from penstock.engine.bound.threads import BoundThreads
from penstock.engine.node import Node
from penstock.engine.seat.execution import Execution
from penstock.engine.seat.summary import NodeSummary
from penstock.query.errors import PenstockError, RunError

EVENTS = 2_000
SCHEMA = {"ts": "timestamp", "x": "int64"}
INSTALLATIONS = ["non_blocking", "barrier", "shared_queue"]
LONG_S = 600.0  # unless it hangs, no run here takes a second; but the machine may be halted for minutes


def fill(offset: int, n: int, columns: dict[str, Any], start: int) -> None:
    columns["ts"][start : start + n] = np.arange(offset, offset + n) * 1_000
    columns["x"][start : start + n] = np.arange(offset, offset + n)


def numbers(limit: int | None = EVENTS, **rest: Any) -> ps.sources.Generator:
    return ps.sources.Generator(fill, SCHEMA, limit=limit, **rest)


def bound(**settings: Any) -> Node:
    small = {"workers": 2, "block_events": 16, "chunk_blocks": 2, "max_chunks": 2, "rebind_every_s": 3600.0}
    return Node(
        **{"binding": "greedy", "fusion": False, **small, **settings}
    )  # so that there is more to bind


def counting(source: ps.sources.Generator) -> tuple[ps.App, ps.sinks.Memory]:
    app, sink = ps.App("a"), ps.sinks.Memory()
    stream = app.source("numbers", source, event_time="ts")
    app.sink("odd", stream.filter(col("x") % 2 == 1).window(tumbling("1s")).agg(n=count()), sink)
    return app, sink


def rebinding_every(turns: int, seed: int = 0) -> Any:
    """Requests a random binding after every so many turns."""
    random, state = Random(seed), {"turns": 0}

    def after_turn(threads: BoundThreads) -> None:
        state["turns"] += 1
        if state["turns"] % turns == 0:
            machine = threads.installation
            threads.install(tuple(random.randrange(machine.threads) for _ in machine.owners))

    return after_turn


def runner_of(execution: Execution) -> BoundThreads:
    assert isinstance(execution._runner, BoundThreads)
    return execution._runner


def finished(app: ps.App, node: Node, after_turn: Any) -> NodeSummary:
    execution = Execution(app.graph(), node)
    runner_of(execution).after_turn = after_turn
    execution.start()
    assert execution.wait(LONG_S), "the run hangs"
    return execution.finish()


@pytest.mark.parametrize("installation", INSTALLATIONS)
@pytest.mark.parametrize("workers", [1, 3])
def test_a_bounded_run_ends_complete_while_it_is_rebound_all_the_time(
    installation: str, workers: int
) -> None:
    app, sink = counting(numbers())
    node = bound(installation=installation, workers=workers)
    summary = finished(app, node, rebinding_every(3))
    assert summary.complete
    assert sorted(row["n"] for row in sink.rows()) == [500, 500]
    assert (summary.metrics.read, summary.metrics.written) == (EVENTS, 2)
    rebinding = summary.metrics.rebinding
    assert rebinding is not None
    assert (rebinding.rebinds > 0) == (workers > 1 and installation != "shared_queue")
    assert rebinding.parked == 0  # an edge's cursor keeps the order by itself
    assert installation == "barrier" or rebinding.waited_ns == 0


@pytest.mark.parametrize("binding", ["greedy", "greedy_literal", "static", "static_by_type", Greedy()])
def test_users_choose_a_binding_by_name_or_give_a_policy(binding: Any) -> None:
    app, sink = counting(numbers())
    summary = app.run(on=bound(binding=binding))
    assert sorted(row["n"] for row in sink.rows()) == [500, 500]
    assert summary.metrics.rebinding is not None


def test_a_run_without_a_binding_counts_no_rebinding() -> None:
    app, _ = counting(numbers())
    assert app.run(on=Node(workers=1)).metrics.rebinding is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"binding": "gready"}, "unknown binding: 'gready'"),
        ({"installation": "lazy"}, "unknown installation: 'lazy'"),
        ({"rebind_every_s": 0.0}, "rebind_every_s must be positive: got 0.0"),
        (
            {"threads": "per_operator"},
            "a binding gives operators to workers: threads='per_operator' has none",
        ),
        ({"rules": ps.Rules(passes=False)}, "a bound worker takes one operator at a time"),
        ({"binding": None, "installation": "barrier"}, "installation is of a binding, and there is none"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    app, _ = counting(numbers())
    with pytest.raises(PenstockError, match=message):
        app.run(on=bound(**settings))


class Noting:
    """A policy that notes what it was told and sends everything to the last thread."""

    name = "noting"
    adapts = True

    def __init__(self) -> None:
        self.loads: list[Load] = []
        self.was_asked = threading.Event()

    def initial(self, kinds: Any, threads: int) -> Binding:
        return (0,) * len(kinds)

    def plan(self, load: Load, state: Any) -> tuple[Binding, Any]:
        self.loads.append(load)
        self.was_asked.set()
        return (load.threads - 1,) * len(load.binding), (state or 0) + 1


def test_the_policy_is_asked_periodically_with_the_work_since_the_last_time() -> None:
    policy = Noting()
    app, _ = counting(numbers(None))
    node = bound(binding=policy, rebind_every_s=0.001)
    execution = node.start(app.graph())
    assert policy.was_asked.wait(LONG_S)
    execution.stop()
    assert execution.wait(LONG_S)
    summary = execution.finish()
    assert policy.loads[0].binding == (0, 0, 0, 0)
    assert all(load.binding == (1, 1, 1, 1) for load in policy.loads[1:])
    assert all(len(load.work) == 4 and min(load.work) >= 0.0 for load in policy.loads)
    assert summary.metrics.rebinding is not None
    assert summary.metrics.rebinding.rebinds in (0, 1, 2, 3, 4)  # the stop may come before they are stored
    assert summary.metrics.decision_ns > 0


def test_the_load_is_the_time_since_the_last_rebinding_and_what_the_rest_will_take() -> None:
    app, _ = counting(numbers())
    execution = Execution(app.graph(), bound())
    observed = runner_of(execution).observed
    source, odd = execution._vertices[0], execution._vertices[1]
    odd.counters.busy_ns, odd.counters.processed = 600, 20  # 30 ns each
    odd.edges[0].outlet.written, odd.edges[0].consumed = 25, 20
    source.counters.busy_ns, source.counters.processed = 50, 25
    first = observed.take([0, 1, 0, 1])
    assert first == Load((0, 1, 0, 1), (50.0, 600 + 5 * 30.0, 0.0, 0.0), 2)
    odd.counters.busy_ns, odd.counters.processed = 700, 25  # the last five took 20 ns each
    odd.edges[0].consumed = 25
    assert observed.take([0, 1, 0, 1]).work == (0.0, 100.0, 0.0, 0.0)
    odd.edges[0].outlet.written = 28  # nothing done since: what waits, at the last known cost
    assert observed.take([0, 1, 0, 1]).work == (0.0, 60.0, 0.0, 0.0)


def test_a_paced_source_that_is_rebound_while_it_is_quiet_goes_on() -> None:
    app, sink = counting(numbers(300, rate=3_000))
    summary = finished(app, bound(workers=3), rebinding_every(1, seed=5))
    assert summary.metrics.read == 300
    assert [row["n"] for row in sink.rows()] == [150]


@pytest.mark.parametrize("installation", INSTALLATIONS)
def test_stop_drains_what_is_under_way(installation: str) -> None:
    started, seen = threading.Event(), []

    def note(rows: list[dict[str, Any]]) -> None:
        seen.extend(row["x"] for row in rows)
        started.set()

    app = ps.App("a")
    app.sink("all", app.source("numbers", numbers(None), event_time="ts"), ps.sinks.Callback(note))
    execution = bound(installation=installation).start(app.graph())
    assert started.wait(LONG_S)
    execution.stop()
    assert execution.wait(LONG_S)
    summary = execution.finish()
    assert not summary.complete
    assert seen == list(range(summary.metrics.read))


def test_stop_ends_a_run_whose_source_waits_for_its_next_event() -> None:
    app = ps.App("a")
    source = numbers(None, rate=[(0.001, 100_000), (3600, 0), (1, 1)])
    started = threading.Event()
    app.sink("all", app.source("n", source, event_time="ts"), ps.sinks.Callback(lambda rows: started.set()))
    execution = bound().start(app.graph())
    assert started.wait(LONG_S)
    execution.stop()
    assert execution.wait(LONG_S)
    execution.finish()


def test_abort_ends_at_once() -> None:
    app, _ = counting(numbers(None))
    execution = bound().start(app.graph())
    execution.abort()
    assert execution.wait(LONG_S)
    execution.finish()


@pytest.mark.parametrize("installation", INSTALLATIONS)
def test_a_function_that_raises_stops_the_run_and_is_named(installation: str) -> None:
    def unlucky(event: dict[str, Any]) -> list[dict[str, Any]]:
        if event["x"] == 13:
            raise ValueError("thirteen")
        return [event]

    app = ps.App("a")
    stream = app.source("numbers", numbers(), event_time="ts")
    app.sink("out", stream.flat_map(unlucky, output=SCHEMA, name="luck"), ps.sinks.Memory())
    with pytest.raises(RunError) as raised:
        app.run(on=bound(installation=installation))
    for part in ("luck", "unlucky", "thirteen", "13"):
        assert part in str(raised.value)


def test_a_policy_that_raises_stops_the_run() -> None:
    class Failing(Noting):
        def plan(self, load: Load, state: Any) -> tuple[Binding, Any]:
            raise ValueError("no plan")

    app, _ = counting(numbers(None))
    execution = bound(binding=Failing(), rebind_every_s=0.001).start(app.graph())
    assert execution.wait(LONG_S)
    with pytest.raises(ValueError, match="no plan"):
        execution.finish()


def test_a_slow_reader_holds_the_source_back_within_the_cap() -> None:
    held, reached = threading.Semaphore(0), threading.Event()
    taken: list[int] = []

    def slow(rows: list[dict[str, Any]]) -> None:
        reached.set()
        held.acquire()
        taken.extend(row["x"] for row in rows)

    app = ps.App("a")
    app.sink("slow", app.source("numbers", numbers(None), event_time="ts"), ps.sinks.Callback(slow))
    execution = bound().start(app.graph())
    assert reached.wait(LONG_S)
    assert execution.metrics()["numbers"].emitted <= 2 * 2 * 16
    execution.stop()
    held.release(1_000_000)
    assert execution.wait(LONG_S)
    execution.finish()
    assert taken == list(range(execution.metrics().read))


def test_no_thread_is_left_behind() -> None:
    before = set(threading.enumerate())
    app, _ = counting(numbers())
    app.run(on=bound(workers=3))
    assert set(threading.enumerate()) <= before
