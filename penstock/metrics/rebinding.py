"""What rebinding is counted by: how often, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class RebindCounters:
    """Counters of one thread. Nobody else writes them."""

    __slots__ = ("forwarded", "longest_ns", "overtaken", "parked", "rebinds", "stored_ns", "waited_ns")

    def __init__(self) -> None:
        self.rebinds = 0
        self.overtaken = 0
        self.stored_ns = 0
        self.longest_ns = 0
        self.forwarded = 0
        self.parked = 0
        self.waited_ns = 0

    def record_rebind(self, took_ns: int) -> None:
        """Counts one operator's new owner."""
        self.rebinds += 1
        self.stored_ns += took_ns
        self.longest_ns = max(self.longest_ns, took_ns)


@dataclass(frozen=True)
class RebindMetrics:
    """All rebinding of a run so far."""

    rebinds: int = 0  # operators that were given a new owner
    overtaken: int = 0  # rebinds dropped because a later one of the same operator was already stored
    stored_ns: int = 0  # from request to stored, summed over the rebinds
    longest_ns: int = 0  # the longest of those
    forwarded: int = 0  # tasks and rebinds found in the wrong queue, or moved at a barrier
    parked: int = 0  # tasks that came too early
    waited_ns: int = 0  # threads' time at barriers, summed

    @staticmethod
    def of(counters: Sequence[RebindCounters]) -> RebindMetrics:
        """All threads together."""
        return RebindMetrics(
            rebinds=sum(one.rebinds for one in counters),
            overtaken=sum(one.overtaken for one in counters),
            stored_ns=sum(one.stored_ns for one in counters),
            longest_ns=max((one.longest_ns for one in counters), default=0),
            forwarded=sum(one.forwarded for one in counters),
            parked=sum(one.parked for one in counters),
            waited_ns=sum(one.waited_ns for one in counters),
        )

    @property
    def mean_stored_ns(self) -> float:
        """From request to stored, on average."""
        return self.stored_ns / self.rebinds if self.rebinds else 0.0

    def since(self, earlier: RebindMetrics) -> RebindMetrics:
        """What came after ``earlier``; only ``longest_ns`` stays that of the whole run, as an upper bound.

        >>> RebindMetrics(rebinds=5, forwarded=9).since(RebindMetrics(rebinds=2, forwarded=3)).forwarded
        6
        """
        return RebindMetrics(
            rebinds=self.rebinds - earlier.rebinds,
            overtaken=self.overtaken - earlier.overtaken,
            stored_ns=self.stored_ns - earlier.stored_ns,
            longest_ns=self.longest_ns,
            forwarded=self.forwarded - earlier.forwarded,
            parked=self.parked - earlier.parked,
            waited_ns=self.waited_ns - earlier.waited_ns,
        )
