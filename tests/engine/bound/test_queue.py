"""The queue of a bound thread: tasks in the order of a policy, each with a limit, and none forgotten."""

from __future__ import annotations

from itertools import count

import penstock as ps
from penstock.binding.tasks import BlockTask, Rebind
from penstock.engine.bound.queue import DispatchedInbox
from penstock.engine.seat.assembly import assemble
from penstock.engine.seat.settings import Settings
from penstock.engine.turns.turn import take_turn
from penstock.engine.turns.vertex import Vertex
from penstock.memory.coordinator import MemoryCoordinator
from penstock.scheduling.catalogue import policy_named
from penstock.scheduling.consumption import All, AtMost, Consumption
from penstock.scheduling.policy import Policy
from penstock.scheduling.state_based import StateBased
from penstock.scheduling.thresholds import Adaptation, ThresholdRange

SCHEMA = {"ts": "timestamp", "x": "int64"}
LIMIT = 100
SOURCE, ONE, TWO = range(3)
moments = count(1)


def pipeline() -> list[Vertex]:
    """A source that two sinks read."""
    app = ps.App("a")
    source = ps.sources.Columns({"ts": list(range(50)), "x": list(range(50))}, SCHEMA)
    stream = app.source("numbers", source, event_time="ts")
    app.sink("one", stream, ps.sinks.Discard())
    app.sink("two", stream, ps.sinks.Discard())
    vertices = assemble(app.graph(), Settings(workers=1), MemoryCoordinator(background=False))
    for vertex in vertices:
        if hasattr(vertex.operator, "open"):
            vertex.operator.open()
    return vertices


def inbox_of(
    vertices: list[Vertex], policy: str | Policy = "first_come", consumption: Consumption | None = None
) -> DispatchedInbox:
    return DispatchedInbox(vertices, policy_named(policy), LIMIT, 1_000_000, consumption or All())


def put(inbox: DispatchedInbox, *operators: int) -> None:
    for operator in operators:
        inbox.put(BlockTask(operator, operator, 0, next(moments)))


def taken(inbox: DispatchedInbox) -> list[int]:
    tasks = []
    while (task := inbox.take()) is not None:
        tasks.append(task.operator)
    return tasks


def test_first_come_is_first_served() -> None:
    inbox = inbox_of(pipeline())
    put(inbox, TWO, SOURCE, ONE)
    assert len(inbox) == 3
    assert taken(inbox) == [TWO, SOURCE, ONE]
    assert len(inbox) == 0
    assert inbox.pause_s is None
    put(inbox, ONE, TWO)  # each of them again
    assert taken(inbox) == [ONE, TWO]


def test_a_policy_puts_tasks_into_its_order() -> None:
    inbox = inbox_of(pipeline(), "min_latency")
    put(inbox, SOURCE, TWO, ONE)
    assert taken(inbox)[-1] == SOURCE


def test_the_longest_queue_is_the_longest_now_and_not_when_its_task_came() -> None:
    vertices = pipeline()
    inbox = inbox_of(vertices, "congestion")
    put(inbox, SOURCE, ONE, TWO)
    first = inbox.take()
    assert first is not None
    assert first.operator == SOURCE  # half a turn
    take_turn(vertices[SOURCE], LIMIT)
    take_turn(vertices[ONE], 30)
    assert taken(inbox) == [TWO, ONE]


def test_rebinds_come_before_all_tasks() -> None:
    inbox, rebind = inbox_of(pipeline()), Rebind(ONE, 1, 1, 0)
    put(inbox, ONE)
    inbox.put(rebind)
    assert inbox.take() == rebind
    assert taken(inbox) == [ONE]


def test_a_task_has_the_limit_that_policy_and_consumption_give_it() -> None:
    inbox = inbox_of(pipeline(), consumption=AtMost(7))
    put(inbox, ONE)
    taken(inbox)
    assert inbox.limits[ONE] == 7


def test_a_task_that_is_not_worth_a_turn_yet_is_kept_and_looked_at_again() -> None:
    vertices = pipeline()
    never = StateBased(Adaptation(ThresholdRange(40.0, 50.0, 0.0), ThresholdRange(1e18, 2e18, 0.0)))
    inbox = inbox_of(vertices, never)
    take_turn(vertices[SOURCE], 20)
    put(inbox, ONE)
    assert taken(inbox) == []
    assert len(inbox) == 0  # nothing to take now: its thread may sleep,
    assert inbox.pause_s == 0.001  # for an epoch
    take_turn(vertices[SOURCE], 25)
    assert taken(inbox) == [ONE]
    assert inbox.pause_s is None
