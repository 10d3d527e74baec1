"""The scheduler: planned turns are taken once, by one worker each, and short ones by one worker alone."""

from __future__ import annotations

import penstock as ps
from penstock.engine.assembly import assemble
from penstock.engine.scheduler import Scheduler
from penstock.engine.settings import Settings
from penstock.engine.source import SourceOperator
from penstock.engine.vertex import Vertex
from penstock.memory.coordinator import MemoryCoordinator
from penstock.scheduling.round_robin import RoundRobin

SCHEMA = {"ts": "timestamp", "x": "int64"}
LIMIT = 1_000


def scheduled(least_cost_ns: float) -> tuple[Scheduler, list[Vertex]]:
    """Two sources with work, each event of which is known to cost that much."""
    app = ps.App("a")
    for name in ("one", "two"):
        source = ps.sources.Columns({"ts": list(range(LIMIT)), "x": list(range(LIMIT))}, SCHEMA)
        app.sink(f"{name}_out", app.source(name, source, event_time="ts"), ps.sinks.Discard())
    vertices = assemble(app.graph(), Settings(workers=2), MemoryCoordinator(background=False))
    for vertex in vertices:
        vertex.counters.least_cost_ns = least_cost_ns
        if isinstance(vertex.operator, SourceOperator):
            vertex.operator.open()
    return Scheduler(vertices, RoundRobin(), LIMIT, epoch_us=1), vertices


def test_long_turns_are_given_to_several_workers_at_once() -> None:
    scheduler, _ = scheduled(least_cost_ns=100.0)  # 100 µs a turn
    first, second = scheduler.next_turn(), scheduler.next_turn()
    assert first is not None
    assert second is not None
    assert first[0] is not second[0]
    assert first[0].running
    assert second[0].running


def test_short_turns_are_left_to_one_worker() -> None:
    scheduler, _ = scheduled(least_cost_ns=1.0)  # 1 µs a turn
    first = scheduler.next_turn()
    assert first is not None
    assert scheduler.next_turn() is None  # for a second worker it is not worth it
    scheduler.finish(first[0], now_ns=1)
    following = scheduler.next_turn()
    assert following is not None
    assert following[0] is not first[0]


def test_an_operator_that_runs_is_not_given_out_again() -> None:
    scheduler, vertices = scheduled(least_cost_ns=100.0)
    taken = [scheduler.next_turn() for _ in range(len(vertices))]
    assert sum(turn is not None for turn in taken) == 2


def test_after_a_stop_there_are_no_turns() -> None:
    scheduler, _ = scheduled(least_cost_ns=100.0)
    scheduler.stop()
    assert scheduler.next_turn() is None
    assert scheduler.stopped
