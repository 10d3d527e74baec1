"""What a policy is: a pure function from a snapshot of the operators to the next turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


class Turn(NamedTuple):
    """One operator's next execution: at most ``limit`` events."""

    operator: int
    limit: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The operators at one moment, by their index.

    ``pending[i]`` counts events and marks that operator i could take now: 0 for one that has none, is
    backpressured or is running. A source's is what it could read.
    """

    now_ns: int
    pending: tuple[int, ...]
    turn_limit: int  # the most events that a turn may take by the run's settings


class Policy(Protocol):
    """Decides the next turns, in order. Workers take them one by one and ask again when none is left.

    ``state`` is whatever the policy wants to remember, starting with ``initial_state``; it must be a value,
    not changed in place.
    """

    @property
    def name(self) -> str: ...

    def initial_state(self) -> Any: ...

    def plan(self, snapshot: Snapshot, state: Any) -> tuple[list[Turn], Any]: ...
