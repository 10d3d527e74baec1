"""The scheduler: the best eligible operator goes to one worker, and nobody is woken or asked in vain."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import penstock as ps
from penstock import col
from penstock.engine.arrivals import Arrivals
from penstock.engine.assembly import assemble
from penstock.engine.board import SLEEPING
from penstock.engine.figures import Figures
from penstock.engine.observation import topology_of
from penstock.engine.scheduler import Scheduler
from penstock.engine.settings import Settings
from penstock.engine.sleepers import Seat
from penstock.engine.source import SourceOperator
from penstock.engine.turn import take_turn
from penstock.engine.vertex import Vertex
from penstock.memory.coordinator import MemoryCoordinator
from penstock.memory.edges import Watermark
from penstock.scheduling.catalogue import policy_named
from penstock.scheduling.consumption import AtMost, Consumption

SCHEMA = {"ts": "timestamp", "x": "int64"}
EVENTS = 1_000
LIMIT = 600


def built(app: ps.App) -> list[Vertex]:
    vertices = assemble(app.graph(), Settings(workers=2), MemoryCoordinator(background=False))
    for vertex in vertices:
        if hasattr(vertex.operator, "open"):
            vertex.operator.open()
    return vertices


def two_sources() -> list[Vertex]:
    app = ps.App("a")
    for name in ("one", "two"):
        source = ps.sources.Columns({"ts": list(range(EVENTS)), "x": list(range(EVENTS))}, SCHEMA)
        app.sink(f"{name}_out", app.source(name, source, event_time="ts"), ps.sinks.Discard())
    return built(app)


def fan_out(readers: int) -> list[Vertex]:
    """A source that so many filters read, each with a sink."""
    app = ps.App("a")
    source = ps.sources.Columns({"ts": list(range(EVENTS)), "x": list(range(EVENTS))}, SCHEMA)
    stream = app.source("numbers", source, event_time="ts")
    for number in range(readers):
        app.sink(f"out{number}", stream.filter(col("x") > number), ps.sinks.Discard())
    return built(app)


def scheduled(
    vertices: list[Vertex],
    policy: str = "round_robin",
    least_cost_ns: float = 1_000.0,
    consumption: Consumption | None = None,
    workers: int = 1,
) -> Scheduler:
    """As it stands at the start of an epoch, if each event is known to cost that much."""
    for vertex in vertices:
        vertex.counters.least_cost_ns = least_cost_ns
    scheduler = Scheduler(vertices, policy_named(policy), LIMIT, 1_000, consumption, workers)
    for vertex in vertices:
        scheduler.figures.end_turn(vertex, 0)
    scheduler.begin_epoch()
    return scheduler


def taken(scheduler: Scheduler) -> Vertex:
    turn = scheduler.next_turn()
    assert turn is not None
    return turn[0]


def run_turn(scheduler: Scheduler, now_ns: int = 1) -> Vertex:
    """Takes a turn and gives the operator back."""
    turn = scheduler.next_turn()
    assert turn is not None
    take_turn(*turn)
    scheduler.finish(turn[0], now_ns)
    return turn[0]


def test_long_turns_are_given_to_several_workers_at_once() -> None:
    scheduler = scheduled(two_sources())  # 600 µs a turn
    first, second = taken(scheduler), taken(scheduler)
    assert first is not second
    assert {scheduler.is_held(first), scheduler.is_held(second)} == {True}


def test_short_turns_are_left_to_one_worker() -> None:
    scheduler = scheduled(two_sources(), least_cost_ns=1.0)  # less than a microsecond a turn
    first = taken(scheduler)
    assert scheduler.next_turn() is None  # for a second worker it is not worth it
    take_turn(first, LIMIT)
    scheduler.finish(first, now_ns=1)
    assert taken(scheduler) is not first


def test_short_turns_are_given_out_several_at_once_and_come_back_together() -> None:
    vertices = fan_out(20)
    scheduler = scheduled(vertices, "min_latency", least_cost_ns=1.0)
    assert [vertex.operator.node.kind for vertex, _ in scheduler.next_turns()] == ["source"]
    take_turn(vertices[0], LIMIT)
    scheduler.finish(vertices[0], 1)
    turns = scheduler.next_turns()
    kinds = [vertex.operator.node.kind for vertex, _ in turns]
    assert (kinds.count("filter"), len(set(vertex.index for vertex, _ in turns))) == (20, len(turns))
    assert scheduler.next_turns() == []  # one worker has them all
    for turn in turns:
        take_turn(*turn)
    scheduler.finish_turns([vertex for vertex, _ in turns], 2)
    following = [vertex.operator.node.kind for vertex, _ in scheduler.next_turns()]
    assert following.count("sink") == 20


def given_out(scheduler: Scheduler) -> list[str]:
    return [vertex.operator.node.kind for vertex, _ in scheduler.next_turns()]


def test_an_operator_is_given_out_with_all_behind_it_if_the_policy_puts_them_first() -> None:
    assert given_out(scheduled(fan_out(2), "min_latency")) == ["source", "filter", "filter", "sink", "sink"]
    assert given_out(scheduled(fan_out(2), "round_robin")) == ["source"]
    assert given_out(scheduled(fan_out(20), "min_latency")) == ["source"]  # too many to keep from others


def test_what_is_behind_an_operator_is_left_to_workers_that_have_nothing_else() -> None:
    scheduler = scheduled(fan_out(1), "min_latency", workers=2)
    assert given_out(scheduler) == ["source"]
    scheduler = scheduled(two_sources(), "min_latency", workers=2)
    assert given_out(scheduler) == ["source", "sink"]  # the other has a source
    scheduler.figures.board.number[SLEEPING] = 1
    assert given_out(scheduler) == ["source"]


def test_what_has_work_already_is_not_given_out_with_the_one_before() -> None:
    vertices = fan_out(1)
    scheduler = scheduled(vertices, "min_latency")
    turn = scheduler.next_turn()
    assert turn is not None
    take_turn(*turn)
    scheduler.finish(turn[0], 1)
    assert given_out(scheduler) == ["filter", "sink"]
    assert given_out(scheduler) == ["source"]


def test_operators_come_back_from_a_pass_with_nothing_or_with_what_stopped_them() -> None:
    vertices = fan_out(1)
    scheduler = scheduled(vertices, "min_latency")
    turns = scheduler.next_turns()
    source, reader, sink = vertices
    take_turn(source, 500)
    take_turn(reader, 200)
    take_turn(sink, 500)
    following = scheduler.exchange([vertex for vertex, _ in turns], {reader}, 1)
    assert [vertex for vertex, _ in following] == [reader, sink]
    scheduler.exchange([vertex for vertex, _ in following], {reader}, 2)
    scheduler.begin_epoch()
    assert scheduler.figures.pending(3).tolist()[1] == reader.waiting() > 0


def test_a_paced_source_waits_for_as_long_as_the_policy_wants_it_to() -> None:
    app = ps.App("a")
    columns = {"ts": list(range(EVENTS)), "x": list(range(EVENTS))}
    source = ps.sources.Columns(columns, SCHEMA, rate=1_000_000.0)
    app.sink("out", app.source("numbers", source, event_time="ts"), ps.sinks.Discard())
    vertices = built(app)
    figures = Figures(vertices)
    arrivals = Arrivals(vertices, figures, 1_000)
    operator = vertices[0].operator
    assert isinstance(operator, SourceOperator)
    arrivals.poll(10**9)  # the pace begins
    now_ns = operator.next_due_ns()
    assert now_ns is not None
    figures.board.given_ns[0] = now_ns
    for patience_ns, wait_ns in ((0, 1_000), (7_000, 7_000)):
        arrivals.patience_ns = patience_ns
        assert arrivals.after_turn(vertices[0], now_ns) == 0
        assert arrivals.next_look_ns <= now_ns + wait_ns
        assert list(arrivals.due(now_ns + wait_ns - 1)) == []
        assert list(arrivals.due(now_ns + wait_ns)) == [(vertices[0], 1)]


def test_a_sink_needs_no_turn_for_a_watermark() -> None:
    app = ps.App("a")
    source = ps.sources.Columns({"ts": list(range(EVENTS)), "x": list(range(EVENTS))}, SCHEMA)
    stream = app.source("numbers", source, event_time="ts")
    app.sink("counts", stream.window(ps.tumbling("1h")).agg(n=ps.count()), ps.sinks.Discard())
    source_vertex, window, sink = built(app)
    take_turn(source_vertex, 100)
    take_turn(window, 100)
    assert window.watermark == 99
    assert [mark for _, mark in sink.edges[0].marks if isinstance(mark, Watermark)] == []


def test_an_operator_that_runs_is_not_given_out_again() -> None:
    vertices = two_sources()
    scheduler = scheduled(vertices)
    turns = [scheduler.next_turn() for _ in range(len(vertices))]
    scheduler.begin_epoch()
    turns += [scheduler.next_turn() for _ in range(len(vertices))]
    assert sum(turn is not None for turn in turns) == 2


def test_after_a_stop_there_are_no_turns() -> None:
    scheduler = scheduled(two_sources())
    scheduler.stop()
    assert scheduler.next_turn() is None
    assert scheduler.stopped
    assert scheduler.sleep(Seat()) == []  # returns at once


@pytest.mark.parametrize("readers", [1, 3, 20])  # few are refreshed one by one, many planned for together
def test_readers_are_eligible_as_soon_as_a_turn_has_sent_them_something(readers: int) -> None:
    vertices = fan_out(readers)
    scheduler = scheduled(vertices, "min_latency")
    assert run_turn(scheduler) is vertices[0]
    ran = {run_turn(scheduler).operator.node.kind for _ in range(2 * readers)}
    assert ran == {"filter", "sink"}


def test_the_longest_queue_is_the_longest_now_and_not_at_the_start_of_the_epoch() -> None:
    scheduler = scheduled(two_sources(), "congestion")
    first = taken(scheduler)
    take_turn(first, 300)
    scheduler.finish(first, 1)
    assert taken(scheduler) is first.readers[0]  # 300 events and a mark; a source counts as 300 at the most


def test_a_turn_without_output_wakes_no_reader() -> None:
    app = ps.App("a")
    source = ps.sources.Columns({"ts": list(range(EVENTS)), "x": list(range(EVENTS))}, SCHEMA)
    stream = app.source("numbers", source, event_time="ts")
    app.sink("out", stream.window(ps.tumbling("1h")).agg(n=ps.count()), ps.sinks.Discard())
    source_vertex, window, sink = built(app)
    scheduler = scheduled([source_vertex, window, sink], "min_latency")
    take_turn(*_held(scheduler))  # 600 events and a watermark
    scheduler.finish(source_vertex, 1)
    assert taken(scheduler) is window
    window.edges[0].marks.clear()  # as if no mark had come: the window keeps its events
    take_turn(window, LIMIT)
    scheduler.finish(window, 2)
    assert taken(scheduler) is source_vertex
    assert scheduler.next_turn() is None


def _held(scheduler: Scheduler) -> tuple[Vertex, int]:
    turn = scheduler.next_turn()
    assert turn is not None
    return turn


def test_a_turn_takes_what_policy_and_consumption_allow() -> None:
    assert _held(scheduled(two_sources()))[1] == LIMIT
    assert _held(scheduled(two_sources(), consumption=AtMost(7)))[1] == 7


def test_where_turns_take_a_part_of_what_there_is_nobody_goes_with_the_one_before() -> None:
    scheduler = scheduled(fan_out(1), "min_latency", consumption=AtMost(7))
    assert [limit for _, limit in scheduler.next_turns()] == [7]


def test_who_is_freed_before_a_worker_sleeps_is_taken_at_once() -> None:
    vertices = two_sources()
    scheduler = scheduled(vertices)
    first, other = taken(scheduler), taken(scheduler)
    first.blocked = True
    scheduler.finish(first, 1)
    assert scheduler.next_turns() == []
    first._unblock()  # nobody sleeps yet who could be woken
    assert [vertex for vertex, _ in scheduler.sleep(Seat())] == [first]
    assert scheduler.is_held(other)


class _ShownBlocked:
    """A board on which memory is freed, for an operator, in the moment in which it is shown as blocked."""

    def __init__(self, vertex: Vertex) -> None:
        self.vertex, self.shown = vertex, False

    def __setitem__(self, index: int, blocked: bool) -> None:
        if blocked:
            self.vertex._unblock()
        self.shown = blocked


def test_memory_freed_while_an_operator_is_shown_as_blocked_leaves_it_as_it_is_shown() -> None:
    vertex = two_sources()[0]
    vertex.board = board = _ShownBlocked(vertex)  # type: ignore[assignment]
    vertex._show_blocked(True)
    assert vertex.blocked
    assert board.shown
    vertex._unblock()
    assert not vertex.blocked
    assert not board.shown


def test_a_blocked_operator_comes_back_when_its_memory_is_freed() -> None:
    vertices = two_sources()
    scheduler = scheduled(vertices)
    first = taken(scheduler)
    first.blocked = True
    scheduler.finish(first, 1)
    other = taken(scheduler)
    assert other is not first
    assert scheduler.next_turn() is None
    first._unblock()
    assert taken(scheduler) is first


def test_below_its_thresholds_an_operator_of_the_state_policy_waits_for_an_epoch() -> None:
    vertices = fan_out(1)
    scheduler = scheduled(vertices, "state")
    source = taken(scheduler)  # never ran: idle for long enough
    take_turn(source, 10)
    now_ns = 10**15
    for vertex in vertices[1:]:
        scheduler.figures.end_turn(vertex, now_ns)  # the readers have just had a turn
    scheduler.finish(source, now_ns)
    assert taken(scheduler) is source  # what it could still read fills a turn
    assert scheduler.next_turn() is None  # 10 events are below the event threshold


def test_the_last_operator_that_finishes_ends_the_run() -> None:
    vertices = fan_out(2)
    scheduler = scheduled(vertices, "congestion")
    while not scheduler.stopped:
        turn = scheduler.next_turn()
        if turn is None:
            scheduler.begin_epoch()
            continue
        take_turn(*turn)
        scheduler.finish(turn[0], 1)
    assert all(vertex.finished for vertex in vertices)


def test_a_sleeping_worker_is_woken_by_an_epoch_that_has_work_for_it() -> None:
    vertices = two_sources()
    scheduler = Scheduler(vertices, policy_named("congestion"), LIMIT, 1_000)
    woken = threading.Event()

    def sleep() -> None:
        scheduler.sleep(Seat())
        woken.set()

    thread = threading.Thread(target=sleep)
    thread.start()
    while not woken.is_set():  # the thread may not have gone to sleep yet
        scheduler.begin_epoch()
    thread.join()


def test_a_paced_source_that_was_read_empty_waits_for_its_next_event() -> None:
    app = ps.App("a")
    source = ps.sources.Columns(
        {"ts": list(range(EVENTS)), "x": list(range(EVENTS))}, SCHEMA, rate=1_000_000.0
    )
    app.sink("out", app.source("numbers", source, event_time="ts"), ps.sinks.Discard())
    vertices = built(app)
    scheduler = scheduled(vertices, "congestion")
    figures, operator = scheduler.figures, vertices[0].operator
    assert isinstance(operator, SourceOperator)
    due_ns = operator.next_due_ns()  # asking for its events has begun the pace: one per microsecond
    assert due_ns is not None
    assert figures.due(0) == due_ns
    assert figures.pending(due_ns - 1)[0] == 0
    assert figures.pending(due_ns)[0] == 1
    figures.set_rates(np.array([0.001, 0.0]))
    assert figures.pending(due_ns + 5_000)[0] == 6  # by its rate so far


def test_the_topology_of_a_run_has_readers_behind_their_writers() -> None:
    topology = topology_of(fan_out(2))
    assert (
        topology.kinds == ("source", "filter", "sink", "filter", "sink") or topology.kinds.count("sink") == 2
    )
    assert len(topology.children[0]) == 2
    assert len(topology.sinks[0]) == 2
