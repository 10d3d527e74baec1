"""The usual exchange, compiled: a worker gives back a pass that nothing has stopped, and takes what is next.

In Python this would be dozens of small steps, each cheap, but after a turn their code and data are no longer
in the caches, so that all of them together take 60 µs where this takes 10. Whatever is not usual is left to
Python, which does the same step by step.
"""

from __future__ import annotations

import numpy as np

from penstock.engine.board import (
    COST_NS,
    DEADLINE_NS,
    EPOCH_NS,
    HAS_MORE,
    IDLE_NS,
    LEAST,
    LIMIT,
    OTHER_WORKERS,
    PENDING,
    POTENTIAL,
    SOURCES_STAY,
    THRESHOLD,
    TURN_LIMIT,
    WAITING,
    WITH_OTHERS,
    Board,
    view,
)
from penstock.engine.passes import Passes
from penstock.engine.quick_steps import ASK, BEST, exchange, give_back, let_in, pick
from penstock.engine.vertex import Vertex
from penstock.scheduling.policy import Plan, Rule

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
        operator = exchange(leader.index, now_ns, *self._both)
        if operator < 0:
            return None if operator == ASK else []
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
                is_noted = give_back(first, now_ns, *self._arrays)
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
        if not give_back(vertex.index, now_ns, *self._arrays):
            return False
        if readers:
            let_in(vertex.index, now_ns, *self._reading)
        return True

    def pick(self, now_ns: int, given_back: list[Vertex]) -> list[tuple[Vertex, int]] | None:
        """The next turns after these; None if nobody knows how priorities change within the epoch.

        The longer the queue, the more at once, up to a few: the second decision costs a fifth of the first.
        """
        if not self._holds:
            return None
        wanted = BEST
        if self._board.number[SOURCES_STAY] and len(given_back) == 1:
            (last,) = given_back
            if last.source is not None and self._board.priority[last.index] > 0.0:
                wanted = last.index
        operator = pick(now_ns, wanted, *self._arrays)
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
            operator = pick(now_ns, BEST, *self._arrays)
            if operator < 0:
                break
            turns.append((self._vertices[operator], number[TURN_LIMIT]))
            if number[WITH_OTHERS]:
                turns += self._behind[operator]
            if number[WAITING] < _PLENTY * (1 + number[OTHER_WORKERS]):
                break
        return turns
