"""The route: which task owns each virtual partition, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.query.errors import PenstockError

#: Virtual partition → task. As long as there are partitions; every partition has exactly one owner.
Route = tuple[int, ...]


@dataclass(frozen=True)
class Move:
    """One virtual partition that changes its owner, with all its state."""

    partition: int
    source: int
    target: int


def even_route(partitions: int, tasks: int) -> Route:
    """The tasks in turn: what plain hashing does.

    >>> even_route(5, 2)
    (0, 1, 0, 1, 0)
    """
    return tuple(partition % tasks for partition in range(partitions))


def partitions_of(route: Sequence[int], task: int) -> tuple[int, ...]:
    """The virtual partitions that a task owns.

    >>> partitions_of((0, 1, 0), 0)
    (0, 2)
    """
    return tuple(partition for partition, owner in enumerate(route) if owner == task)


def moves_between(before: Sequence[int], after: Sequence[int]) -> tuple[Move, ...]:
    """What has to move for one route to become another.

    >>> moves_between((0, 1, 0), (0, 1, 1))
    (Move(partition=2, source=0, target=1),)
    """
    if len(before) != len(after):
        raise PenstockError(
            f"routes of different length: {len(before)} and {len(after)} virtual partitions; "
            "the number of virtual partitions cannot change while a stream runs"
        )
    return tuple(
        Move(partition, source, target)
        for partition, (source, target) in enumerate(zip(before, after, strict=True))
        if source != target
    )


def resized(route: Sequence[int], tasks: int, loads: Sequence[float] | None = None) -> Route:
    """The route for another number of tasks that moves little: a task that is gone gives what it has to the
    least loaded ones, a new one takes from the fullest until all have about the same.

    ``loads`` are the partitions'; without them every partition counts the same.

    >>> resized((0, 1, 0, 1), 4)
    (2, 3, 0, 1)
    >>> resized((0, 1, 2, 3), 2)
    (0, 1, 0, 1)
    """
    if not 1 <= tasks <= len(route):
        raise PenstockError(f"tasks must be between 1 and {len(route)}, the virtual partitions: got {tasks}")
    weights = _weights(len(route), loads)
    owners = list(route)
    totals = [0.0] * tasks
    homeless: list[int] = []
    for partition, owner in enumerate(owners):
        if owner < tasks:
            totals[owner] += weights[partition]
        else:
            homeless.append(partition)
    for partition in sorted(homeless, key=lambda one: (-weights[one], one)):
        target = min(range(tasks), key=totals.__getitem__)
        owners[partition] = target
        totals[target] += weights[partition]
    present = set(route)
    for new in (task for task in range(tasks) if task not in present and not _owns(owners, task)):
        _fill(owners, weights, totals, new)
    return tuple(owners)


def _fill(owners: list[int], weights: Sequence[float], totals: list[float], new: int) -> None:
    """Gives a new task partitions of the fullest ones until it has an average share, one at least."""
    share = sum(totals) / len(totals)
    while True:
        source = max((task for task in range(len(totals)) if task != new), key=totals.__getitem__)
        owned = [partition for partition, owner in enumerate(owners) if owner == source]
        fitting = [one for one in owned if totals[new] + weights[one] <= share and len(owned) > 1]
        if not fitting:
            if _owns(owners, new):
                return
            fitting = [min(owned, key=weights.__getitem__)] if len(owned) > 1 else []
            if not fitting:
                return
        moved = max(fitting, key=lambda one: (weights[one], -one))
        if _owns(owners, new) and totals[new] + weights[moved] >= totals[source]:
            return
        owners[moved] = new
        totals[source] -= weights[moved]
        totals[new] += weights[moved]


def _owns(owners: Sequence[int], task: int) -> bool:
    return task in owners


def _weights(count: int, loads: Sequence[float] | None) -> list[float]:
    """The loads with something for those without: an idle partition has state that must be somewhere too."""
    if loads is None or not any(loads):
        return [1.0] * count
    least = sum(loads) / count * 1e-3
    return [max(load, least) for load in loads]
