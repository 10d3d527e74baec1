"""Processor time that a hypervisor gave to others: a run that lost some of it says little."""

from __future__ import annotations

import os
from pathlib import Path

_STAT = Path("/proc/stat")  # Linux; elsewhere nothing is known to be stolen
_STEAL = 8  # the column, after the name


class Stolen:
    """Counts from when it was made."""

    def __init__(self) -> None:
        self._before_s = _stolen_s()

    def share(self, elapsed_s: float) -> float:
        """The share of all processors' time that was taken since, if that long has passed."""
        return (_stolen_s() - self._before_s) / (elapsed_s * (os.cpu_count() or 1))


def _stolen_s() -> float:
    """Since the machine was started, by all processors together."""
    if not _STAT.exists():
        return 0.0
    with _STAT.open() as lines:
        return int(lines.readline().split()[_STEAL]) / os.sysconf("SC_CLK_TCK")
