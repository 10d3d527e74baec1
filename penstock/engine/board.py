"""The board: what is known of every operator, by number, where Python and compiled code both read and write.

All of it lies in one piece of memory, and compiled code is called with its address alone: to hand over eight
arrays costs more than what is done with them, above all when the kernels of the turn before have filled the
caches (20 µs against 70 with nothing in them).
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Where each operator's part of a list begins, and the list.
Lists = tuple[NDArray[np.int64], NDArray[np.int64]]

#: An event that nobody knows the time of.
NEVER_NS = 1 << 62

# Rows of ``integers``.
LOOK_NS = 0  # of a source: when to look at it; NEVER_NS: someone else will say
DUE_NS = 1  # of a source: when its next event is due; 0: it should be asked
KNOWN = 2  # of a source: pending events when it was last asked
LAST_TURN_NS = 3  # when its last turn ended; of a source that was read empty, its patience before its next
SINCE_NS = 4  # since when it has had work and no turn; 0: it has no work
LIMIT = 5  # of a turn, by the plan
TICKET = 6  # of equal priorities the lowest goes first
PENDING = 7  # of a reader: events and marks that wait for it, by the last look
LEAST = 8  # events of a turn, however late it is, by the plan
GIVEN_NS = 9  # when it was last given out
SPAN_NS = 10  # how long a worker has it, with all that goes with it, smoothed; 0: not known

# Rows of ``floats``.
PRIORITY = 0  # of those that wait for a worker; 0 of all others
POTENTIAL = 1  # what the priority is as soon as it is eligible, by the plan
IDLE_NS = 2  # an operator idle for longer than this is eligible with any number of events
COST_NS = 3  # per event; 0: a turn need not end with the epoch
PER_NS = 4  # of a source: events by the ns
TAKEN = 5  # the priority with which it was last taken from the queue since the plan

# Rows of ``flags``.
RUNNING = 0  # a worker has it
BLOCKED = 1  # an outlet is full
PACED = 2  # a source that knows when its next event is due
TOGETHER = 3  # all operators behind it may go with it, by the plan
UNWRITTEN = 4  # what it has taken and sent since is not in the figures yet
SOURCE = 5
LEADING = 6  # a worker has it together with all operators behind it
CHAIN = 7  # it and all behind it have one reader at the most

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
SOURCES_STAY = 9  # there are more workers than sources, so that a source need not wait for one
SLEEPING = 10  # how many workers sleep
OPERATORS = 11
SLACK_NS = 12  # so much too early a source may come if another one is due
LISTS = 13  # the address of the lists: who stands behind whom, and who reads from whom
BEAT_NS = 14  # the next time at which sources are read together
PUT_OFF = 15  # somebody has work that was not worth a turn so far
_NUMBERS = 16

INTEGERS, FLOATS, FLAGS = 11, 6, 8  # how many rows there are

#: The most operators, each with those behind it, that a worker takes at once.
MOST_TURNS = 6
# Behind the numbers: of each operator that is given back, its number and what its turn has left (of a source:
# whether it was not read empty).
RETURNED = _NUMBERS
# And of each that is taken: its number, the limit of its turn, whether all operators behind it go with it.
GIVEN = RETURNED + 2 * MOST_TURNS
HEAD = GIVEN + 3 * MOST_TURNS

#: Differs whenever any of these places does: compiled code kept from another layout must not be used.
LAYOUT = zlib.crc32(repr([item for item in globals().items() if item[0].isupper()]).encode())


class Board:
    """Arrays by operator, and views of their rows that read and write one element at a quarter of NumPy's
    cost."""

    def __init__(self, operators: int) -> None:
        ends = np.cumsum([HEAD, *(operators * rows for rows in (INTEGERS, FLOATS, FLAGS))])
        self._memory = np.zeros(ends[-1], np.int64)
        self.numbers, integers, floats, flags = np.split(self._memory, ends[:-1])
        self.integers = integers.reshape(INTEGERS, operators)
        self.floats = floats.view(np.float64).reshape(FLOATS, operators)
        self.flags = flags.reshape(FLAGS, operators)
        self.integers[LOOK_NS] = self.integers[DUE_NS] = NEVER_NS
        self.numbers[NEXT_LOOK_NS] = NEVER_NS
        self.numbers[OPERATORS] = operators
        self.number = view(self.numbers)
        self.running = view(self.flags[RUNNING])
        self.blocked = view(self.flags[BLOCKED])
        self.priority = view(self.floats[PRIORITY])
        self.given_ns = view(self.integers[GIVEN_NS])
        self.look_ns = view(self.integers[LOOK_NS])
        self.pending = view(self.integers[PENDING])

    def __len__(self) -> int:
        return self.flags.shape[1]

    @property
    def address(self) -> int:
        """Of everything, for compiled code."""
        return self._memory.ctypes.data

    def link(self, behind: Lists, readers: Lists) -> None:
        """Says who stands behind whom and who reads from whom: of operator i, ``items[starts[i]:starts[i +
        1]]``."""
        self._lists = np.concatenate([*behind, *readers]).astype(np.int64)
        self.numbers[LISTS] = self._lists.ctypes.data


def view(array: NDArray[Any]) -> Any:
    """Reads and writes single elements at a quarter of NumPy's cost."""
    return memoryview(array)  # type: ignore[arg-type]
