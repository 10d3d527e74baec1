"""The board: what is known of every operator, by number, where Python and compiled code both read and write.

Rows of a few arrays rather than many arrays: what a compiled function is called with costs more than what it
does, above all when the kernels of the turn before have filled the caches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: An event that nobody knows the time of.
NEVER_NS = 1 << 62

# Rows of ``integers``.
LOOK_NS = 0  # of a source: when to look at it; NEVER_NS: someone else will say
DUE_NS = 1  # of a source: when its next event is due; 0: it should be asked
KNOWN = 2  # of a source: pending events when it was last asked
LAST_TURN_NS = 3  # when its last turn ended
SINCE_NS = 4  # since when it has had work and no turn; 0: it has no work
LIMIT = 5  # of a turn, by the plan
TICKET = 6  # of equal priorities the lowest goes first
PENDING = 7  # of a reader: events and marks that wait for it, by the last look
LEAST = 8  # events of a turn, however late it is, by the plan
_INTEGERS = 9

# Rows of ``floats``.
PRIORITY = 0  # of those that wait for a worker; 0 of all others
POTENTIAL = 1  # what the priority is as soon as it is eligible, by the plan
IDLE_NS = 2  # an operator idle for longer than this is eligible with any number of events
COST_NS = 3  # per event; 0: a turn need not end with the epoch
PER_NS = 4  # of a source: events by the ns
TAKEN = 5  # the priority with which it was last taken from the queue since the plan
_FLOATS = 6

# Rows of ``flags``.
RUNNING = 0  # a worker has it
BLOCKED = 1  # an outlet is full
PACED = 2  # a source that knows when its next event is due
TOGETHER = 3  # all operators behind it may go with it, by the plan
UNWRITTEN = 4  # what it has taken and sent since is not in the figures yet
SOURCE = 5
LEADING = 6  # a worker has it together with all operators behind it
CHAIN = 7  # it and all behind it have one reader at the most
_FLAGS = 8

# Places in ``numbers``.
WAITING = 0  # how many wait for a worker
TICKETS = 1  # tickets given out
NEXT_LOOK_NS = 2  # the least of LOOK_NS
HELD = 3  # how many operators workers have
PATIENCE_NS = 4  # how long a source that was read empty waits
THRESHOLD = 5  # so many pending events make an operator eligible
DEADLINE_NS = 6  # when turns should end
EPOCH_NS = 7
OTHER_WORKERS = 8
TURN_LIMIT = 9  # an answer: events of the turn that was picked
WITH_OTHERS = 10  # an answer: whether all operators behind it go with it
HAS_MORE = 11  # a question: whether the source that is given back was not read empty
SOURCES_STAY = 12  # there are more workers than sources, so that a source need not wait for one
SLEEPING = 13  # how many workers sleep
_NUMBERS = 14


class Board:
    """Arrays by operator, and views of their rows that read and write one element at a quarter of NumPy's
    cost."""

    def __init__(self, operators: int) -> None:
        self.integers = np.zeros((_INTEGERS, operators), np.int64)
        self.floats = np.zeros((_FLOATS, operators))
        self.flags = np.zeros((_FLAGS, operators), np.int8)
        self.numbers = np.zeros(_NUMBERS, np.int64)
        self.integers[LOOK_NS] = self.integers[DUE_NS] = NEVER_NS
        self.numbers[NEXT_LOOK_NS] = NEVER_NS
        self.number = view(self.numbers)
        self.running = view(self.flags[RUNNING])
        self.blocked = view(self.flags[BLOCKED])
        self.priority = view(self.floats[PRIORITY])
        self.look_ns = view(self.integers[LOOK_NS])

    def __len__(self) -> int:
        return self.flags.shape[1]


def view(array: NDArray[Any]) -> Any:
    """Reads and writes single elements at a quarter of NumPy's cost."""
    return memoryview(array)  # type: ignore[arg-type]
