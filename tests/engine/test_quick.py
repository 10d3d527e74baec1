"""The compiled exchange does what the scheduler does step by step, and leaves to it what is not usual."""

from __future__ import annotations

import numpy as np
import pytest

import penstock as ps
from penstock import col
from penstock.engine.board import (
    BEAT_NS,
    EPOCH_NS,
    IDLE_NS,
    LAST_TURN_NS,
    LAYOUT,
    LOOK_NS,
    NEVER_NS,
    PACED,
    PATIENCE_NS,
    PUT_OFF,
    SLEEPING,
    SPAN_NS,
    THRESHOLD,
    Board,
)
from penstock.engine.board import LIMIT as LIMIT_ROW
from penstock.engine.quick_steps import exchange, next_read_ns
from penstock.engine.scheduler import Scheduler
from penstock.engine.turn import take_turn
from penstock.engine.vertex import Vertex
from tests.engine.test_scheduler import EVENTS, LIMIT, SCHEMA, built, scheduled

LATER = 10**15  # long after the plan, which is held back


def chains(count: int) -> list[Vertex]:
    """So many paced sources, each with a filter and a sink behind it."""
    app = ps.App("a")
    columns = {"ts": list(range(EVENTS)), "x": list(range(EVENTS))}
    for number in range(count):
        source = ps.sources.Columns(columns, SCHEMA, rate=1_000_000.0)
        stream = app.source(f"s{number}", source, event_time="ts").filter(col("x") > number)
        app.sink(f"out{number}", stream, ps.sinks.Discard())
    return built(app)


def steady(count: int, policy: str = "min_latency", workers: int = 1) -> Scheduler:
    """As it stands when every source has been asked once and reads an event a microsecond."""
    vertices = chains(count)
    scheduler = scheduled(vertices, policy, workers=workers)
    board = scheduler.figures.board
    scheduler.figures.set_rates(
        np.array([0.001 if vertex.source is not None else 0.0 for vertex in vertices])
    )
    for vertex in vertices:
        if vertex.source is not None:
            board.flags[PACED, vertex.index] = 1
            board.integers[LOOK_NS, vertex.index] = LATER
    board.numbers[2] = LATER  # the next look
    scheduler._arrivals.patience_ns = 10_000_000
    scheduler._planning.due_ns = 2 * LATER
    return scheduler


def known_as_short(scheduler: Scheduler) -> None:
    """Workers have had every operator for a tenth of a millisecond."""
    scheduler.figures.board.integers[SPAN_NS] = 100_000


def only_quick(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(vertices: list[Vertex], *_: object) -> None:
        assert not vertices, "left to the scheduler"

    monkeypatch.setattr(scheduler, "_take_back", refuse)


def kinds(turns: list[tuple[Vertex, int]]) -> list[str]:
    return [vertex.operator.node.kind for vertex, _ in turns]


def test_a_pass_goes_round_without_the_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = steady(1)
    only_quick(scheduler, monkeypatch)
    now_ns = LATER
    turns = scheduler.exchange([], set(), now_ns)
    assert kinds(turns) == ["source", "filter", "sink"]
    for _ in range(3):
        vertices = [vertex for vertex, _ in turns]
        assert scheduler.exchange(vertices, set(), now_ns) == []  # it waits for its patience
        assert not any(scheduler.is_held(vertex) for vertex in vertices)
        assert scheduler.exchange([], set(), now_ns + 9_999_999) == []
        now_ns += 10_000_000
        turns = scheduler.exchange([], set(), now_ns)
        assert kinds(turns) == ["source", "filter", "sink"]
    assert scheduler.figures.board.integers[LAST_TURN_NS].tolist() == [now_ns - 10_000_000] * 3


def test_a_source_that_was_not_read_empty_is_next_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = steady(1)
    only_quick(scheduler, monkeypatch)
    turns = scheduler.exchange([], set(), LATER)
    source = turns[0][0].source
    assert source is not None
    source.has_more = True
    assert kinds(scheduler.exchange([vertex for vertex, _ in turns], set(), LATER)) == kinds(turns)


def test_a_source_that_has_finished_is_never_looked_at_again() -> None:
    scheduler = steady(2)
    known_as_short(scheduler)
    turns = scheduler.exchange([], set(), LATER)
    first = turns[0][0]
    assert kinds(turns) == ["source", "filter", "sink"] * 2
    assert scheduler.exchange([vertex for vertex, _ in turns[:3]], set(), LATER) == []
    board = scheduler.figures.board
    assert board.integers[LOOK_NS, first.index] < NEVER_NS  # by then it should be looked at
    first.finished = True
    scheduler.finish(first, LATER)
    held = [vertex for _ in range(4) for vertex, _ in scheduler.exchange([], set(), LATER + 10**9)]
    assert held == []  # the other one is at work


def test_readers_of_one_that_was_given_out_alone_are_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = steady(1, workers=2)
    only_quick(scheduler, monkeypatch)
    turns = scheduler.exchange([], set(), LATER)
    assert kinds(turns) == ["source"]  # the other worker has nothing else
    source, reader, _ = scheduler._vertices
    take_turn(source, 100)
    assert reader.waiting() > 0
    assert kinds(scheduler.exchange([source], set(), LATER)) == ["filter", "sink"]


def test_a_worker_that_sleeps_is_left_something(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = steady(1, workers=2)
    only_quick(scheduler, monkeypatch)
    scheduler.figures.board.number[SLEEPING] = 1
    ((source, _),) = scheduler.exchange([], set(), LATER)
    take_turn(source, 100)
    assert kinds(scheduler.exchange([source], set(), LATER)) == ["filter"]


def test_a_source_stays_with_its_worker_if_there_are_workers_for_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduler = steady(1, workers=2)
    only_quick(scheduler, monkeypatch)
    ((source, _),) = scheduler.exchange([], set(), LATER)
    assert source.source is not None
    take_turn(source, 100)
    source.source.has_more = True
    assert kinds(scheduler.exchange([source], set(), LATER)) == ["source"]
    rest = scheduler.exchange([], set(), LATER)
    assert kinds(rest) == ["filter", "sink"]  # the other worker is not in need of anything


def test_with_no_worker_to_spare_the_reader_of_a_source_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = steady(2, workers=2)
    only_quick(scheduler, monkeypatch)
    turns = scheduler.exchange([], set(), LATER)
    scheduler.figures.board.number[SLEEPING] = 1
    other = scheduler.exchange([], set(), LATER)
    assert kinds(other) == ["source"]
    source = other[0][0]
    assert source.source is not None
    assert source not in [vertex for vertex, _ in turns]
    take_turn(source, 100)
    source.source.has_more = True
    assert kinds(scheduler.exchange([vertex for vertex, _ in other], set(), LATER))[0] == "filter"


def test_an_operator_that_has_left_something_is_next_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = steady(1, workers=2)
    only_quick(scheduler, monkeypatch)
    source, reader, _ = scheduler._vertices
    scheduler.exchange([], set(), LATER)
    take_turn(source, 100)
    scheduler.figures.board.number[SLEEPING] = 1
    ((taken, _),) = scheduler.exchange([source], set(), LATER)
    assert taken is reader
    take_turn(reader, 10)
    assert reader.waiting() > 0
    assert kinds(scheduler.exchange([reader], {reader}, LATER)) == ["sink"]  # nearer to the end
    assert kinds(scheduler.exchange([], set(), LATER)) == ["filter"]


def test_short_sources_are_taken_several_at_once_and_come_back_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduler = steady(8, workers=2)
    only_quick(scheduler, monkeypatch)
    known_as_short(scheduler)
    turns = scheduler.exchange([], set(), LATER)
    assert kinds(turns) == ["source", "filter", "sink"] * 6  # the most
    other = scheduler.exchange([], set(), LATER)
    assert kinds(other) == ["source", "filter", "sink"] * 2
    scheduler.exchange([vertex for vertex, _ in turns], set(), LATER)
    assert not any(scheduler.is_held(vertex) for vertex, _ in turns)
    assert all(scheduler.is_held(vertex) for vertex, _ in other)


def test_nothing_waits_behind_a_source_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = steady(3)
    only_quick(scheduler, monkeypatch)
    turns = scheduler.exchange([], set(), LATER)
    assert kinds(turns) == ["source", "filter", "sink"]  # how long it takes is not known
    scheduler.exchange([vertex for vertex, _ in turns], set(), LATER + 6_000_000)
    spans = scheduler.figures.board.integers[SPAN_NS]
    assert spans[turns[0][0].index] == 6_000_000
    spans[:] = 2_000_000
    turns = scheduler.exchange([], set(), LATER + 7_000_000)
    assert kinds(turns).count("source") <= 2  # three would take 6 ms


def test_sources_that_are_nearly_due_are_read_with_one_that_is(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = steady(2)
    only_quick(scheduler, monkeypatch)
    known_as_short(scheduler)
    turns = scheduler.exchange([], set(), LATER)
    one, other = [vertex for vertex, _ in turns[:3]], [vertex for vertex, _ in turns[3:]]
    scheduler.exchange(one, set(), LATER)
    scheduler.exchange(other, set(), LATER + 2_000_000)
    assert scheduler.exchange([], set(), LATER + 9_999_999) == []  # patience is 10 ms, slack a quarter of it
    assert len(scheduler.exchange([], set(), LATER + 10_000_000)) == 6


def test_beats_worked_by_hand() -> None:
    board = Board(1)
    board.number[EPOCH_NS], board.number[PATIENCE_NS] = 1_000, 8_000

    def read(given_ns: int, now_ns: int) -> int:
        return int(next_read_ns(board.numbers, given_ns, now_ns))

    assert read(100_000, 101_000) == 109_000  # the first beat
    assert read(102_000, 103_000) == 109_000  # the same: 7 µs later
    assert read(105_001, 106_000) == 117_000  # less than half its patience before the beat: the next one
    assert read(105_001, 110_000) == 117_000  # the same, after the beat
    assert read(104_000, 110_000) == 110_000  # the beat at 109 was its own and is over
    assert board.number[BEAT_NS] == 117_000
    assert read(500_000, 500_000) == 508_000  # nothing has come for long: beats begin anew
    board.number[PATIENCE_NS] = 2_000
    assert read(500_500, 501_000) == 503_000  # less patience than when the beat was set
    board.number[PATIENCE_NS] = 1_000
    assert read(500_000, 500_000) == 501_000  # no patience: an epoch


def test_sources_that_come_back_one_by_one_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = steady(3)
    only_quick(scheduler, monkeypatch)
    known_as_short(scheduler)
    turns = [vertex for vertex, _ in scheduler.exchange([], set(), LATER)]
    for number in range(3):  # 1, 4 and 7 ms later; patience is 10 ms
        now_ns = LATER + (1 + 3 * number) * 1_000_000
        assert scheduler.exchange(turns[3 * number : 3 * number + 3], set(), now_ns) == []
    assert scheduler.exchange([], set(), LATER + 10_999_999) == []
    assert kinds(scheduler.exchange([], set(), LATER + 11_000_000)) == ["source", "filter", "sink"] * 3


def test_work_that_is_not_worth_a_turn_yet_is_noted_until_the_next_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduler = steady(1, workers=2)
    only_quick(scheduler, monkeypatch)
    board = scheduler.figures.board
    board.number[THRESHOLD] = 1_000
    board.integers[LIMIT_ROW] = 1_000
    board.floats[IDLE_NS] = 2.0 * LATER
    ((source, _),) = scheduler.exchange([], set(), LATER)
    assert board.number[PUT_OFF] == 0
    assert scheduler._until_due_ns(LATER) > 0
    take_turn(source, 100)
    assert scheduler.exchange([source], set(), LATER) == []
    assert board.number[PUT_OFF] == 1
    assert scheduler._until_due_ns(LATER) == scheduler._epoch_ns  # by then it may be worth it
    board.floats[IDLE_NS] = 1_000_000.0
    board.integers[LAST_TURN_NS] = LATER
    assert scheduler.exchange([], set(), LATER + 1_000_000) == []
    assert kinds(scheduler.exchange([], set(), LATER + 1_000_001)) == ["filter", "sink"]
    assert board.number[PUT_OFF] == 0


def test_what_is_not_usual_is_left_to_the_scheduler() -> None:
    for policy in ("round_robin", "congestion", "first_come", "random"):
        assert scheduled(chains(1), policy)._quick.exchange([], set(), 1) is None
    scheduler = steady(1)
    (source, limit), *_ = scheduler.exchange([], set(), LATER)
    assert limit == LIMIT
    scheduler.figures.set_rates(
        np.zeros(3)
    )  # it may be long until the next event: the source has to be asked
    assert scheduler._quick.exchange([source], set(), LATER) is None
    assert scheduler.is_held(source)


def test_a_source_goes_on_without_a_decision_while_its_readers_are_at_work() -> None:
    scheduler = steady(1, workers=2)
    ((source, _),) = scheduler.exchange([], set(), LATER)
    assert not scheduler.stays(source)  # its reader has to be let in
    take_turn(source, 100)
    assert source.source is not None
    source.source.has_more = True
    scheduler.exchange([source], set(), LATER)
    assert kinds(scheduler.exchange([], set(), LATER)) == ["filter", "sink"]
    assert scheduler.stays(source)
    source.blocked = True
    assert not scheduler.stays(source)
    source.blocked = False
    scheduler.stop()
    assert not scheduler.stays(source)


def test_a_source_whose_worker_has_its_readers_too_does_not_go_on_before_them() -> None:
    scheduler = steady(1, workers=2)
    ((source, _),) = scheduler.exchange([], set(), LATER)
    for reader in scheduler._passes._behind[source.index]:
        scheduler.figures.board.running[reader.index] = 1
    assert scheduler.stays(source)
    scheduler._passes.lead(source)
    assert not scheduler.stays(source)


def test_where_there_are_as_many_sources_as_workers_every_turn_of_one_is_decided() -> None:
    scheduler = steady(2, workers=2)
    source = scheduler.exchange([], set(), LATER)[0][0]
    for reader in source.readers:
        scheduler.figures.board.running[reader.index] = 1
    assert not scheduler.stays(source)


def test_compiled_code_knows_the_layout_of_the_board_it_was_compiled_for() -> None:
    assert exchange(0, -1, 0, 0) == LAYOUT
