"""A clock that jumps: the time of Python processes is that of the machine and what a file says.

Also a hook of every Python process of a run, so it must load alone, with the standard library only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

_SHIFT = "PENSTOCK_CLOCK_SHIFT"

_real_time, _real_time_ns = time.time, time.time_ns


class ShiftedClock:
    """The clock of a run's Python processes, which can be put forward or back meanwhile."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._file = folder, folder / "shift"
        folder.mkdir(parents=True, exist_ok=True)
        self.shift(0)

    def shift(self, seconds: int) -> None:
        """From now on the time is that of the machine and so much."""
        new = self._file.with_suffix(".new")
        new.write_text(str(seconds))
        os.replace(new, self._file)

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment of processes that have this clock."""
        from lab.bench.faults.hooks import hooked

        return {**hooked(environment, self._folder / "site", __file__), _SHIFT: str(self._file)}


def arm() -> None:
    """Gives this process the clock, if it is started by a run that has one."""
    file = os.environ.get(_SHIFT)
    if file is None:
        return

    def shift() -> int:
        try:
            with open(file) as told:
                return int(told.read())
        except OSError:  # the run's folder is gone, and the run with it
            return 0

    time.time = lambda: _real_time() + shift()
    time.time_ns = lambda: _real_time_ns() + shift() * 1_000_000_000
