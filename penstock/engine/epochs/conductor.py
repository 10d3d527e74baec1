"""The conductor: numbers the epochs, and says when one begins, when it counts, and when the run is over.

A pure step machine: events in, at most one instruction out. It knows no clock, thread, file or Spark. On a
node the thread that commits drives it, with one seat; with many seats whoever has them all.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Begin:
    """Tell all sources: the epoch ends at their next turn. After the ``last`` one they read nothing more."""

    epoch: int
    last: bool = False


@dataclass(frozen=True)
class Commit:
    """All have answered: make the epoch count, then say so. ``complete``: the input has ended, and everything
    is closed."""

    epoch: int
    complete: bool = False


@dataclass(frozen=True)
class Over:
    """Nothing will come any more."""


Instruction = Begin | Commit | Over | None


class Roll:
    """Who has answered which epoch. Whoever has ended has answered all that follow."""

    def __init__(self, members: Iterable[Hashable], before: int) -> None:
        self._told = dict.fromkeys(members, before)
        self._ended: set[Hashable] = set()

    def answered(self, member: Hashable, epoch: int) -> None:
        """A member has answered an epoch; each answers them in order, and none twice."""
        before = self._told[member]
        if epoch != before + 1 or member in self._ended:
            raise RuntimeError(f"{member!r} has answered epoch {epoch} after epoch {before}")
        self._told[member] = epoch

    def ended(self, member: Hashable) -> int:
        """A member says nothing more; the epoch to which its last words belong."""
        if member in self._ended:
            raise RuntimeError(f"{member!r} has ended twice")
        self._ended.add(member)
        return self._told[member] + 1

    def is_whole(self, epoch: int) -> bool:
        """Whether all have answered an epoch, or ended before it."""
        return all(told >= epoch for member, told in self._told.items() if member not in self._ended)

    @property
    def all_ended(self) -> bool:
        """Whether nobody is left."""
        return len(self._ended) == len(self._told)


class Conductor:
    """Invariants: at most one epoch is on its way; epochs count in the order of their numbers, without a gap;
    what members say last counts with the last version, or is never made."""

    def __init__(self, seats: Iterable[Hashable], first: int) -> None:
        self._roll = Roll(seats, first - 1)
        self._next = first
        self._on_its_way: int | None = None
        self._committing = False
        self._stopping = False
        self._last_begun = False
        self._complete = True  # all that have ended so far had read all
        self._final = False  # the version of a complete run is being made, or is there
        self.is_over = False

    @property
    def may_begin(self) -> bool:
        """Whether an epoch can begin now."""
        busy = self._on_its_way is not None or self._committing or self._last_begun
        return not (busy or self.is_over or self._roll.all_ended)

    def begin(self) -> Instruction:
        """The time has come for an epoch, or somebody holds too much."""
        if not self.may_begin:
            return None
        epoch = self._on_its_way = self._next
        self._next += 1
        self._last_begun = self._stopping
        return Begin(epoch, self._stopping)

    def stop(self) -> Instruction:
        """Somebody wants the run to end: a last epoch begins as soon as none is on its way."""
        self._stopping = True
        return self.begin()

    def answered(self, seat: Hashable, epoch: int) -> Instruction:
        """A seat has all that it must say of an epoch."""
        self._roll.answered(seat, epoch)
        return self._look()

    def ended(self, seat: Hashable, *, complete: bool) -> Instruction:
        """A seat has nothing to do any more; ``complete``: its input was whole."""
        self._roll.ended(seat)
        self._complete = self._complete and complete
        return self._look()

    def committed(self, epoch: int) -> Instruction:
        """The version is there."""
        self._committing = False
        if self._final:
            return self._end()
        if epoch != self._on_its_way:
            raise RuntimeError(f"epoch {epoch} was committed, on its way is {self._on_its_way}")
        self._on_its_way = None
        if self._roll.all_ended:
            return self._look()
        return self.begin() if self._stopping else None

    def _look(self) -> Instruction:
        if self._committing or self.is_over:
            return None
        epoch = self._on_its_way
        if epoch is not None:
            if not self._roll.is_whole(epoch):
                return None
            self._committing = True
            return Commit(epoch)
        if not self._roll.all_ended:
            return None
        if not self._complete:
            return self._end()
        self._final = self._committing = True
        return Commit(self._next, complete=True)

    def _end(self) -> Instruction:
        self.is_over = True
        return Over()
