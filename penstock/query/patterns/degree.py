"""Degree: how many instances a detector has, and what changes that while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.query.errors import QueryError

#: Instances that a detector may have at the most: each is an operator, or a key of its own.
MOST_INSTANCES = 1024


class DegreeDecider(Protocol):
    """Decides the degree from the events that arrive, by their event time: the same stream gives the same
    degrees in every run."""

    def observe(self, batch: Any) -> int | None:
        """The degree that these events call for; None: no news."""

    def export(self) -> dict[str, Any]:
        """All that it must know to go on, as arrays of numbers by name."""

    def restore(self, state: dict[str, Any]) -> None:
        """Takes in what ``export`` gave, before its first events."""


@dataclass(frozen=True)
class Degree:
    """The number of instances of a detector. It never changes a result, only who works on it.

    start: how many there are at first.
    most: how many there may ever be; by default, the largest of ``start`` and ``changes``.
    changes: (position, degree): once so many events of the stream have been taken, that many instances. The
        same in every run.
    control: makes what decides the degree while the app runs, e.g. ``ps.detection.DegreeControl``; it may
        ask for more than ``most`` and gets ``most``.

    >>> Degree(2, changes=[(10_000, 4)]).most
    4
    """

    start: int = 1
    most: int = 0
    changes: tuple[tuple[int, int], ...] = ()
    control: Callable[[], DegreeDecider] | None = None

    def __post_init__(self) -> None:
        _check_count("start", self.start)
        changes = _checked_changes(self.changes)
        highest = max((self.start, *(degree for _, degree in changes)))
        if not self.most:
            if self.control is not None:
                raise QueryError(
                    "a degree with a control needs most",
                    detail="got none",
                    hint="say how many instances there may be: Degree(most=8, control=...)",
                )
            object.__setattr__(self, "most", highest)
        _check_count("most", self.most)
        if highest > self.most:
            raise QueryError(
                f"degree must be from 1 to {self.most}, which is most",
                detail=f"got {highest}",
                hint=f"write most={highest}",
            )
        if self.control is not None and not callable(self.control):
            raise QueryError(
                "control must be a function that makes one",
                detail=f"got {self.control!r}",
                hint="write control=lambda: DegreeControl(...): every run has its own",
            )
        object.__setattr__(self, "changes", changes)

    def __str__(self) -> str:
        told = f"degree {self.start}"
        if self.changes:
            told += ", " + ", ".join(f"{degree} from event {position}" for position, degree in self.changes)
        if self.control is not None:
            told += f", adapted up to {self.most}"
        elif self.most > max((self.start, *(degree for _, degree in self.changes))):
            told += f" of {self.most}"
        return told


def as_degree(value: int | Degree) -> Degree:
    """What a user wrote as ``degree=``."""
    if isinstance(value, Degree):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise QueryError(
            "degree is a whole number or a Degree", detail=f"got {value!r}", hint="write degree=4"
        )
    return Degree(value)


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_INSTANCES:
        raise QueryError(
            f"{name} is a whole number from 1 to {MOST_INSTANCES}",
            detail=f"a degree got {value!r}",
            hint=f"write {name}=4",
        )


def _checked_changes(changes: Any) -> tuple[tuple[int, int], ...]:
    try:
        pairs = tuple((position, degree) for position, degree in changes)
    except (TypeError, ValueError):
        pairs = (("", 0),)
    for position, degree in pairs:
        if isinstance(position, bool) or not isinstance(position, int) or position < 0:
            raise QueryError(
                "changes are pairs of a position and a degree",
                detail=f"got {changes!r}",
                hint="write changes=[(10_000, 4)]",
            )
        _check_count("a changed degree", degree)
    return tuple(sorted(pairs, key=lambda pair: pair[0]))


__all__ = ["MOST_INSTANCES", "Degree", "DegreeDecider", "as_degree"]
