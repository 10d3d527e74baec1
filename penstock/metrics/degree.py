"""The degree of a detector at one moment: what was planned, what was requested, what was observed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class DegreeMetrics:
    """One detector's instances. An operator that has such says so by ``Operator.degree``."""

    planned: int  # what was calculated, or asked for, last; it may be more than there can be
    requested: int  # how many there will be once everything under way has happened
    observed: int  # how many get work now
    most: int = 0  # how many there can be

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        if self.planned == self.requested == self.observed:
            return f"degree {self.observed}"
        return f"degree {self.observed}, requested {self.requested}, planned {self.planned}"
