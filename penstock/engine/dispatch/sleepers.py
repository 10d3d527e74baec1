"""Workers that have nothing to do: each sleeps on a lock of its own, and one of them watches the clock.

Who watches is there when its time comes and takes what is due itself: nobody has to wake it, and no other
thread has to run for that.
"""

from __future__ import annotations

from threading import Lock

from penstock.scheduling.dispatch.board import Head


class Seat:
    """Where one worker sleeps. Invariant: the lock is free only between being woken and noticing it."""

    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock = Lock()
        self.lock.acquire()


class Sleepers:
    """Who sleeps. Everything but ``wait`` is called within the scheduler's lock."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._seats: list[Seat] = []
        self._watching: Seat | None = None
        self._until_ns = 0

    def add(self, seat: Seat, until_ns: int | None) -> bool:
        """The worker is about to sleep; whether it is the one that watches the clock, until then.

        It is if nobody else does, or only until later. None: it may not.
        """
        self._seats.append(seat)
        self._head.sleeping += 1
        if until_ns is not None and (self._watching is None or until_ns < self._until_ns):
            self._watching, self._until_ns = seat, until_ns
        return self._watching is seat

    def remove(self, seat: Seat) -> None:
        """The worker is awake, because it was woken or because its time has come."""
        if seat in self._seats:
            self._seats.remove(seat)
            self._head.sleeping -= 1
        else:
            seat.lock.acquire(blocking=False)  # woken just when its time had come
        if self._watching is seat:
            self._watching = None

    def wake(self, count: int = 1) -> None:
        """Wakes so many, those that went to sleep last first: they have the warmest caches."""
        while count > 0 and self._seats:
            seat = self._seats.pop()
            self._head.sleeping -= 1
            seat.lock.release()
            count -= 1

    def wake_all(self) -> None:
        self.wake(len(self._seats))

    @property
    def unwatched(self) -> bool:
        """Whether somebody sleeps whom only another thread can wake, now or as soon as who watches leaves."""
        return len(self._seats) > (self._watching in self._seats)


def wait(seat: Seat, timeout_ns: int | None) -> None:
    """Sleeps until woken, or for so long."""
    if timeout_ns is None:
        seat.lock.acquire()
    else:
        seat.lock.acquire(timeout=max(0, timeout_ns) / 1e9)
