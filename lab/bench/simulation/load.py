"""How much of the machine other processes take meanwhile: a calibration on a busy machine says little."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Usage:
    """Processor seconds up to one moment, of everyone and of this process."""

    at_s: float
    everyone_s: float
    own_s: float

    @classmethod
    def now(cls) -> Usage:
        everyone, own = psutil.cpu_times(), psutil.Process().cpu_times()
        idle_s = everyone.idle + getattr(everyone, "iowait", 0.0)
        # Guests' time is in the users' already.
        guests_s = getattr(everyone, "guest", 0.0) + getattr(everyone, "guest_nice", 0.0)
        return cls(time.monotonic(), sum(everyone) - idle_s - guests_s, own.user + own.system)

    def others_until(self, later: Usage, cores: int | None = None) -> float:
        """The share of all cores that others took from now until then.

        >>> Usage(0.0, 100.0, 10.0).others_until(Usage(10.0, 118.0, 20.0), cores=2)
        0.4
        """
        cores = cores or os.cpu_count() or 1
        others_s = (later.everyone_s - self.everyone_s) - (later.own_s - self.own_s)
        return max(0.0, others_s) / (cores * (later.at_s - self.at_s))
