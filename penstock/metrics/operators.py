"""What is counted of every operator, and what can be derived from it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, fields, replace

_LARGE_TURN = 1024
#: The fields of ``OperatorMetrics`` that only grow.
_COUNTS = (
    "processed",
    "emitted",
    "turns",
    "busy_ns",
    "backpressured",
    "late",
    "failed",
    "dropped_runs",
    "schedule_wait_ns",
    "markers",
    "marker_wait_ns",
    "elapsed_ns",
)


class OperatorCounters:
    """Counters of one operator. Written by whoever runs its turn, so never by two threads at once."""

    __slots__ = (
        "backpressured",
        "busy_ns",
        "least_cost_ns",
        "marker_wait_ns",
        "markers",
        "processed",
        "schedule_wait_ns",
        "turns",
    )

    def __init__(self) -> None:
        self.processed = 0  # events taken from inputs (by a source: read)
        self.turns = 0
        self.busy_ns = 0  # time inside turns
        self.least_cost_ns = 0.0  # per event in large turns: the work without the waiting around it
        self.backpressured = 0  # turns that ended for want of room in an output
        self.schedule_wait_ns = 0  # from having work and no turn to the start of the turn, summed over turns
        self.markers = 0  # latency markers seen
        self.marker_wait_ns = 0  # how long those waited in the input, summed

    def record_turn(self, began_ns: int, ended_ns: int, taken: int, ready_since_ns: int = 0) -> None:
        """Counts one turn. ``ready_since_ns``: since when it had had work and no turn, if that is known."""
        if ready_since_ns:
            self.schedule_wait_ns += max(0, began_ns - ready_since_ns)
        self.turns += 1
        self.processed += taken
        self.busy_ns += ended_ns - began_ns
        if taken >= _LARGE_TURN:
            cost_ns = (ended_ns - began_ns) / taken
            # it may drift upwards by a percent a turn, so that a change of the data is noticed
            self.least_cost_ns = min(cost_ns, self.least_cost_ns * 1.01 or cost_ns)


def cost_of_measuring_ns(turns: int = 20_000) -> float:
    """What the measuring of one turn costs on this machine: two looks at the clock and the counting."""
    counters, clock = OperatorCounters(), time.perf_counter_ns
    began_ns = clock()
    for _ in range(turns):
        counters.record_turn(clock(), clock(), 1)
    return (clock() - began_ns) / turns


@dataclass(frozen=True)
class OperatorMetrics:
    """One operator at one moment.

    ``queue_ms``, ``schedule_ms`` and ``compute_ms`` are EdgeWise's T_Q, T_S and T_C: the time an event
    waits behind others, the time the head of the queue waits for a turn, and the time the event's own work
    takes.
    """

    id: str
    kind: str
    pending: int
    processed: int
    emitted: int
    turns: int
    busy_ns: int
    backpressured: int
    blocks_in_use: int
    late: int
    state_bytes: int
    schedule_wait_ns: int
    markers: int
    marker_wait_ns: int
    elapsed_ns: int = 0  # of the run
    failed: int = 0  # events that its function failed for, set aside
    dropped_runs: int = 0  # of a pattern, beyond the limit of a key
    open_wait_ns: int = 0  # how long it has had work and no turn, now

    @property
    def cost_ns(self) -> float:
        """Time per event; NaN before the first."""
        return self.busy_ns / self.processed if self.processed else math.nan

    @property
    def selectivity(self) -> float:
        """Events out per event in; NaN before the first."""
        return self.emitted / self.processed if self.processed else math.nan

    @property
    def schedule_ms(self) -> float:
        return self.schedule_wait_ns / self.turns / 1e6 if self.turns else math.nan

    @property
    def queue_ms(self) -> float:
        # A marker waits behind all events before it and then for the turn: T_Q + T_S.
        if not self.markers:
            return math.nan
        return max(0.0, self.marker_wait_ns / self.markers / 1e6 - (self.schedule_ms if self.turns else 0.0))

    @property
    def compute_ms(self) -> float:
        return self.cost_ns / 1e6

    @property
    def utilisation(self) -> float:
        """ρ_w = 1 − T_emptyQ / T_w: the share of time in which it had work, running or not (edgewise eq. 11).

        By eq. 10 that is T_E · N / T_w, where T_E, the mean time per event, includes the wait for turns.
        """
        with_work_ns = self.busy_ns + self.schedule_wait_ns + self.open_wait_ns
        return min(1.0, with_work_ns / self.elapsed_ns) if self.elapsed_ns else math.nan

    def since(self, earlier: OperatorMetrics) -> OperatorMetrics:
        """What came after ``earlier``: counts are differences, what is a level stays as it is now."""
        counts = {name: getattr(self, name) - getattr(earlier, name) for name in _COUNTS}
        # A wait that was under way then has been counted since; the part before belongs to before.
        counts["schedule_wait_ns"] -= earlier.open_wait_ns
        return replace(self, **counts)

    def __add__(self, other: OperatorMetrics) -> OperatorMetrics:
        """Two instances of one operator, counted together."""
        sums = {
            field.name: getattr(self, field.name) + getattr(other, field.name)
            for field in fields(self)
            if field.name not in ("id", "kind")
        }
        return replace(self, **sums)
