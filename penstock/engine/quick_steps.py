"""The compiled steps of an exchange, on the board.

They do to the board what the scheduler does step by step in Python.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import carray  # type: ignore[attr-defined]

from penstock.engine.board import (
    BEAT_NS,
    BLOCKED,
    CHAIN,
    COST_NS,
    DEADLINE_NS,
    DUE_NS,
    EPOCH_NS,
    FLAGS,
    FLOATS,
    GIVEN,
    GIVEN_NS,
    HEAD,
    HELD,
    IDLE_NS,
    INTEGERS,
    KNOWN,
    LAST_TURN_NS,
    LAYOUT,
    LEADING,
    LEAST,
    LIMIT,
    LISTS,
    LOOK_NS,
    NEVER_NS,
    NEXT_LOOK_NS,
    OPERATORS,
    OTHER_WORKERS,
    PACED,
    PATIENCE_NS,
    PENDING,
    PER_NS,
    POTENTIAL,
    PRIORITY,
    PUT_OFF,
    RETURNED,
    RUNNING,
    SINCE_NS,
    SLACK_NS,
    SLEEPING,
    SOURCE,
    SOURCES_STAY,
    SPAN_NS,
    TAKEN,
    THRESHOLD,
    TICKET,
    TICKETS,
    TOGETHER,
    UNWRITTEN,
    WAITING,
)
from penstock.kernels.pointers import pointer
from penstock.scheduling.queue import best

#: Somebody has to be asked before operators are given back.
ASK = -1
#: To pick whoever comes first.
BEST = -1
_SHORT_NS = 6_000_000  # a turn for which no other worker is woken, with all that goes with it
_TOGETHER_NS = 5_000_000  # of all sources that a worker takes at once, with all that goes with them


@numba.njit
def _board(address):  # type: ignore[no-untyped-def]
    """The rows and lists of the board at this address."""
    numbers = carray(pointer(address), (HEAD,), np.int64)
    operators = numbers[OPERATORS]
    row = 8 * operators
    integers = carray(pointer(address + 8 * HEAD), (INTEGERS, operators), np.int64)
    floats = carray(pointer(address + 8 * HEAD + INTEGERS * row), (FLOATS, operators), np.float64)
    flags = carray(pointer(address + 8 * HEAD + (INTEGERS + FLOATS) * row), (FLAGS, operators), np.int64)
    begin = numbers[LISTS]
    starts = carray(pointer(begin), (operators + 1,), np.int64)
    begin += 8 * (operators + 1)
    members = carray(pointer(begin), (starts[operators],), np.int64)
    begin += 8 * starts[operators]
    reader_starts = carray(pointer(begin), (operators + 1,), np.int64)
    begin += 8 * (operators + 1)
    readers = carray(pointer(begin), (reader_starts[operators],), np.int64)
    return integers, floats, flags, numbers, starts, members, reader_starts, readers


@numba.njit
def next_read_ns(numbers, given_ns, now_ns):  # type: ignore[no-untyped-def]
    """When to read a source again that was given out then and is empty now.

    Sources that each wait for a time of their own come one by one, and so many decisions are made. So they
    wait for the same beat: the first that is half their patience or more after they were given out; if that
    is over, they go on at once. Where a policy asks for no patience, a source waits for an epoch.
    """
    patience_ns = numbers[PATIENCE_NS]
    if patience_ns <= numbers[EPOCH_NS]:
        return now_ns + patience_ns
    beat_ns = numbers[BEAT_NS]
    if beat_ns <= now_ns:
        beat_ns += patience_ns
    if beat_ns <= now_ns or beat_ns > now_ns + patience_ns:  # nothing came for long, or patience is less now
        beat_ns = now_ns + patience_ns
    numbers[BEAT_NS] = beat_ns
    wanted_ns = given_ns + patience_ns // 2
    if wanted_ns <= beat_ns - patience_ns:
        return now_ns
    return beat_ns if wanted_ns <= beat_ns else beat_ns + patience_ns


@numba.njit
def _put_if_eligible(operator, pending, now_ns, integers, floats, numbers):  # type: ignore[no-untyped-def]
    enough = pending >= numbers[THRESHOLD] or pending >= integers[LIMIT, operator]
    if enough or now_ns - integers[LAST_TURN_NS, operator] > floats[IDLE_NS, operator]:
        floats[PRIORITY, operator] = floats[POTENTIAL, operator]
        numbers[WAITING] += 1
        numbers[TICKETS] += 1
        integers[TICKET, operator] = numbers[TICKETS]
        return True
    return False


@numba.njit
def _give_back(operator, left, now_ns, integers, floats, flags, numbers):  # type: ignore[no-untyped-def]
    """One operator comes back; of a source, ``left`` says whether it was not read empty."""
    flags[RUNNING, operator] = 0
    numbers[HELD] -= 1
    flags[UNWRITTEN, operator] = 1
    integers[LAST_TURN_NS, operator] = now_ns
    integers[SINCE_NS, operator] = 0
    pending = left
    if flags[SOURCE, operator]:
        pending = integers[LIMIT, operator] if left else 0
        if left:
            integers[DUE_NS, operator] = now_ns
            integers[KNOWN, operator] = pending
        elif not flags[BLOCKED, operator]:
            # It was read empty, and by its rate there is more before its patience ends.
            integers[DUE_NS, operator] = now_ns
            integers[KNOWN, operator] = 0
            read_ns = next_read_ns(numbers, integers[GIVEN_NS, operator], now_ns)
            integers[LOOK_NS, operator] = read_ns
            integers[LAST_TURN_NS, operator] = read_ns - numbers[PATIENCE_NS]
            numbers[NEXT_LOOK_NS] = min(numbers[NEXT_LOOK_NS], integers[LOOK_NS, operator])
    if pending > 0 or flags[BLOCKED, operator]:
        integers[SINCE_NS, operator] = now_ns
    could_run = pending > 0 and not flags[BLOCKED, operator]
    if could_run and not _put_if_eligible(operator, pending, now_ns, integers, floats, numbers):
        numbers[PUT_OFF] = 1


@numba.njit
def _let_in(reader, now_ns, integers, floats, flags, numbers):  # type: ignore[no-untyped-def]
    """The reader of an operator has got something, or had it already."""
    pending = integers[PENDING, reader]
    if pending == 0:
        return
    integers[PENDING, reader] = 0
    if integers[SINCE_NS, reader] == 0:
        integers[SINCE_NS, reader] = now_ns
    could_run = not flags[RUNNING, reader] and not flags[BLOCKED, reader] and floats[PRIORITY, reader] <= 0.0
    if could_run and not _put_if_eligible(reader, pending, now_ns, integers, floats, numbers):
        numbers[PUT_OFF] = 1


@numba.njit
def _admit_sources(now_ns, integers, floats, flags, numbers):  # type: ignore[no-untyped-def]
    """If the time of a source has come, lets it in, and those whose time is near."""
    least_ns = NEVER_NS
    for source in range(integers.shape[1]):
        least_ns = min(least_ns, integers[LOOK_NS, source])
    until_ns = now_ns + numbers[SLACK_NS] if least_ns <= now_ns else now_ns
    least_ns = NEVER_NS
    for source in range(integers.shape[1]):
        if integers[LOOK_NS, source] <= until_ns:
            integers[LOOK_NS, source] = NEVER_NS
            if not flags[RUNNING, source] and not flags[BLOCKED, source] and floats[PRIORITY, source] <= 0.0:
                since_ns = max(0, now_ns - integers[DUE_NS, source])
                pending = max(1 + np.int64(since_ns * floats[PER_NS, source]), integers[KNOWN, source])
                if not _put_if_eligible(source, pending, now_ns, integers, floats, numbers):
                    integers[LOOK_NS, source] = now_ns + numbers[EPOCH_NS]  # not worth it yet
        least_ns = min(least_ns, integers[LOOK_NS, source])
    numbers[NEXT_LOOK_NS] = least_ns


@numba.njit
def _admit_put_off(now_ns, integers, floats, flags, numbers):  # type: ignore[no-untyped-def]
    """Lets in whoever has been idle for long enough by now: a plan would, but may be far away."""
    numbers[PUT_OFF] = 0
    for operator in range(integers.shape[1]):
        if integers[SINCE_NS, operator] == 0 or flags[SOURCE, operator] or flags[RUNNING, operator]:
            continue
        is_in = not flags[BLOCKED, operator] and (
            floats[PRIORITY, operator] > 0.0
            or _put_if_eligible(operator, 1, now_ns, integers, floats, numbers)
        )
        if not is_in:
            numbers[PUT_OFF] = 1


@numba.njit
def _pick(operator, place, now_ns, integers, floats, flags, numbers, starts, members):  # type: ignore[no-untyped-def]
    """Gives an operator out."""
    floats[TAKEN, operator] = floats[PRIORITY, operator]
    floats[PRIORITY, operator] = 0.0
    numbers[WAITING] -= 1
    flags[RUNNING, operator] = 1
    integers[GIVEN_NS, operator] = now_ns
    numbers[HELD] += 1
    limit = integers[LIMIT, operator]
    if floats[COST_NS, operator] > 0.0:
        left = np.int64((numbers[DEADLINE_NS] - now_ns) / floats[COST_NS, operator])
        limit = min(limit, max(left, integers[LEAST, operator]))
    numbers[GIVEN + 3 * place] = operator
    numbers[GIVEN + 3 * place + 1] = limit
    numbers[GIVEN + 3 * place + 2] = _hold_behind(operator, integers, floats, flags, numbers, starts, members)


@numba.njit
def _hold_behind(operator, integers, floats, flags, numbers, starts, members):  # type: ignore[no-untyped-def]
    """Whether all operators behind this one go with it; then they are held too."""
    if not flags[TOGETHER, operator]:
        return 0
    # Behind a fan-out, and behind a source that stays, there is work for workers that will soon be free.
    stays = numbers[SOURCES_STAY] and flags[SOURCE, operator]
    wanted = numbers[SLEEPING] if flags[CHAIN, operator] and not stays else numbers[OTHER_WORKERS]
    is_short = not stays and 0 < integers[SPAN_NS, operator] <= _SHORT_NS
    if numbers[WAITING] < wanted and not is_short:
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


@numba.njit
def _forget(returned, integers, flags, numbers, starts, members, reader_starts, readers):  # type: ignore[no-untyped-def]
    """Nothing comes back, after all."""
    for place in range(returned):
        first = numbers[RETURNED + 2 * place]
        integers[PENDING, first] = 0
        if flags[LEADING, first]:
            for behind in range(starts[first], starts[first + 1]):
                integers[PENDING, members[behind]] = 0
        else:
            for reader in range(reader_starts[first], reader_starts[first + 1]):
                integers[PENDING, readers[reader]] = 0


@numba.njit("int64(int64, int64, int64, int64)", cache=True)
def exchange(address: int, returned: int, most: int, now_ns: int) -> int:
    """Takes back so many operators, each with those behind it if it leads, and gives out the next, at most
    ``most``; how many.

    ``RETURNED`` has those that lead or come back alone, with what their turns have left. PENDING says what
    others have left, and what the readers of those that come back alone have got; it is 0 afterwards. ASK,
    and nothing done, if a source has to be asked when it has more.
    """
    if returned < 0:
        return LAYOUT
    integers, floats, flags, numbers, starts, members, reader_starts, readers = _board(address)
    for place in range(returned):
        source, has_more = numbers[RETURNED + 2 * place], numbers[RETURNED + 2 * place + 1]
        is_empty = flags[SOURCE, source] and not has_more and not flags[BLOCKED, source]
        tells = flags[PACED, source] and floats[PER_NS, source] * numbers[PATIENCE_NS] >= 1.0
        if is_empty and not tells:
            _forget(returned, integers, flags, numbers, starts, members, reader_starts, readers)
            return ASK
    stays = BEST
    for place in range(returned):
        first, left = numbers[RETURNED + 2 * place], numbers[RETURNED + 2 * place + 1]
        integers[PENDING, first] = 0
        # Of one that came alone although it could lead, it says nothing of it with all behind it.
        if flags[LEADING, first] or not flags[TOGETHER, first]:
            took_ns = (now_ns - integers[GIVEN_NS, first]) // returned
            before_ns = integers[SPAN_NS, first]
            integers[SPAN_NS, first] = (7 * before_ns + took_ns) // 8 if before_ns else took_ns
        _give_back(first, left, now_ns, integers, floats, flags, numbers)
        if flags[LEADING, first]:
            flags[LEADING, first] = 0
            for behind in range(starts[first], starts[first + 1]):
                left = integers[PENDING, members[behind]]
                integers[PENDING, members[behind]] = 0
                _give_back(members[behind], left, now_ns, integers, floats, flags, numbers)
        else:
            for reader in range(reader_starts[first], reader_starts[first + 1]):
                _let_in(readers[reader], now_ns, integers, floats, flags, numbers)
        # A source that has more stays with its worker if there are workers enough for the rest. Else a source
        # as dear as all behind it together would wait for workers that then wait for it.
        if numbers[SOURCES_STAY] and flags[SOURCE, first] and floats[PRIORITY, first] > 0.0:
            stays = first
    if most and now_ns >= numbers[NEXT_LOOK_NS]:
        _admit_sources(now_ns, integers, floats, flags, numbers)
    if most and numbers[PUT_OFF] and numbers[WAITING] == 0:
        _admit_put_off(now_ns, integers, floats, flags, numbers)
    given, span_ns = 0, 0
    while given < most:
        operator = stays if given == 0 and stays != BEST else best(floats[PRIORITY], integers[TICKET])
        if operator < 0:
            break
        # Several sources if they are short: to wake another worker, or to decide again, would cost as much.
        span_ns += integers[SPAN_NS, operator]
        is_short = flags[SOURCE, operator] and integers[SPAN_NS, operator] > 0 and span_ns <= _TOGETHER_NS
        if given > 0 and not is_short:
            break
        _pick(operator, given, now_ns, integers, floats, flags, numbers, starts, members)
        given += 1
        if not is_short:
            break
    return given


# The compiled function is kept on disk until this file changes. Where its places are is said in another one.
if exchange(0, -1, 0, 0) != LAYOUT:
    exchange.recompile()
