"""The conductor in all orders of what can happen, on small worlds."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.epochs.conductor import Begin, Commit, Conductor, Instruction, Over, Roll


def test_an_epoch_begins_counts_and_the_next_one_follows() -> None:
    conductor = Conductor(["a", "b"], first=7)
    assert conductor.begin() == Begin(7)
    assert conductor.begin() is None  # one is on its way
    assert conductor.answered("a", 7) is None
    assert conductor.answered("b", 7) == Commit(7)
    assert conductor.begin() is None  # it is not there yet
    assert conductor.committed(7) is None
    assert conductor.begin() == Begin(8)


def test_who_has_ended_is_not_waited_for() -> None:
    conductor = Conductor(["a", "b"], first=0)
    assert conductor.ended("a", complete=True) is None
    assert conductor.begin() == Begin(0)
    assert conductor.answered("b", 0) == Commit(0)


def test_a_complete_run_ends_with_a_version_of_its_own() -> None:
    conductor = Conductor(["a"], first=3)
    assert conductor.ended("a", complete=True) == Commit(3, complete=True)
    assert conductor.begin() is None
    assert conductor.committed(3) == Over()


def test_what_comes_behind_an_epoch_on_its_way_counts_after_it() -> None:
    conductor = Conductor(["a"], first=0)
    assert conductor.begin() == Begin(0)
    assert conductor.answered("a", 0) == Commit(0)
    assert conductor.ended("a", complete=True) is None
    assert conductor.committed(0) == Commit(1, complete=True)
    assert conductor.committed(1) == Over()


def test_a_run_that_is_stopped_ends_with_a_last_epoch() -> None:
    conductor = Conductor(["a"], first=0)
    assert conductor.begin() == Begin(0)
    assert conductor.stop() is None  # one is on its way
    assert conductor.answered("a", 0) == Commit(0)
    assert conductor.committed(0) == Begin(1, last=True)
    assert conductor.answered("a", 1) == Commit(1)
    assert conductor.ended("a", complete=False) is None
    assert conductor.committed(1) == Over()


def test_nobody_answers_twice_or_out_of_order() -> None:
    roll = Roll("ab", 4)
    roll.answered("a", 5)
    with pytest.raises(RuntimeError, match="'a' has answered epoch 5 after epoch 5"):
        roll.answered("a", 5)
    with pytest.raises(RuntimeError, match="'b' has answered epoch 6 after epoch 4"):
        roll.answered("b", 6)
    assert roll.ended("a") == 6
    with pytest.raises(RuntimeError, match="'a' has ended twice"):
        roll.ended("a")


@dataclass
class World:
    """Seats that hear of epochs late, in their own time, and a clock that asks for one whenever it wants."""

    seats: int
    events: int  # each seat ends by itself after so many answers, at the latest
    conductor: Conductor = field(init=False)
    heard: dict[Hashable, list[Begin]] = field(default_factory=dict)
    answered: dict[Hashable, int] = field(default_factory=dict)
    ended: dict[Hashable, bool] = field(default_factory=dict)
    committing: list[Commit] = field(default_factory=list)
    committed: list[Commit] = field(default_factory=list)
    stopped: bool = False
    over: bool = False

    def __post_init__(self) -> None:
        self.conductor = Conductor(range(self.seats), 0)
        self.heard = {seat: [] for seat in range(self.seats)}
        self.answered = dict.fromkeys(range(self.seats), -1)

    def moves(self) -> list[tuple[str, int]]:
        """All that can happen next."""
        found: list[tuple[str, int]] = [("tick", 0)]
        if not self.stopped:
            found.append(("stop", 0))
        for seat in range(self.seats):
            if seat in self.ended:
                continue
            if self.heard[seat]:
                found.append(("answer", seat))
            found.append(("end", seat))
        if self.committing:
            found.append(("commit", 0))
        return found

    def move(self, what: str, seat: int) -> None:
        match what:
            case "tick":
                self.follow(self.conductor.begin())
            case "stop":
                self.stopped = True
                self.follow(self.conductor.stop())
            case "answer":
                begin = self.heard[seat].pop(0)
                self.answered[seat] = begin.epoch
                self.follow(self.conductor.answered(seat, begin.epoch))
                if begin.last:
                    self.end(seat, complete=False)
            case "end":
                self.end(seat, complete=True)
            case "commit":
                commit = self.committing.pop(0)
                self.committed.append(commit)
                self.follow(self.conductor.committed(commit.epoch))

    def end(self, seat: int, *, complete: bool) -> None:
        self.ended[seat] = complete
        self.follow(self.conductor.ended(seat, complete=complete))

    def follow(self, instruction: Instruction) -> None:
        assert not (self.over and instruction is not None), "something follows the end"
        match instruction:
            case Begin():
                for seat in range(self.seats):
                    self.heard[seat].append(instruction)
            case Commit(epoch, complete):
                assert not self.committing, "two versions at a time"
                for seat in range(self.seats):
                    assert seat in self.ended or self.answered[seat] >= epoch, f"epoch {epoch} is not whole"
                assert not complete or all(self.ended.get(seat) for seat in range(self.seats))
                self.committing.append(instruction)
            case Over():
                self.over = True

    def check(self) -> None:
        numbers = [commit.epoch for commit in self.committed]
        assert numbers == list(range(len(numbers))), "versions follow one another"
        assert not any(commit.complete for commit in self.committed[:-1])

    def check_end(self) -> None:
        """Nothing can happen any more, so the run is over, and counts as it was."""
        assert self.over
        whole = all(self.ended.values())
        assert bool(self.committed and self.committed[-1].complete) == whole
        # Who was told of an epoch last has answered nothing that does not count.
        last = self.committed[-1].epoch if self.committed else -1
        assert all(answered <= last for answered in self.answered.values())


@settings(max_examples=400)
@given(st.integers(1, 3), st.data())
def test_whatever_the_order_versions_follow_and_the_run_ends(seats: int, data: st.DataObject) -> None:
    world = World(seats, 3)
    for _ in range(data.draw(st.integers(0, 40))):
        if world.over:
            break
        world.move(*data.draw(st.sampled_from(world.moves())))
        world.check()
    world_ends(world)


def world_ends(world: World) -> None:
    """Lets everybody do what is left to do; no clock may be needed for it."""
    for _ in range(200):
        if world.over:
            break
        left = [move for move in world.moves() if move[0] in ("answer", "commit")]
        if not left:
            left = [move for move in world.moves() if move[0] == "end"]
        assert left, "nobody can do anything, and the run is not over"
        world.move(*left[0])
        world.check()
    world.check_end()


def test_all_orders_of_two_seats_up_to_some_length() -> None:
    def walk(path: tuple[tuple[str, int], ...], depth: int) -> None:
        world = World(2, 3)
        for move in path:
            world.move(*move)
            world.check()
        if world.over:
            world.check_end()
            return
        moves = world.moves()
        if depth:
            for move in moves:
                walk((*path, move), depth - 1)
        else:
            world_ends(world)

    walk((), 6)
