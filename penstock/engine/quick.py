"""The usual exchange, compiled: a worker gives back a pass that nothing has stopped, and takes what is next.

In Python this would be dozens of small steps, each cheap, but after a turn their code and data are no longer
in the caches, so that all of them together take 60 µs where this takes 10. Whatever is not usual is left to
Python, which does the same step by step.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from penstock.engine.board import (
    BLOCKED,
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
    Board,
    view,
)
from penstock.engine.passes import Passes
from penstock.engine.vertex import Vertex
from penstock.scheduling.policy import Floats, Integers, Plan, Rule
from penstock.scheduling.queue import best

_ASK = -2  # somebody has to be asked
_BEST = -1  # whoever comes first
_FEW = 8  # readers that are looked at one by one
_MOST = 4  # the most operators, each with those behind it, that a worker takes at once
_PLENTY = 2  # so many for every worker must be left if one takes more than one


class Quick:
    """Exchanges on the board. Not thread-safe: called within the scheduler's lock."""

    def __init__(
        self,
        vertices: list[Vertex],
        board: Board,
        passes: Passes,
        turn_limit: int,
        workers: int,
        epoch_ns: int,
    ) -> None:
        self._vertices, self._board, self._passes = vertices, board, passes
        self._behind = passes.turns(turn_limit)
        self._pending = view(board.integers[PENDING])
        self._holds = False
        starts = np.zeros(len(vertices) + 1, np.int64)
        np.cumsum([len(vertex.readers) for vertex in vertices], out=starts[1:])
        readers = np.array([r.index for vertex in vertices for r in vertex.readers], np.int64)
        rows = (board.integers, board.floats, board.flags, board.numbers)
        self._arrays = (*rows, passes.starts, passes.members)
        self._reading = (*rows, starts, readers)
        self._both = (*self._arrays, starts, readers)
        board.number[OTHER_WORKERS] = workers - 1
        board.number[EPOCH_NS] = epoch_ns
        board.number[SOURCES_STAY] = sum(vertex.source is not None for vertex in vertices) < workers

    def plan(self, plan: Plan, rule: Rule | None) -> None:
        """From now on this plan holds, and this is how its priorities change until the next; None: nobody
        knows."""
        self._holds = rule is not None
        if rule is None:
            return
        board = self._board
        board.floats[POTENTIAL] = plan.potential
        board.floats[IDLE_NS] = rule.idle_ns
        board.floats[COST_NS] = rule.cost_ns
        board.integers[LIMIT] = plan.limit
        board.number[THRESHOLD] = rule.least_events
        board.number[DEADLINE_NS] = plan.deadline_ns
        board.integers[LEAST] = rule.least_turn

    def exchange(self, vertices: list[Vertex], now_ns: int) -> list[tuple[Vertex, int]] | None:
        """Gives back one operator or pass that nothing has stopped, except that its first may have left
        something, and takes the next turns, at the cost of one call; None, and nothing done, if that is not
        enough."""
        leader = vertices[0]
        readers = leader.readers
        if not self._holds or len(vertices) != self._passes.length(leader) or len(readers) > _FEW:
            return None
        self._note_rest(leader)
        if len(vertices) == 1:
            for reader in readers:
                self._pending[reader.index] = reader.waiting()
        operator = _exchange(leader.index, now_ns, *self._both)
        if operator < 0:
            return None if operator == _ASK else []
        return self._with_behind(operator, now_ns)

    def give_back(self, vertices: list[Vertex], now_ns: int) -> list[Vertex]:
        """Gives back operators that nothing has stopped; those for which that takes more than a note on the
        board are left."""
        if not self._holds:
            return vertices
        rest: list[Vertex] = []
        place = 0
        while place < len(vertices):
            leader = vertices[place]
            first = leader.index
            length = self._passes.length(leader)
            self._note_rest(leader)
            if length > 1:
                is_noted = _give_back(first, now_ns, *self._arrays)
            else:
                is_noted = self._give_one_back(leader, now_ns)
            if not is_noted:
                rest += vertices[place : place + length]
            place += length
        return rest

    def _note_rest(self, leader: Vertex) -> None:
        """Writes down what its turn has left."""
        if leader.source is not None:
            self._board.number[HAS_MORE] = leader.source.has_more
        else:
            self._pending[leader.index] = leader.waiting()

    def _give_one_back(self, vertex: Vertex, now_ns: int) -> bool:
        readers = vertex.readers
        if len(readers) > _FEW:
            return False
        for reader in readers:
            self._pending[reader.index] = reader.waiting()
        if not _give_back(vertex.index, now_ns, *self._arrays):
            return False
        if readers:
            _let_in(vertex.index, now_ns, *self._reading)
        return True

    def pick(self, now_ns: int, given_back: list[Vertex]) -> list[tuple[Vertex, int]] | None:
        """The next turns after these; None if nobody knows how priorities change within the epoch.

        The longer the queue, the more at once, up to a few: the second decision costs a fifth of the first.
        """
        if not self._holds:
            return None
        wanted = _BEST
        if self._board.number[SOURCES_STAY] and len(given_back) == 1:
            (last,) = given_back
            if last.source is not None and self._board.priority[last.index] > 0.0:
                wanted = last.index
        operator = _pick(now_ns, wanted, *self._arrays)
        return [] if operator < 0 else self._with_behind(operator, now_ns)

    def _with_behind(self, operator: int, now_ns: int) -> list[tuple[Vertex, int]]:
        """The turns of this one, of those behind it if it leads, and of more while there is plenty."""
        number = self._board.number
        turns = [(self._vertices[operator], number[TURN_LIMIT])]
        if number[WITH_OTHERS]:
            turns += self._behind[operator]
        if number[WAITING] < _PLENTY * (1 + number[OTHER_WORKERS]):
            return turns
        for _ in range(_MOST - 1):
            operator = _pick(now_ns, _BEST, *self._arrays)
            if operator < 0:
                break
            turns.append((self._vertices[operator], number[TURN_LIMIT]))
            if number[WITH_OTHERS]:
                turns += self._behind[operator]
            if number[WAITING] < _PLENTY * (1 + number[OTHER_WORKERS]):
                break
        return turns


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
    stays = numbers[SOURCES_STAY] and flags[SOURCE, operator]
    if numbers[WAITING] < (numbers[OTHER_WORKERS] if stays else numbers[SLEEPING]):
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
def _give_back(
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
def _let_in(
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
def _pick(
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
    operator = best(floats[PRIORITY], integers[TICKET]) if wanted == _BEST else wanted
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
def _exchange(
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
    if not _give_back(first, now_ns, integers, floats, flags, numbers, starts, members):
        return _ASK
    if not is_pass:
        _let_in(first, now_ns, integers, floats, flags, numbers, reader_starts, readers)
    stays = numbers[SOURCES_STAY] and flags[SOURCE, first] and floats[PRIORITY, first] > 0.0
    return _pick(now_ns, first if stays else _BEST, integers, floats, flags, numbers, starts, members)
