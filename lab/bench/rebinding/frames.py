"""Traffic that comes frame by frame: what all agents report at one moment is there at once."""

from __future__ import annotations

from penstock.connectors.paced import PacedReader
from penstock.connectors.pacing import Pace
from penstock.connectors.reader import Reader
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.workloads.traffic.settings import TrafficSettings
from penstock.workloads.traffic.source import Traffic


class FramePace(Pace):
    """Whole frames are due, one every period; the first at the first question.

    >>> pace = FramePace(100, frames_per_second=25)
    >>> pace.due(0), pace.due(39_999_999), pace.due(40_000_000)
    (100, 100, 200)
    """

    in_bursts = True

    def __init__(self, agents: int, frames_per_second: int) -> None:
        super().__init__(agents * frames_per_second)
        self._agents = agents
        self._period_ns = 1_000_000_000 // frames_per_second

    def due(self, now_ns: int) -> int:
        if self._start_ns is None:
            self._start_ns = now_ns
        return ((now_ns - self._start_ns) // self._period_ns + 1) * self._agents

    def when(self, count: int) -> int | None:
        if self._start_ns is None:
            return None
        return self._start_ns + max(0, -(-count // self._agents) - 1) * self._period_ns


class FrameTraffic(Traffic):
    """Real-time traffic of a constant number of cars, a frame at a time."""

    def __init__(self, settings: TrafficSettings) -> None:
        super().__init__(settings, real_time=True)

    def open(self, layout: Layout, strings: StringPool) -> list[Reader]:
        readers = super().open(layout, strings)
        for reader in readers:
            assert isinstance(reader, PacedReader)
            pace = FramePace(self.settings.cars, self.settings.frames_per_second)
            reader._pace = reader._came_at = pace
        return readers
