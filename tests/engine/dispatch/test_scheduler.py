"""The scheduler: the best eligible operator goes to one worker, and nobody is woken or asked in vain."""

from __future__ import annotations

import threading

import pytest

import penstock as ps
from penstock import col
from penstock.engine.dispatch.observation import topology_of
from penstock.engine.dispatch.scheduler import Scheduler
from penstock.engine.dispatch.sleepers import Seat
from penstock.engine.seat.assembly import assemble
from penstock.engine.seat.settings import Settings
from penstock.engine.turns.turn import take_turn
from penstock.engine.turns.vertex import Vertex
from penstock.memory.coordinator import MemoryCoordinator
from penstock.memory.edges import Watermark
from penstock.scheduling.catalogue import policy_named
from penstock.scheduling.consumption import AtMost, Consumption

SCHEMA = {"ts": "timestamp", "x": "int64"}
EVENTS = 1_000
LIMIT = 600
NOW_NS = 1


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
    scheduler.begin_epoch()
    scheduler.desk.dispatcher.plan_due_ns = 1 << 62  # no other plan, unless the test makes one
    return scheduler


def taken(scheduler: Scheduler) -> Vertex:
    """One operator, which is held now."""
    ((vertex, _),) = scheduler.next_turns(1)
    return vertex


def finish(scheduler: Scheduler, *vertices: Vertex, now_ns: int = NOW_NS) -> None:
    """Gives operators back and takes nothing."""
    scheduler.exchange(vertices, set(vertices), now_ns, 0)


def run_turn(scheduler: Scheduler) -> Vertex:
    """Takes a turn and gives the operator back."""
    vertex = taken(scheduler)
    take_turn(vertex, LIMIT)
    finish(scheduler, vertex)
    return vertex


def test_long_turns_are_given_to_several_workers_at_once() -> None:
    scheduler = scheduled(two_sources())  # 600 µs a turn
    first, second = taken(scheduler), taken(scheduler)
    assert first is not second
    assert scheduler.desk.head.held == 2


def test_short_turns_are_left_to_one_worker() -> None:
    scheduler = scheduled(two_sources(), least_cost_ns=1.0)  # less than a microsecond a turn
    first = taken(scheduler)
    assert scheduler.next_turns() == []  # for a second worker it is not worth it
    take_turn(first, LIMIT)
    finish(scheduler, first)
    assert taken(scheduler) is not first


def test_short_turns_are_given_out_several_at_once_and_come_back_together() -> None:
    vertices = fan_out(20)
    scheduler = scheduled(vertices, "min_latency", least_cost_ns=1.0)
    assert [vertex.operator.node.kind for vertex, _ in scheduler.next_turns()] == ["source"]
    take_turn(vertices[0], LIMIT)
    finish(scheduler, vertices[0])
    turns = scheduler.next_turns()
    kinds = [vertex.operator.node.kind for vertex, _ in turns]
    assert (kinds.count("filter"), kinds.count("sink"), len(set(turns))) == (20, 20, 40)
    assert scheduler.next_turns() == []  # one worker has them all, each filter with its sink
    for turn in turns:
        take_turn(*turn)
    finish(scheduler, *[vertex for vertex, _ in turns])
    assert scheduler.desk.head.held == 0


def given_out(scheduler: Scheduler) -> list[str]:
    return [vertex.operator.node.kind for vertex, _ in scheduler.next_turns()]


def test_an_operator_is_given_out_with_all_behind_it_if_the_policy_puts_them_first() -> None:
    assert given_out(scheduled(fan_out(2), "min_latency")) == ["source", "filter", "filter", "sink", "sink"]
    assert given_out(scheduled(fan_out(2), "round_robin")) == ["source"]
    assert given_out(scheduled(fan_out(20), "min_latency")) == ["source"]  # too many to keep from others


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
    assert scheduler.desk.rows[reader.index].pending == reader.waiting() > 0


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
    turns = [turn for _ in vertices for turn in scheduler.next_turns(1)]
    scheduler.desk.begin_epoch(NOW_NS)
    turns += [turn for _ in vertices for turn in scheduler.next_turns(1)]
    assert len(turns) == 2


def test_after_a_stop_there_are_no_turns() -> None:
    scheduler = scheduled(two_sources())
    scheduler.stop()
    assert scheduler.next_turns() == []
    assert scheduler.stopped
    assert scheduler.sleep(Seat()) == []  # returns at once


def test_who_is_called_after_its_turn_in_a_pass_gets_another() -> None:
    vertices = fan_out(1)
    scheduler = scheduled(vertices, "min_latency")
    turns = scheduler.next_turns()
    assert [vertex for vertex, _ in turns] == vertices
    reader = vertices[1]
    for turn in turns:
        take_turn(*turn)
    scheduler._note_called(reader)
    scheduler.exchange([], set(), NOW_NS)  # another worker comes by; the reader is still held
    reader.outbox.append(Watermark(7))  # what it was called for
    following = scheduler.exchange(vertices, set(), NOW_NS)
    assert reader in [vertex for vertex, _ in following]


def test_of_many_readers_each_has_what_was_sent_and_not_yet_taken() -> None:
    vertices = fan_out(20)
    scheduler = scheduled(vertices, "min_latency")
    rows = scheduler.desk.rows
    for taken_before in (0, 300):
        assert taken(scheduler) is vertices[0]
        for reader in vertices[0].readers[:3]:
            take_turn(reader, taken_before)
            rows[reader.index].pending = reader.waiting()
        take_turn(vertices[0], 300)
        assert vertices[0].source is not None
        vertices[0].source.has_more = True
        for reader in vertices[0].readers:
            scheduler.desk.dispatcher.hold(reader.index)
        finish(scheduler, vertices[0])
        assert [rows[r.index].pending for r in vertices[0].readers] == [
            r.waiting() for r in vertices[0].readers
        ]


@pytest.mark.parametrize("readers", [1, 3, 20])  # few are looked at one by one
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
    finish(scheduler, first)
    assert taken(scheduler) is first.readers[0]  # 300 events and a mark; a source counts as 300 at the most


def test_a_turn_without_output_wakes_no_reader() -> None:
    app = ps.App("a")
    source = ps.sources.Columns({"ts": list(range(EVENTS)), "x": list(range(EVENTS))}, SCHEMA)
    stream = app.source("numbers", source, event_time="ts")
    app.sink("out", stream.window(ps.tumbling("1h")).agg(n=ps.count()), ps.sinks.Discard())
    source_vertex, window, sink = built(app)
    scheduler = scheduled([source_vertex, window, sink], "min_latency")
    take_turn(*scheduler.next_turns(1)[0])  # 600 events and a watermark
    assert source_vertex.source is not None
    source_vertex.source.has_more = True
    finish(scheduler, source_vertex)
    assert taken(scheduler) is window
    window.edges[0].marks.clear()  # as if no mark had come: the window keeps its events
    take_turn(window, LIMIT)
    finish(scheduler, window)
    assert taken(scheduler) is source_vertex
    assert scheduler.next_turns() == []


def test_a_turn_takes_what_policy_and_consumption_allow() -> None:
    assert scheduled(two_sources()).next_turns(1)[0][1] == LIMIT
    assert scheduled(two_sources(), consumption=AtMost(7)).next_turns(1)[0][1] == 7


def test_where_turns_take_a_part_of_what_there_is_nobody_goes_with_the_one_before() -> None:
    scheduler = scheduled(fan_out(1), "min_latency", consumption=AtMost(7))
    assert [limit for _, limit in scheduler.next_turns()] == [7]


def test_who_is_freed_before_a_worker_sleeps_is_taken_at_once() -> None:
    vertices = two_sources()
    scheduler = scheduled(vertices)
    first, other = taken(scheduler), taken(scheduler)
    first.blocked = True
    finish(scheduler, first)
    assert scheduler.next_turns() == []
    first._unblock()  # nobody sleeps yet who could be woken
    assert [vertex for vertex, _ in scheduler.sleep(Seat())] == [first]
    assert scheduler.desk.rows[other.index].running


def test_a_blocked_operator_comes_back_when_its_memory_is_freed() -> None:
    vertices = two_sources()
    scheduler = scheduled(vertices)
    first = taken(scheduler)
    first.blocked = True
    finish(scheduler, first)
    other = taken(scheduler)
    assert other is not first
    assert scheduler.next_turns() == []
    first._unblock()
    assert taken(scheduler) is first


def test_below_its_thresholds_an_operator_of_the_state_policy_waits_for_an_epoch() -> None:
    vertices = fan_out(1)
    scheduler = scheduled(vertices, "state")
    source = taken(scheduler)  # never ran: idle for long enough
    take_turn(source, 10)
    now_ns = 10**15
    for vertex in vertices[1:]:
        scheduler.desk.rows[vertex.index].last_turn_ns = now_ns  # the readers have just had a turn
    assert source.source is not None
    source.source.has_more = True
    finish(scheduler, source, now_ns=now_ns)
    assert taken(scheduler) is source  # what it could still read fills a turn
    assert scheduler.next_turns() == []  # 10 events are below the event threshold


def test_the_last_operator_that_finishes_ends_the_run() -> None:
    vertices = fan_out(2)
    scheduler = scheduled(vertices, "congestion")
    while not scheduler.stopped:
        turns = scheduler.next_turns(1)
        if not turns:
            scheduler.desk.begin_epoch(NOW_NS)
            continue
        take_turn(*turns[0])
        finish(scheduler, turns[0][0])
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
    row, source_operator = scheduler.desk.rows[0], vertices[0].source
    assert source_operator is not None
    assert not scheduler.desk.asks  # it knows when its next event is due
    due_ns = source_operator.next_due_ns()  # asking for its events has begun the pace: one a microsecond
    assert row.due_ns == due_ns
    (turn,) = scheduler.exchange([], set(), row.look_ns + 5_000, 1)
    assert row.pending >= 1
    source_operator.has_more = False
    scheduler.exchange([turn[0]], set(), row.look_ns + 6_000, 0)
    assert row.look_ns >= source_operator.next_due_ns()


def test_a_source_that_cannot_tell_when_it_has_more_is_asked_at_every_epoch() -> None:
    vertices = two_sources()
    scheduler = scheduled(vertices)
    assert scheduler.desk.asks
    source = taken(scheduler)
    assert source.source is not None
    source.source.has_more = False
    finish(scheduler, source)
    assert taken(scheduler) is not source
    scheduler.desk.begin_epoch(NOW_NS)
    assert taken(scheduler) is source


def test_sources_that_were_told_something_are_asked_again() -> None:
    app = ps.App("a")
    source = ps.sources.Columns({"ts": [0, 1], "x": [0, 1]}, SCHEMA, rate=0.001)
    app.sink("out", app.source("numbers", source, event_time="ts"), ps.sinks.Discard())
    vertices = built(app)
    scheduler = scheduled(vertices, "min_latency")
    while turns := scheduler.next_turns():
        for turn in turns:
            take_turn(*turn)
        finish(scheduler, *[vertex for vertex, _ in turns])
    assert vertices[0].source is not None
    vertices[0].source.stop()
    assert scheduler.next_turns() == []  # its next event is due in a quarter of an hour
    scheduler.look_at_sources()
    assert taken(scheduler) is vertices[0]


def test_the_topology_of_a_run_has_readers_behind_their_writers() -> None:
    topology = topology_of(fan_out(2))
    assert (
        topology.kinds == ("source", "filter", "sink", "filter", "sink") or topology.kinds.count("sink") == 2
    )
    assert len(topology.children[0]) == 2
    assert len(topology.sinks[0]) == 2
