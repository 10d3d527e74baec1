"""Pacing: how many events are due by when, and when each one is."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.query.errors import QueryError

#: Events per second: one number, or steps of (seconds, rate) of which the last goes on for ever.
Rate = float | Sequence[tuple[float, float]]

_SECOND_NS = 1_000_000_000
# Rates are kept in whole events per 1,000 seconds and time in whole ns, so that ``due`` and ``when`` agree
# exactly.
_PER_EVENT = 1_000 * _SECOND_NS


class Pace:
    """Counts due events from the first question on: event i is due once i + 1 fit into the elapsed time.

    >>> pace = Pace([(1, 10), (1, 1000)])
    >>> pace.due(0), pace.due(500_000_000), pace.due(1_001_000_000)
    (0, 5, 11)
    """

    in_bursts = False  # whether many events come at one moment and none between such moments

    def __init__(self, rate: Rate, share: int = 1) -> None:
        """``share``: how many partitions divide the rate among them."""
        steps = [(0.0, float(rate))] if isinstance(rate, int | float) else [(s, float(r)) for s, r in rate]
        if not steps or any(r < 0 or s < 0 or not r < 1e12 for s, r in steps) or steps[-1][1] == 0:
            raise QueryError(
                "rate must be positive",
                detail=f"got {rate!r}",
                hint="write events per second such as 100_000, or steps such as [(10, 1_000), (10, 50_000)]",
            )
        self._start_ns: int | None = None
        # For each step: ns since the start, what is due by then in units of 1 / _PER_EVENT events, and its
        # rate.
        self._steps: list[tuple[int, int, int]] = []
        begin_ns = due = 0
        for seconds, per_second in steps:
            per_1000_s = round(per_second * 1_000 / share)
            if per_second and not per_1000_s:
                raise QueryError(
                    "rate is too small", detail=f"got {per_second}", hint="the least is 0.001 a second"
                )
            self._steps.append((begin_ns, due, per_1000_s))
            length_ns = round(seconds * _SECOND_NS)
            begin_ns += length_ns
            due += length_ns * per_1000_s

    def start(self, now_ns: int, done: int = 0) -> int:
        """Starts the clock as if ``done`` events had been due by now; returns when it would have begun."""
        self._start_ns = 0
        self._start_ns = now_ns - (self.when(done) or 0 if done else 0)
        return self._start_ns

    def due(self, now_ns: int) -> int:
        """How many events are due by then. The first call starts the clock."""
        if self._start_ns is None:
            self._start_ns = now_ns
        elapsed = max(0, now_ns - self._start_ns)
        begin_ns, before, rate = next(step for step in reversed(self._steps) if step[0] <= elapsed)
        return (before + (elapsed - begin_ns) * rate) // _PER_EVENT

    def when(self, count: int) -> int | None:
        """The first moment by which ``count`` events are due; None before the clock was started."""
        if self._start_ns is None:
            return None
        wanted = count * _PER_EVENT
        following = [step[1] for step in self._steps[1:]]
        for (begin_ns, before, rate), end in zip(self._steps, [*following, None], strict=True):
            if rate and (end is None or wanted <= end):
                return self._start_ns + begin_ns + max(0, -(-(wanted - before) // rate))
        raise AssertionError("the last step has a rate and no end")
