"""A migration while data flows: which virtual partitions go where, and the state on its way.

The splitter tells of it behind the last event of the old route, on the edges to all tasks. A task that must
give finds it there, so it has seen all events that it had to see; it takes the partitions out of its state
and hands them over. A task that must receive finds it before the first event of its new partitions; it lets
those wait, in order, until their state is there. Everything else goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.routing.route import Move, Route
from penstock.state.tables import StateTables


@dataclass(frozen=True)
class Migration:
    """Moves that happen together."""

    number: int
    moves: tuple[Move, ...]
    route: Route  # the one that follows

    def given_by(self, task: int) -> dict[int, list[int]]:
        """The partitions that a task gives away, by their new owners."""
        found: dict[int, list[int]] = {}
        for move in self.moves:
            if move.source == task:
                found.setdefault(move.target, []).append(move.partition)
        return found

    def received_by(self, task: int) -> dict[int, list[int]]:
        """The partitions that a task gets, by their old owners."""
        found: dict[int, list[int]] = {}
        for move in self.moves:
            if move.target == task:
                found.setdefault(move.source, []).append(move.partition)
        return found


@dataclass
class Exchange:
    """What the splitter and the tasks of one operator share. Its methods may be called from any thread."""

    tasks: int
    #: Wakes a task for which something has come.
    call: Callable[[int], None] = lambda task: None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _boxes: list[list[tuple[int, StateTables]]] = field(default_factory=list)
    _awaited: int = 0  # tasks that still wait for state
    observed: int = 0  # partitions whose new owner has taken over

    def __post_init__(self) -> None:
        self._boxes = [[] for _ in range(self.tasks)]

    @property
    def is_busy(self) -> bool:
        """Whether some state is still on its way."""
        with self._lock:
            return self._awaited > 0

    def begin(self, migration: Migration) -> None:
        """The splitter is about to tell of a migration."""
        with self._lock:
            self._awaited += len({move.target for move in migration.moves})

    def send(self, target: int, number: int, tables: StateTables) -> None:
        """Hands over what a task takes out of its state in a migration."""
        with self._lock:
            self._boxes[target].append((number, tables))
        self.call(target)

    def arrived(self, task: int, number: int) -> int:
        """How many parts of a migration have come for a task."""
        with self._lock:
            return sum(one == number for one, _ in self._boxes[task])

    def take(self, task: int, number: int) -> list[StateTables]:
        """What has come for a task."""
        with self._lock:
            box = self._boxes[task]
            self._boxes[task] = [one for one in box if one[0] != number]
            return [tables for one, tables in box if one == number]

    def done(self, partitions: int) -> None:
        """A task has taken over all that it was to get."""
        with self._lock:
            self._awaited -= 1
            self.observed += partitions
