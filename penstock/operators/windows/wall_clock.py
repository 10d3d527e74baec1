"""The clock that windows go by, as tables: what it shows at a moment, and when it first shows a time.

What it shows never goes back: when clocks are put back, it stands still until they have caught up. Then it
grows with time, and all that windows compute in multiples of their slide is computed on it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, overload
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from penstock.compiled.fixed import part
from penstock.kernels.builder import KernelBuilder
from penstock.query.windows import Sliding
from penstock.query.windows.clock import WindowClock

Ints = NDArray[np.int64]

#: What the lines of ``pane_lines`` call.
IMPORTS = "from penstock.operators.windows.wall_clock import instant_of, wall_of\n"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS = (1800, 2200)  # before and after, the first and the last offset hold
_STEP_S = 7 * 86_400  # a zone keeps an offset for longer than that
_START = -(1 << 63)
_END = (1 << 63) - 1


class WallClock:
    """A ``WindowClock`` as tables, one entry for each stretch of time with one offset."""

    def __init__(self, clock: WindowClock) -> None:
        self.is_plain = clock.is_plain
        starts, offsets = _stretches(clock.zone)
        offsets = [offset - clock.offset_us for offset in offsets]
        reached = [_START]  # what the clock has shown before the stretch
        for start, offset in zip(starts[1:], offsets[:-1], strict=True):
            reached.append(max(reached[-1], start - 1 + offset))
        self._starts, self._offsets, self._reached = starts, offsets, reached
        self._until = [*reached[1:], _END]  # and in it
        self._tables = tuple(np.array(t, np.int64) for t in (starts, offsets, reached, self._until))

    @overload
    def wall(self, times: int) -> int: ...
    @overload
    def wall(self, times: Ints) -> Ints: ...
    def wall(self, times: Any) -> Any:
        """What the clock shows then."""
        if self.is_plain:
            return times
        if isinstance(times, int):
            place = bisect_right(self._starts, times) - 1
            return max(times + self._offsets[place], self._reached[place])
        starts, offsets, reached, _ = self._tables
        places = np.searchsorted(starts, times, side="right") - 1
        return np.maximum(times + offsets[places], reached[places])

    @overload
    def instants(self, walls: int) -> int: ...
    @overload
    def instants(self, walls: Ints) -> Ints: ...
    def instants(self, walls: Any) -> Any:
        """When it first shows that, or a later time."""
        if self.is_plain:
            return walls
        if isinstance(walls, int):
            place = min(bisect_left(self._until, walls), len(self._starts) - 1)
            return max(walls - self._offsets[place], self._starts[place])
        starts, offsets, _, until = self._tables
        places = np.searchsorted(until, walls)
        return np.maximum(walls - offsets[places], starts[places])

    def pane_lines(self, builder: KernelBuilder, time: str) -> list[str]:
        """Statements of a kernel that find the pane of an event, unless it is that of the event before."""
        pane, low, high = f"floor_div({time}, pane_us)", "pane * pane_us", "pane_low + pane_us"
        if not self.is_plain:
            places = [builder.parameters.add_table(table) for table in self._tables]
            starts, offsets, reached, until = map(builder.table, places)
            pane = f"floor_div(wall_of({time}, {starts}, {offsets}, {reached}), pane_us)"
            low = f"instant_of(pane * pane_us, {starts}, {offsets}, {until})"
            high = f"instant_of((pane + 1) * pane_us, {starts}, {offsets}, {until})"
        return [
            f"if {time} < pane_low or {time} >= pane_high:",
            f"    pane = {pane}",
            f"    pane_low = {low}",
            f"    pane_high = {high}",
            "    pane_hash = hash_word(int64(0), pane)",
        ]

    @property
    def imports(self) -> str:
        """What a kernel with ``pane_lines`` begins with."""
        return "" if self.is_plain else IMPORTS


@part(error_model="numpy")
def wall_of(time: Any, starts: Ints, offsets: Ints, reached: Ints) -> Any:
    """``WallClock.wall``, in kernels."""
    place = np.searchsorted(starts, time, side="right") - 1
    return max(time + offsets[place], reached[place])


@part(error_model="numpy")
def instant_of(wall: Any, starts: Ints, offsets: Ints, until: Ints) -> Any:
    """``WallClock.instants``, in kernels."""
    place = np.searchsorted(until, wall)
    return max(wall - offsets[place], starts[place])


def wall_clock(window: Sliding) -> WallClock:
    """The clock of a window."""
    return WallClock(window.clock)


@lru_cache(64)
def _stretches(zone: str | None) -> tuple[list[int], list[int]]:
    """When each stretch of time with one offset begins, in microseconds, and the offsets."""
    if zone is None:
        return [_START], [0]
    place = ZoneInfo(zone)

    def offset_us(second: int) -> int:
        time = (_EPOCH + timedelta(seconds=second)).astimezone(place)
        return (time.utcoffset() or timedelta()) // timedelta(microseconds=1)

    first, last = ((datetime(year, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(seconds=1) for year in _YEARS)
    starts, offsets = [_START], [offset_us(first)]
    for second in range(first, last, _STEP_S):
        if offset_us(second + _STEP_S) != offsets[-1]:
            low, high = second, second + _STEP_S  # the offset changes behind low, at high at the latest
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset_us(middle) == offsets[-1] else (low, middle)
            starts.append(high * 1_000_000)
            offsets.append(offset_us(high))
    return starts, offsets
