"""A bounded number of batches at a time: groups wait for a slot here, in the order that a schedule gives."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from penstock.query.errors import PenstockError
from penstock.spark.groups.schedule import GroupSchedule


class Stopping(Exception):  # noqa: N818 - not an error
    """Raised into Spark when a batch begins after the run was told to stop; the batch comes again later."""


class SlotStay:
    """One batch's stay in a slot; it says how many rows the batch had."""

    def __init__(self) -> None:
        self.rows = 0


@dataclass(frozen=True)
class GroupShare:
    """What a run must know if it is one of several groups."""

    number: int
    groups: int
    slots: BatchSlots

    def most_tasks(self, cores: int) -> int:
        """How many tasks a group may grow to by itself: one core is left to the others, or a heavy group
        would hold all of them for as long as its tasks take."""
        return max(1, cores - 1)


class BatchSlots:
    """``slots`` batches run at once, of whichever groups; the others wait without holding a core."""

    def __init__(
        self, schedule: GroupSchedule, slots: int, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        if slots < 1:
            raise PenstockError(f"batches at a time must be at least 1: got {slots}")
        self._schedule, self._free, self._clock = schedule, slots, clock
        self._changed = threading.Condition()
        self._waiting: set[int] = set()
        self._chosen: set[int] = set()
        self._closed = False
        self.most_running = 0
        self._running = 0

    def close(self) -> None:
        """Nobody gets a slot any more: those who wait are sent away with ``Stopping``."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @contextmanager
    def turn(self, group: int) -> Iterator[SlotStay]:
        """Waits for a slot and holds it as long as the batch runs."""
        planned_ns = self._wait(group)
        began_ns, turn = self._clock(), SlotStay()
        try:
            yield turn
        finally:
            with self._changed:
                self._schedule.ended(group, planned_ns, began_ns, self._clock(), turn.rows)
                self._running -= 1
                self._free += 1
                self._hand_out()

    def _wait(self, group: int) -> int:
        with self._changed:
            planned_ns = self._clock()
            self._schedule.arrived(group, planned_ns)
            self._waiting.add(group)
            self._hand_out()
            self._changed.wait_for(lambda: group in self._chosen or self._closed)
            if group not in self._chosen:
                self._waiting.discard(group)
                raise Stopping("the run is being stopped")
            self._chosen.discard(group)
            return planned_ns

    def _hand_out(self) -> None:
        while self._free and self._waiting and not self._closed:
            group = self._schedule.choose(sorted(self._waiting), self._clock())
            self._waiting.discard(group)
            self._chosen.add(group)
            self._free -= 1
            self._running += 1
            self.most_running = max(self.most_running, self._running)
        self._changed.notify_all()
