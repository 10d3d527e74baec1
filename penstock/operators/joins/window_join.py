"""Window join: pairs of events of two streams with equal keys in the same window."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from penstock.operators.joins.join import Join
from penstock.operators.joins.join_kernels import Ints
from penstock.operators.run.base import Build
from penstock.operators.run.registry import runs
from penstock.operators.windows.wall_clock import wall_clock
from penstock.query.steps import WindowJoinSpec

# Buckets per size of a sliding window: more look at fewer events in vain and free them earlier, but each
# costs a look into the table. Buckets of tumbling windows are the windows themselves.
_BUCKETS = 4


@runs(WindowJoinSpec)
class WindowJoin(Join):
    """A pair of events comes once for every window that holds both. Its time is the window's last moment."""

    def __init__(self, build: Build) -> None:
        spec = build.node.spec_as(WindowJoinSpec)
        self._size, self._slide = spec.window.size_us, spec.window.slide_us
        self._clock = wall_clock(spec.window)
        bucket_us = self._size if spec.window.is_tumbling else self._size // _BUCKETS + 1
        super().__init__(build, spec.on, spec.columns, bucket_us)

    def reach(self, index: int) -> tuple[int, int, int, int]:
        return self._size, self._slide, 0, 0

    def dead_before(self, index: int, watermark_us: int) -> int:
        # No event is needed from before the start of the first window that is still open.
        first_open = (self._clock.wall(watermark_us) - self._size) // self._slide + 1
        return first_open * self._slide // self._bucket_us

    def pair_times(self, left: Ints, right: Ints, windows: Ints) -> Ints:
        return self._clock.instants(windows * self._slide + self._size) - 1

    def on_clock(self, times: Ints) -> Ints:
        return self._clock.wall(times)

    def write_more(self, target: dict[str, NDArray[Any]], windows: Ints) -> None:
        if "window_start" in target:
            target["window_start"][:] = self._clock.instants(windows * self._slide)
        if "window_end" in target:
            target["window_end"][:] = self._clock.instants(windows * self._slide + self._size)

    @property
    def open_windows(self) -> int:
        """Windows that reach into stretches of time with stored events, each counted once for all keys."""
        numbers: set[int] = set()
        for bucket in {bucket for side in self.sides for bucket in side.buckets}:
            start, stop = bucket * self._bucket_us, (bucket + 1) * self._bucket_us
            numbers.update(range((start - self._size) // self._slide + 1, (stop - 1) // self._slide + 1))
        return len(numbers)
