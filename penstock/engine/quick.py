"""The usual exchange, compiled: a worker gives back what it has run, and takes what is next.

In Python this would be dozens of small steps, each cheap, but after a turn their code and data are no longer
in the caches, so that all of them together take several times as long. Whatever is not usual is left to
Python, which does the same step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from penstock.engine.board import (
    COST_NS,
    DEADLINE_NS,
    GIVEN,
    IDLE_NS,
    LEAST,
    LIMIT,
    MOST_TURNS,
    OTHER_WORKERS,
    POTENTIAL,
    RETURNED,
    SOURCES_STAY,
    THRESHOLD,
    Board,
)
from penstock.engine.passes import Passes
from penstock.engine.quick_steps import ASK, exchange
from penstock.engine.vertex import Vertex
from penstock.scheduling.policy import Plan, Rule

_FEW = 8  # readers that are looked at one by one


class Quick:
    """Exchanges on the board. Not thread-safe: called within the scheduler's lock."""

    def __init__(
        self,
        vertices: list[Vertex],
        board: Board,
        passes: Passes,
        turn_limit: int,
        workers: int,
    ) -> None:
        self._vertices, self._board, self._passes = vertices, board, passes
        self._behind = passes.turns(turn_limit)
        self._number, self._pending, self._address = board.number, board.pending, board.address
        self._leading = passes.leading
        self._holds = False
        starts = np.zeros(len(vertices) + 1, np.int64)
        np.cumsum([len(vertex.readers) for vertex in vertices], out=starts[1:])
        readers = np.array([r.index for vertex in vertices for r in vertex.readers], np.int64)
        board.link((passes.starts, passes.members), (starts, readers))
        board.number[OTHER_WORKERS] = workers - 1
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

    def exchange(
        self, vertices: Sequence[Vertex], stopped: AbstractSet[Vertex], now_ns: int
    ) -> list[tuple[Vertex, int]] | None:
        """Gives back what a worker has run and takes the next turns, with one call; None, and nothing done,
        if that is not enough.

        ``stopped``: those whose turns something ended before they had taken all there was.
        """
        if not self._holds:
            return None
        returned = self._note(vertices, stopped) if vertices else 0
        given = exchange(self._address, returned, MOST_TURNS, now_ns) if returned >= 0 else ASK
        if given == ASK:
            return None
        number, turns = self._number, []
        for place in range(GIVEN, GIVEN + 3 * given, 3):
            operator = number[place]
            turns.append((self._vertices[operator], number[place + 1]))
            if number[place + 2]:
                turns += self._behind[operator]
        return turns

    def give_back(self, vertices: Sequence[Vertex], stopped: AbstractSet[Vertex], now_ns: int) -> bool:
        """The first half of it; False, and nothing done, if that is not enough."""
        returned = self._note(vertices, stopped) if self._holds else -1
        return returned >= 0 and exchange(self._address, returned, 0, now_ns) != ASK

    def _note(self, vertices: Sequence[Vertex], stopped: AbstractSet[Vertex]) -> int:
        """Writes down who comes back with what; how many passes they are, −1 if that is not usual."""
        for vertex in stopped:
            if vertex.finished:
                return -1
        number, pending, lengths = self._number, self._pending, self._passes.lengths
        returned = place = 0
        alone = []
        while place < len(vertices):
            leader = vertices[place]
            index, source = leader.index, leader.source
            if returned == MOST_TURNS:
                return -1
            number[RETURNED + 2 * returned] = index
            left = leader.waiting() if source is None else source.has_more
            number[RETURNED + 2 * returned + 1] = left
            returned += 1
            if self._leading[index]:
                place += lengths[index]
                continue
            place += 1
            if len(leader.readers) > _FEW:
                return -1
            alone.append(leader)
        for leader in alone:
            for reader in leader.readers:
                pending[reader.index] = reader.waiting()
        for vertex in stopped:
            pending[vertex.index] = vertex.waiting()
        return returned
