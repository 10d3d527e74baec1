"""The splitter: cuts a stream into selections and gives each whole to one instance (buffer limits IV)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.cep.selections.assignment import Assignment, assign
from penstock.cep.selections.event_queue import EventQueue
from penstock.cep.selections.selections import Cuts, EventBatch, Ints, Predicates, State
from penstock.query.errors import PenstockError


@dataclass(frozen=True)
class DealtSelections:
    """What became of a batch: the cuts, and whose selections they are."""

    cuts: Cuts
    opened_by: Ints  # instance of each selection that opened
    closed_by: Ints  # instance of each that closed
    closed_starts: Ints  # where those begin


class SelectionSplitter:
    """Not for several threads at once. Instances are numbers; register at least one before the first
    batch."""

    def __init__(
        self,
        predicates: Predicates,
        rule: Assignment = Assignment.ROUND_ROBIN,
        *,
        keeps_queue: bool = True,
        acknowledges_selections: bool = False,
    ) -> None:
        self.predicates = predicates
        self.queue = EventQueue()
        self._rule = rule
        self._keeps_queue = keeps_queue  # False: someone else counts holders
        self._by_selection = acknowledges_selections  # instances tell which selections they have done
        self._registered: list[int] = []
        self._counts = np.zeros(16, np.int64)  # open selections by instance
        self._dealt = 0
        self._stop = 0
        # of selections ``_oldest`` to ``_dealt``: where they begin, who has them
        self._oldest = 0
        self._starts = np.zeros(1024, np.int64)
        self._owners = np.zeros(1024, np.int64)
        self._open = np.zeros(1024, np.bool_)  # or not yet acknowledged

    def register(self, instance: int) -> None:
        """From now on the instance gets selections."""
        if instance in self._registered:
            raise PenstockError(f"instance {instance} is registered already")
        if instance >= len(self._counts):
            self._counts = np.concatenate((self._counts, np.zeros(2 * instance, np.int64)))
        self._registered.append(instance)

    def unregister(self, instance: int) -> None:
        """The instance gets no new selections; those it has stay with it."""
        if instance not in self._registered:
            raise PenstockError(f"instance {instance} is not registered")
        self._registered.remove(instance)

    @property
    def registered(self) -> tuple[int, ...]:
        return tuple(self._registered)

    def open_of(self, instance: int) -> int:
        """How many open selections the instance has."""
        return int(self._counts[instance]) if instance < len(self._counts) else 0

    def split(self, batch: EventBatch) -> DealtSelections:
        """Takes the events that follow those it has taken before."""
        if batch.first != self._stop:
            raise PenstockError(f"events come in order: the splitter is at {self._stop}, got {batch.first}")
        self._stop = batch.stop
        return self._deal(self.predicates.cut(batch), batch.first)

    def finish(self) -> DealtSelections:
        """The stream has ended: everything closes."""
        return self._deal(self.predicates.finish(self._stop), self._stop)

    def done_with(self, numbers: Ints) -> int:
        """These selections have been worked on: what no instance needs any more leaves the queue. Returns the
        position before which nothing is needed."""
        self._open[numbers - self._oldest] = False
        used = self._dealt - self._oldest
        rows = np.flatnonzero(self._open[:used])
        needed = np.full(len(self._counts), self._stop)
        np.minimum.at(needed, self._owners[rows], self._starts[rows])
        for instance in self.queue.holders:
            self.queue.acknowledge(instance, int(needed[instance]))
        self._forget_closed()
        return self.queue.discard()

    def export(self) -> State:
        """Who has which open selection, and how far the stream has come; the predicates' state is theirs.

        Only while every closed selection has been acknowledged.
        """
        rows = np.flatnonzero(self._open[: self._dealt - self._oldest])
        return {
            "at": np.array([self._stop, self._dealt]),
            "registered": np.array(self._registered, np.int64),
            "numbers": self._oldest + rows,
            "starts": self._starts[rows],
            "owners": self._owners[rows],
        }

    def restore(self, state: State) -> None:
        """Takes in what ``export`` gave, before its first batch."""
        numbers, starts, owners = (np.asarray(state[name]) for name in ("numbers", "starts", "owners"))
        self._stop, self._dealt = (int(value) for value in state["at"])
        self._oldest = int(numbers[0]) if len(numbers) else self._dealt
        size = max(1024, self._dealt - self._oldest)
        self._starts, self._owners = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self._open = np.zeros(size, np.bool_)
        rows = numbers - self._oldest
        self._starts[rows], self._owners[rows], self._open[rows] = starts, owners, True
        self._registered = []
        self._counts = np.zeros(max(16, int(owners.max(initial=0)) + 1), np.int64)
        for instance in state["registered"].tolist():
            self.register(instance)
        np.add.at(self._counts, owners, 1)
        # open selections all reach to the end: an instance holds everything from its first one on
        self.queue = EventQueue.of(
            self._stop, {owner: int(starts[owners == owner].min()) for owner in np.unique(owners).tolist()}
        )

    def _deal(self, cuts: Cuts, first: int) -> DealtSelections:
        count = len(cuts.starts)
        if count and not self._registered:
            raise PenstockError("no instance is registered: the splitter has nobody to give selections to")
        was_open = np.flatnonzero(self._counts)
        owners = cuts.starts
        if count:
            owners = assign(self._rule, count, self._registered, self._counts, self._dealt)
        self._remember(cuts, owners)
        rows = cuts.closed - self._oldest
        closed_by, closed_starts = self._owners[rows], self._starts[rows]
        np.subtract.at(self._counts, closed_by, 1)
        if self._keeps_queue:
            self.queue.extend(self._stop)
            self._hold(cuts, owners, closed_by, closed_starts, was_open, first)
        if not self._by_selection:
            self._open[rows] = False
            self._forget_closed()
        return DealtSelections(cuts, owners, closed_by, closed_starts)

    def _hold(
        self, cuts: Cuts, owners: Ints, closed_by: Ints, closed_starts: Ints, was_open: Ints, first: int
    ) -> None:
        """Every instance holds the union of its selections, as far as they have come in this batch."""
        earlier = closed_starts < first  # they were open when the batch began
        new_stops = np.full(len(cuts.starts), self._stop)
        new = cuts.closed >= cuts.first_number
        new_stops[cuts.closed[new] - cuts.first_number] = cuts.stops[new]
        for instance in np.union1d(was_open, owners).tolist():
            mine = owners == instance
            starts, stops = cuts.starts[mine], new_stops[mine]
            if instance in was_open:
                closed_here = earlier & (closed_by == instance)
                ends = cuts.stops[closed_here]
                new_open = np.count_nonzero(mine) - np.count_nonzero(new & (closed_by == instance))
                still = self._counts[instance] > new_open
                end = self._stop if still else int(ends.max(initial=first))
                starts, stops = np.append(first, starts), np.append(end, stops)
            for start, stop in union(starts, stops):
                self.queue.hold(instance, start, stop)

    def _remember(self, cuts: Cuts, owners: Ints) -> None:
        used = self._dealt - self._oldest
        needed = used + len(owners)
        if needed > len(self._starts):
            size = max(needed, 2 * len(self._starts))
            for name in ("_starts", "_owners", "_open"):
                kept = getattr(self, name)
                setattr(self, name, np.concatenate((kept, np.zeros(size - len(kept), kept.dtype))))
        self._starts[used:needed] = cuts.starts
        self._owners[used:needed] = owners
        self._open[used:needed] = True
        self._dealt += len(owners)

    def _forget_closed(self) -> None:
        """Gives up the rows of closed selections in front, once they are most of all rows."""
        used = self._dealt - self._oldest
        is_open = self._open[:used]
        gone = int(np.argmax(is_open)) if is_open.any() else used
        if 2 * gone >= used:
            for kept in (self._starts, self._owners, self._open):
                kept[: used - gone] = kept[gone:used].copy()
            self._oldest += gone


def union(starts: Ints, stops: Ints) -> list[tuple[int, int]]:
    """The union of ranges whose starts rise, as ranges that do not touch."""
    reached = np.maximum.accumulate(stops)
    begins = np.append(True, starts[1:] > reached[:-1])
    firsts = np.flatnonzero(begins)
    lasts = np.append(firsts[1:], len(starts)) - 1
    return list(zip(starts[firsts].tolist(), reached[lasts].tolist(), strict=True))
