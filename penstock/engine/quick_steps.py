"""The compiled steps of an exchange, on the rows of the board.

They do to the board what the scheduler does step by step in Python.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from penstock.engine.board import (
    BLOCKED,
    CHAIN,
    COST_NS,
    DEADLINE_NS,
    DUE_NS,
    EPOCH_NS,
    HAS_MORE,
    HELD,
    IDLE_NS,
    KNOWN,
    LAST_TURN_NS,
    LEADING,
    LEAST,
    LIMIT,
    LOOK_NS,
    NEVER_NS,
    NEXT_LOOK_NS,
    OTHER_WORKERS,
    PACED,
    PATIENCE_NS,
    PENDING,
    PER_NS,
    POTENTIAL,
    PRIORITY,
    RUNNING,
    SINCE_NS,
    SLEEPING,
    SOURCE,
    SOURCES_STAY,
    TAKEN,
    THRESHOLD,
    TICKET,
    TICKETS,
    TOGETHER,
    TURN_LIMIT,
    UNWRITTEN,
    WAITING,
    WITH_OTHERS,
)
from penstock.scheduling.policy import Floats, Integers
from penstock.scheduling.queue import best

#: Somebody has to be asked before an operator is given back.
ASK = -2
#: To pick whoever comes first.
BEST = -1

#: Of the board: integers, floats, flags, numbers; then two that say who stands behind, or reads from, whom.
_ARRAYS = "int64[:, ::1], float64[:, ::1], int8[:, ::1], int64[::1], int64[::1], int64[::1]"


@numba.njit(cache=True)
def _note(operator, now_ns, integers, flags):  # type: ignore[no-untyped-def]
    flags[RUNNING, operator] = 0
    flags[UNWRITTEN, operator] = 1
    integers[LAST_TURN_NS, operator] = now_ns
    integers[SINCE_NS, operator] = 0


@numba.njit(cache=True)
def _put_if_eligible(operator, pending, now_ns, integers, floats, numbers):  # type: ignore[no-untyped-def]
    enough = pending >= numbers[THRESHOLD] or pending >= integers[LIMIT, operator]
    if enough or now_ns - integers[LAST_TURN_NS, operator] > floats[IDLE_NS, operator]:
        floats[PRIORITY, operator] = floats[POTENTIAL, operator]
        numbers[WAITING] += 1
        numbers[TICKETS] += 1
        integers[TICKET, operator] = numbers[TICKETS]
        return True
    return False


@numba.njit(cache=True)
def _admit_sources(now_ns, integers, floats, flags, numbers):  # type: ignore[no-untyped-def]
    """Lets sources in whose next event is due by now."""
    least_ns = NEVER_NS
    for source in range(integers.shape[1]):
        if integers[LOOK_NS, source] <= now_ns:
            integers[LOOK_NS, source] = NEVER_NS
            if not flags[RUNNING, source] and not flags[BLOCKED, source] and floats[PRIORITY, source] <= 0.0:
                since_ns = max(0, now_ns - integers[DUE_NS, source])
                pending = max(1 + np.int64(since_ns * floats[PER_NS, source]), integers[KNOWN, source])
                if not _put_if_eligible(source, pending, now_ns, integers, floats, numbers):
                    integers[LOOK_NS, source] = now_ns + numbers[EPOCH_NS]  # not worth it yet
        least_ns = min(least_ns, integers[LOOK_NS, source])
    numbers[NEXT_LOOK_NS] = least_ns


@numba.njit(cache=True)
def _hold_behind(operator, floats, flags, numbers, starts, members):  # type: ignore[no-untyped-def]
    """Whether all operators behind this one go with it; then they are held too."""
    if not flags[TOGETHER, operator]:
        return 0
    # Behind a fan-out, and behind a source that stays, there is work for workers that will soon be free.
    shares = not flags[CHAIN, operator] or (numbers[SOURCES_STAY] and flags[SOURCE, operator])
    if numbers[WAITING] < (numbers[OTHER_WORKERS] if shares else numbers[SLEEPING]):
        return 0
    for place in range(starts[operator], starts[operator + 1]):
        reader = members[place]
        if flags[RUNNING, reader] or flags[BLOCKED, reader] or floats[PRIORITY, reader] > 0.0:
            return 0
    for place in range(starts[operator], starts[operator + 1]):
        flags[RUNNING, members[place]] = 1
    numbers[HELD] += starts[operator + 1] - starts[operator]
    flags[LEADING, operator] = 1
    return 1


@numba.njit(f"boolean(int64, int64, {_ARRAYS})", cache=True)
def give_back(
    first: int,
    now_ns: int,
    integers: Integers,
    floats: Floats,
    flags: NDArray[np.int8],
    numbers: Integers,
    starts: Integers,
    members: Integers,
) -> bool:
    """False, and nothing done, if the first is a source that has to be asked when it has more."""
    has_more = flags[SOURCE, first] and numbers[HAS_MORE]
    if flags[SOURCE, first] and not has_more:
        if not flags[PACED, first] or floats[PER_NS, first] * numbers[PATIENCE_NS] < 1.0:
            return False
        # It was read empty, and by its rate there is more before its patience ends.
        integers[DUE_NS, first] = now_ns
        integers[KNOWN, first] = 0
        integers[LOOK_NS, first] = now_ns + numbers[PATIENCE_NS]
        numbers[NEXT_LOOK_NS] = min(numbers[NEXT_LOOK_NS], integers[LOOK_NS, first])
    _note(first, now_ns, integers, flags)
    numbers[HELD] -= 1
    if has_more:
        integers[DUE_NS, first] = integers[SINCE_NS, first] = now_ns
        integers[KNOWN, first] = integers[LIMIT, first]
        _put_if_eligible(first, integers[LIMIT, first], now_ns, integers, floats, numbers)
    elif not flags[SOURCE, first] and integers[PENDING, first] > 0:
        integers[SINCE_NS, first] = now_ns
        _put_if_eligible(first, integers[PENDING, first], now_ns, integers, floats, numbers)
    if flags[LEADING, first]:
        flags[LEADING, first] = 0
        for place in range(starts[first], starts[first + 1]):
            _note(members[place], now_ns, integers, flags)
        numbers[HELD] -= starts[first + 1] - starts[first]
    return True


@numba.njit(f"void(int64, int64, {_ARRAYS})", cache=True)
def let_in(
    writer: int,
    now_ns: int,
    integers: Integers,
    floats: Floats,
    flags: NDArray[np.int8],
    numbers: Integers,
    reader_starts: Integers,
    readers: Integers,
) -> None:
    """The readers of an operator have got something, or had it already: PENDING says how much."""
    for place in range(reader_starts[writer], reader_starts[writer + 1]):
        reader = readers[place]
        if integers[PENDING, reader] == 0:
            continue
        if integers[SINCE_NS, reader] == 0:
            integers[SINCE_NS, reader] = now_ns
        if not flags[RUNNING, reader] and not flags[BLOCKED, reader] and floats[PRIORITY, reader] <= 0.0:
            _put_if_eligible(reader, integers[PENDING, reader], now_ns, integers, floats, numbers)


@numba.njit(f"int64(int64, int64, {_ARRAYS})", cache=True)
def pick(
    now_ns: int,
    wanted: int,
    integers: Integers,
    floats: Floats,
    flags: NDArray[np.int8],
    numbers: Integers,
    starts: Integers,
    members: Integers,
) -> int:
    """The operator to run next, now held; −1 if there is none. The answers are on the board."""
    if now_ns >= numbers[NEXT_LOOK_NS]:
        _admit_sources(now_ns, integers, floats, flags, numbers)
    operator = best(floats[PRIORITY], integers[TICKET]) if wanted == BEST else wanted
    if operator < 0:
        return operator
    floats[TAKEN, operator] = floats[PRIORITY, operator]
    floats[PRIORITY, operator] = 0.0
    numbers[WAITING] -= 1
    flags[RUNNING, operator] = 1
    numbers[HELD] += 1
    limit = integers[LIMIT, operator]
    if floats[COST_NS, operator] > 0.0:
        left = np.int64((numbers[DEADLINE_NS] - now_ns) / floats[COST_NS, operator])
        limit = min(limit, max(left, integers[LEAST, operator]))
    numbers[TURN_LIMIT] = limit
    numbers[WITH_OTHERS] = _hold_behind(operator, floats, flags, numbers, starts, members)
    return operator


@numba.njit(f"int64(int64, int64, {_ARRAYS}, int64[::1], int64[::1])", cache=True)
def exchange(
    first: int,
    now_ns: int,
    integers: Integers,
    floats: Floats,
    flags: NDArray[np.int8],
    numbers: Integers,
    starts: Integers,
    members: Integers,
    reader_starts: Integers,
    readers: Integers,
) -> int:
    """Both in one.

    A source that has more stays with its worker if there are workers enough for the rest. Else a source as
    dear as all behind it together would wait for workers that then wait for it.
    """
    is_pass = flags[LEADING, first]
    if not give_back(first, now_ns, integers, floats, flags, numbers, starts, members):
        return ASK
    if not is_pass:
        let_in(first, now_ns, integers, floats, flags, numbers, reader_starts, readers)
    stays = numbers[SOURCES_STAY] and flags[SOURCE, first] and floats[PRIORITY, first] > 0.0
    return pick(now_ns, first if stays else BEST, integers, floats, flags, numbers, starts, members)
