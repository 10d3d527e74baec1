"""Readiness: an operator with something to do has one task under way, never two and never none."""

from __future__ import annotations

import penstock as ps
from penstock.binding.non_blocking import NonBlocking
from penstock.binding.tasks import Action, BlockTask
from penstock.engine.bound.readiness import Readiness
from penstock.engine.seat.assembly import assemble
from penstock.engine.seat.settings import Settings
from penstock.engine.turns.sink import SinkOperator
from penstock.engine.turns.source import SourceOperator
from penstock.engine.turns.turn import take_turn
from penstock.engine.turns.vertex import Vertex
from penstock.memory.coordinator import MemoryCoordinator

SCHEMA = {"ts": "timestamp", "x": "int64"}


def made() -> tuple[Readiness, NonBlocking, Vertex, Vertex]:
    """A source and a sink in two threads, in blocks so small that the source is soon held back."""
    app = ps.App("a")
    source = ps.sources.Columns({"ts": list(range(100)), "x": list(range(100))}, SCHEMA)
    app.sink("out", app.source("in", source, event_time="ts"), ps.sinks.Discard())
    settings = Settings(workers=2, block_events=4, max_chunks=2)
    vertices = assemble(app.graph(), settings, MemoryCoordinator(background=False))
    for vertex in vertices:
        if isinstance(vertex.operator, SourceOperator | SinkOperator):
            vertex.operator.open()
    machine = NonBlocking(range(2), [0, 1], 2)
    return Readiness(vertices, machine), machine, vertices[0], vertices[1]


def queued(machine: NonBlocking) -> list[int]:
    return [len(queue) for queue in machine.queues]


def taken(machine: NonBlocking, thread: int) -> None:
    step = machine.step(thread, 0)
    assert step.action is Action.PROCESS
    assert isinstance(step.task, BlockTask)
    machine.finish(thread, step.task, 0)


def test_an_operator_is_sent_one_task_however_often_it_is_told() -> None:
    readiness, machine, _, sink = made()
    for _ in range(3):
        readiness.tell(sink)
    assert queued(machine) == [0, 1]


def test_readers_are_told_only_of_what_is_there() -> None:
    readiness, machine, source, _ = made()
    readiness.tell_readers(source)
    assert queued(machine) == [0, 0]
    take_turn(source, 4)
    readiness.tell_readers(source)
    assert queued(machine) == [0, 1]


def test_work_that_comes_during_the_turn_is_found_at_its_end() -> None:
    readiness, machine, source, sink = made()
    take_turn(source, 4)
    readiness.tell_readers(source)
    taken(machine, 1)
    take_turn(source, 2)  # while the sink is at work
    readiness.tell_readers(source)
    assert queued(machine) == [0, 0]
    readiness.end_task(sink, 0)
    assert queued(machine) == [0, 1]


def test_a_writer_held_back_is_told_when_memory_is_given_back() -> None:
    readiness, machine, source, sink = made()
    readiness.start([source, sink])
    taken(machine, 0)
    while not source.blocked:
        take_turn(source, 100)
    readiness.end_task(source, 0)
    assert queued(machine) == [0, 0]  # it can do nothing now
    take_turn(sink, 100)
    assert queued(machine) == [1, 0]


def test_the_wait_for_a_turn_counts_from_the_task() -> None:
    readiness, _, _, sink = made()
    assert readiness.open_wait_ns(sink, 10**18) == 0
    readiness.tell(sink)
    assert readiness.open_wait_ns(sink, 10**18) > 0
    assert readiness.begin_turn(sink) > 0
    assert readiness.open_wait_ns(sink, 10**18) == 0
