"""Where the time of a batch goes, in a task and in the driver."""

from __future__ import annotations

import time


class Clock:
    """Runs from when it is made; ``ms`` has what each part took."""

    def __init__(self) -> None:
        self.started_unix_ms = time.time_ns() // 1_000_000
        self.ms: dict[str, float] = {}
        self._last_ns = time.perf_counter_ns()

    def lap(self, name: str) -> None:
        now_ns = time.perf_counter_ns()
        self.ms[name] = round((now_ns - self._last_ns) / 1e6, 3)
        self._last_ns = now_ns

    def skip(self) -> None:
        """What passed since the last lap is told elsewhere."""
        self._last_ns = time.perf_counter_ns()
