"""Where everything stands in the machine's matrices: their columns, and the places in its counts and modes.

All of it is compiled into the njit functions of the machine, so the kernel cache reads this file too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Columns of ``places``, one row per position of the automaton. FORGETS: the continuations, as bits, that no
# condition on earlier events can ever meet.
BINDS, FIRST, STOP, ACCEPTS, WAIT, WATCH, WANTS, FORGETS = range(8)
PLACE_WIDTH = 8
# Columns of ``follow``: continuations.
TARGET, GUARD = range(2)
# Columns of ``runs``: a line of the processor's cache. ROW is its first event; SPENT are the continuations of
# its position, as bits, that other runs follow.
POS, SEEN, NODE, SEQ, ROW, DUE, SPENT, NEXT = range(8)
RUN_WIDTH = 8
# Columns of ``nodes``: one binding each. SEQ is the number of the event in its key.
N_ROW, N_EVENT, N_PARENT, N_SEQ = range(4)
# Columns of ``keys``, by entry: its list of runs, how many events it has seen, and the events of the pattern
# that some run may be waiting or watching for (bits; perhaps too many).
HEAD, TAIL, SIZE, EVENTS, WANTED = range(5)
# Columns of ``rows``: kept events.
R_TIME, R_ORDER, R_SUB, GONE = range(4)
# Columns of ``matches``. SEQ is the number of the match's first event.
M_NODE, M_TIME, M_ORDER, M_SUB, M_START, M_END, M_SEQ = range(7)
MATCH_WIDTH = 7
# Places in ``counts``; the last eight are where the machine is just now.
(RUNS, FREE, LIVE, NODES, MATCHES, DROPPED, NEW_HEAD, NEW_TAIL, NEW_SIZE, NEW_WANTED) = range(10)
(NOW_TIME, NOW_ORDER, NOW_SUB, NOW_NUMBER, NOW_ODD) = range(10, 15)
# How many runs of the list that is being made the limit does not count: by start, those of other starts.
UNCOUNTED = 15
COUNTS = 16
# Places in ``modes``.
(MODE, SKIP, CONSUMED, WITHIN, WITHIN_EVENTS, PERIOD, MAX_RUNS, ALL_ROWS, PRUNE, FAN_OUT) = range(10)
# The conditions on earlier events: a bit for each event of the pattern that has some, the address of the
# function that evaluates them, and that of what it is given.
(BOUND, FUNCTION, CONTEXT) = range(10, 13)
# Whether the events come numbered, each with whether it may begin a match: a key is then an instance.
BY_START = 13
MODES = 14

STRICT, NEXT_MATCH, ANY_MATCH = range(3)
NO_SKIP, TO_NEXT, PAST_LAST = range(3)
DONE = -1  # as a position: complete, waiting for preferred runs or earlier starts; SEEN is then its end
UNUSED = -2  # as a position: no run, its row can be used again
NEVER = np.int64(2**63 - 1)
# Without a time within, only the end of the input decides what waits: a time that no event comes near, and
# that still has a date when it is added to an event's.
FOREVER = np.int64(7_000 * 365 * 86_400_000_000)

SUB_ROWS = 1 << 20  # as in penstock.operators.run.rows

Machine = Any  # (places, follow, modes, runs, nodes, keys, counts, matches, rows)
Int = Any
