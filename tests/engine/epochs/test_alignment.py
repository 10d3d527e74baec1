"""A vertex with several edges waits for an epoch mark on all of them: it takes nothing behind the mark, and
is not asked to work meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.engine.turns.turn import take_turn
from penstock.engine.turns.vertex import Vertex
from penstock.memory.blocks import ChunkShape
from penstock.memory.coordinator import MemoryCoordinator
from penstock.memory.edges import Control, Edge, End, Epoch, Outlet, Watermark
from penstock.memory.layout import Columns, Layout
from penstock.memory.strings import StringPool
from penstock.operators.run.base import Build, Operator
from penstock.query.graph import Port
from penstock.query.steps import UnionSpec
from penstock.query.types import DataType, Field
from tests.harness import Harness

LAYOUT = Layout((Field("x", DataType.INT64),))


class Takes(Operator):
    """Notes what it is given; time stands still for it as long as it ``waits``."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        self.taken: list[tuple[int, int]] = []
        self.waits = False

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        self.taken += [(index, int(value)) for value in columns[0][start:stop]]
        self.emit(tuple(column[start:stop].copy() for column in columns), stop - start)
        return stop - start

    @property
    def holds(self) -> bool:
        return self.waits

    def on_control(self, content: Any) -> bool:
        self.waits = True
        return True


class World:
    """One vertex with two edges, and what it says and sends."""

    def __init__(self) -> None:
        self.inputs = [self._outlet(), self._outlet()]
        edges = [(number, outlet.connect()) for number, outlet in enumerate(self.inputs)]
        build = Harness(Takes, UnionSpec(), [LAYOUT, LAYOUT], LAYOUT).operator
        self.operator = Takes(Build(build.node, (LAYOUT, LAYOUT), {Port.MAIN: LAYOUT}, StringPool()))
        self.output = self._outlet()
        self.behind = self.output.connect()
        self.vertex = Vertex(0, self.operator, edges, {Port.MAIN: self.output})
        self.vertex.epochs = self
        self.told: list[object] = []

    def cut(self, epoch: int) -> None:
        assert not self.operator.has_ready_rows
        self.told.append((epoch, len(self.operator.taken), self.vertex.watermark))

    def end(self, complete: bool) -> None:
        self.told.append("end")

    def send(self, index: int, *values: int) -> None:
        outlet = self.inputs[index]
        for value in values:
            assert outlet.reserve()
            outlet.columns[0][outlet.position] = value
            outlet.commit(1)

    def turn(self) -> int:
        return take_turn(self.vertex, 1_000)

    @property
    def marks(self) -> list[object]:
        return [mark for _, mark in self.behind.marks]

    def _outlet(self) -> Outlet:
        pool = MemoryCoordinator(background=False).pool(ChunkShape(LAYOUT, 8, 2), limit=2, readers=1)
        return Outlet(LAYOUT, pool)


@pytest.fixture
def world() -> World:
    return World()


def test_what_stands_behind_the_mark_waits_until_it_has_come_everywhere(world: World) -> None:
    world.send(0, 1)
    world.inputs[0].mark(Epoch(4, 10))
    world.send(0, 2)
    world.send(1, 3)
    assert world.turn() == 2
    assert world.vertex.waiting() == 0  # the other edge alone can bring it on
    assert world.told == []
    world.send(1, 4)
    world.inputs[1].mark(Epoch(4, 7))
    assert world.vertex.waiting() == 2
    assert world.turn() == 2
    assert world.operator.taken == [(0, 1), (1, 3), (1, 4), (0, 2)]
    assert world.told == [(4, 3, 7)]
    assert world.marks == [Watermark(7), Epoch(4, 7)]
    assert [position for position, _ in world.behind.marks] == [3, 3]


def test_an_edge_that_has_ended_is_not_waited_for(world: World) -> None:
    world.inputs[0].mark(Epoch(0, 5))
    world.turn()
    assert world.told == []
    world.inputs[1].mark(End(complete=True))
    world.turn()
    assert world.told == [(0, 0, 5)]
    world.inputs[0].mark(End(complete=True))
    world.turn()
    assert world.told == [(0, 0, 5), "end"]
    assert world.vertex.finished


def test_the_mark_waits_for_a_migration_told_before_it(world: World) -> None:
    for outlet in world.inputs:
        outlet.mark(Control("move"))
        outlet.mark(Watermark(8))
        outlet.mark(Epoch(1, 8))
    world.turn()
    assert world.told == []
    assert world.vertex.waiting() == 0
    world.operator.waits = False  # the state has come
    assert world.vertex.waiting() > 0
    world.turn()
    assert world.told == [(1, 0, 8)]


def test_a_migration_that_ends_while_nothing_else_waits_wakes_the_vertex(world: World) -> None:
    for outlet in world.inputs:
        outlet.mark(Control("move"))
        outlet.mark(Epoch(1, 8))
    world.turn()
    assert world.vertex.waiting() == 0
    world.operator.waits = False
    assert world.vertex.waiting() > 0
    world.turn()
    assert world.told == [(1, 0, 8)]


def test_a_full_outlet_does_not_lose_the_mark(world: World) -> None:
    world.send(0, *range(32))
    assert world.turn() == 32
    world.send(1, 100)
    for outlet in world.inputs:
        outlet.mark(Epoch(2, 3))
    world.turn()
    assert world.vertex.blocked
    assert world.told == []
    taken = _drained(world.behind)
    assert not world.vertex.blocked
    world.turn()
    assert world.told == [(2, 33, 3)]
    assert taken + _drained(world.behind) == 33


def _drained(edge: Edge) -> int:
    count = 0
    while (readable := edge.readable()) is not None:
        _, start, stop = readable
        edge.advance(stop - start)
        count += stop - start
    return count
