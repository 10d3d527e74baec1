"""The baseline: one instance more above 70 % of CPU load, one less below 50 % (buffer limits VI-B3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class CpuHistory:
    """The average loads of the frames since the last change, newest last."""

    loads: tuple[float, ...] = ()


@dataclass(frozen=True)
class CpuRule:
    """``plan(degree, loads, history) → (degree, history)``, pure, once a frame.

    ``frames`` subsequent frames must agree; after a change the count begins again.
    """

    frame_s: float = 5.0
    frames: int = 2
    add_above: float = 0.7
    remove_below: float = 0.5
    most: int = 1_000

    def plan(self, degree: int, loads: Sequence[float], history: CpuHistory) -> tuple[int, CpuHistory]:
        """``loads``: busy share of each active instance over the last frame."""
        average = sum(loads) / len(loads) if loads else 0.0
        recent = (*history.loads, average)[-self.frames :]
        if len(recent) < self.frames:
            return degree, CpuHistory(recent)
        if all(load > self.add_above for load in recent) and degree < self.most:
            return degree + 1, CpuHistory()
        if all(load < self.remove_below for load in recent) and degree > 1:
            return degree - 1, CpuHistory()
        return degree, CpuHistory(recent)
