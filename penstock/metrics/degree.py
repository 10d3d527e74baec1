"""The degree of a detector at one moment: what was planned, what was requested, what was observed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
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

    @classmethod
    def of(cls, plain: dict[str, Any]) -> DegreeMetrics:
        """What ``plain`` gave."""
        return cls(**plain)


def merged_degrees(told: Iterable[tuple[str, DegreeMetrics | None]]) -> dict[str, DegreeMetrics]:
    """By step: where several operators of one step tell of it, the most that one has told.

    >>> merged_degrees([("a", DegreeMetrics(2, 2, 1)), ("a", DegreeMetrics(2, 2, 2)), ("b", None)])
    {'a': DegreeMetrics(planned=2, requested=2, observed=2, most=0)}
    """
    found: dict[str, DegreeMetrics] = {}
    for step, degree in told:
        if degree is None:
            continue
        known = found.get(step, degree)
        names = [field.name for field in fields(DegreeMetrics)]
        found[step] = DegreeMetrics(*(max(getattr(known, name), getattr(degree, name)) for name in names))
    return found
