"""The automaton of a pattern: places for events and, for each, what may follow, in the order of preference.

Repetitions are unrolled and conjunctions become paths through sets of parts, so that a run needs no counters:
it is at one position. The automaton is pure data; the machine that runs it is the same for all patterns.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from penstock.query.patterns.patterns import (
    Aperiodic,
    Conjunction,
    Disjunction,
    Event,
    Negation,
    Pattern,
    Periodic,
    Repetition,
    Sequence,
)

ACCEPT = -1  # as a target: the match is complete


def meaning(pattern: Pattern) -> Pattern:
    """The pattern in terms of sequence, conjunction, disjunction, negation and repetition."""
    return pattern.meaning() if isinstance(pattern, Aperiodic | Periodic) else pattern


@dataclass(frozen=True)
class Follow:
    """One continuation: a position or ``ACCEPT``, and the negated events that must not come before it."""

    target: int
    guard: int  # a bit per event


@dataclass(frozen=True)
class Automaton:
    """Positions 0 (nothing bound yet), 1, 2, ...; ``events`` are the pattern's events, negated ones too."""

    events: tuple[Event, ...]
    #: By position: which of ``events`` it binds; -1 for position 0 and where only a deadline is waited for.
    binds: tuple[int, ...]
    #: By position: what may follow, the preferred first; not what comes behind an unconditional ``ACCEPT``.
    follows: tuple[tuple[Follow, ...], ...]
    #: By position: whether the match may end here at once.
    accepts: tuple[bool, ...]
    #: By position: the position that waits for the same deadline and takes no event any more; -1 if none.
    waits: tuple[int, ...]

    def ambiguous(self) -> str | None:
        """The name of an event that could be bound in two ways at once, if there is one."""
        for follow in self.follows:
            bound = [self.binds[one.target] for one in follow if one.target != ACCEPT]
            twice = next((number for number in bound if bound.count(number) > 1), None)
            if twice is not None:
                return self.events[twice].name
        return None


def automaton(pattern: Pattern, *, cut: bool) -> Automaton:
    """The automaton of a checked pattern. With ``cut`` what is less preferred than ending is left out."""
    build = _Build(pattern)
    binds, follows, accepts = [-1], [build.follows(build.first)], [False]
    for number, behind in build.places:
        binds.append(number)
        follows.append(build.follows(behind))
    waits: list[int] = []
    for position in range(len(binds)):
        listed = follows[position]
        ends = next((i for i, one in enumerate(listed) if one == Follow(ACCEPT, 0)), None)
        if position:
            accepts.append(ends is not None)
        if ends is not None:
            kept = listed[:ends] if cut else [one for one in listed if one != Follow(ACCEPT, 0)]
            follows[position] = kept
        waits.append(-1)
    for position in range(len(binds)):
        ending = [one for one in follows[position] if one.target == ACCEPT]
        if ending:
            waits[position] = len(binds)
            binds.append(-1)
            follows.append(ending)
            accepts.append(False)
            waits.append(len(binds) - 1)
    return Automaton(build.events, tuple(binds), tuple(map(tuple, follows)), tuple(accepts), tuple(waits))


class _Build:
    """Turns a pattern into a graph of nodes, then lists what each place reaches without taking an event.

    A node is a place for an event, the end, or a list of edges (guard, next node), the preferred one first.
    """

    def __init__(self, pattern: Pattern) -> None:
        meant = meaning(pattern)
        self.events = tuple({event.name: event for event in meant.events()}.values())
        self._numbers = {event.name: number for number, event in enumerate(self.events)}
        self._edges: dict[int, list[tuple[int, int]]] = {}
        self._ids = count()
        self._place_of: dict[int, int] = {}  # node → place
        self.places: list[tuple[int, int]] = []  # (event, node behind it)
        self._end = self._node()
        self.first = self._before(meant, self._end)

    def follows(self, node: int) -> list[Follow]:
        """The positions that can come next, each once per guard, in the order of preference."""
        found: dict[Follow, None] = {}
        seen: set[tuple[int, int]] = set()
        stack = [(node, 0)]
        while stack:
            at, guard = stack.pop()
            if (at, guard) in seen:
                continue
            seen.add((at, guard))
            if at == self._end:
                found[Follow(ACCEPT, guard)] = None
            elif at in self._place_of:
                found[Follow(self._place_of[at], guard)] = None
            for added, after in reversed(self._edges.get(at, ())):
                stack.append((after, guard | added))
        return list(found)

    def _before(self, pattern: Pattern, after: int) -> int:
        """The node from which ``pattern`` and then ``after`` follow."""
        match pattern:
            case Event(name):
                node = self._node()
                self.places.append((self._numbers[name], after))
                self._place_of[node] = len(self.places)
                return node
            case Negation(event):
                return self._node((1 << self._numbers[event.name], after))
            case Sequence(parts):
                for part in reversed(parts):
                    after = self._before(part, after)
                return after
            case Disjunction(parts):
                return self._node(*((0, self._before(part, after)) for part in parts))
            case Conjunction(parts):
                return self._any_order(parts, after)
            case Repetition():
                return self._repeated(pattern, after)
        raise TypeError(f"not a pattern: {pattern!r}")

    def _repeated(self, pattern: Repetition, after: int) -> int:
        if pattern.most is None:
            loop = self._node()
            again = self._before(pattern.body, loop)
            self._edges[loop] = _ordered(again, after, pattern.greedy)
            if pattern.least:  # the unrolled copies come before it; the loop's own body counts as one
                after = again
                remaining = pattern.least - 1
            else:
                return loop
        else:
            behind = after  # where every optional copy can stop
            for _ in range(pattern.most - pattern.least):
                once = self._before(pattern.body, after)
                after = self._node(*_ordered(once, behind, pattern.greedy))
            remaining = pattern.least
        for _ in range(remaining):
            after = self._before(pattern.body, after)
        return after

    def _any_order(self, parts: tuple[Pattern, ...], after: int) -> int:
        """A path through the sets of parts that are done: parts · 2^(parts − 1) copies instead of parts!."""
        everything = (1 << len(parts)) - 1
        nodes = {everything: after}
        for done in reversed(range(everything)):
            nodes[done] = self._node(
                *(
                    (0, self._before(part, nodes[done | 1 << number]))
                    for number, part in enumerate(parts)
                    if not done >> number & 1
                )
            )
        return nodes[0]

    def _node(self, *edges: tuple[int, int]) -> int:
        node = next(self._ids)
        self._edges[node] = list(edges)
        return node


def _ordered(again: int, behind: int, greedy: bool) -> list[tuple[int, int]]:
    return [(0, again), (0, behind)] if greedy else [(0, behind), (0, again)]
