"""What a pattern matches, in plain Python over complete lists of events: two matchers, too simple to be
wrong.

``simulate`` follows every run through the events of one key as the design note says, with lists of tuples.
``enumerate_matches`` knows no runs at all: it tries every subset of the events with every word of the pattern
and keeps what the definition of a match allows. It covers the modes that the definition settles alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from penstock.query.aggregates import AGGREGATES, Aggregate
from penstock.query.expr import Expr, col
from penstock.query.patterns.bound import Bound, bound_in
from penstock.query.patterns.matching import with_fields
from penstock.query.patterns.modes import AfterMatch, Contiguity
from penstock.query.patterns.patterns import (
    Aperiodic,
    Conjunction,
    Disjunction,
    Event,
    Negation,
    Pattern,
    Periodic,
    Repetition,
)
from penstock.query.patterns.patterns import Sequence as Then
from penstock.query.steps import MatchSpec
from penstock.query.types import Schema
from tests.reference_aggregates import aggregate, wrapped
from tests.reference_expressions import evaluate

Row = dict[str, Any]
Bindings = tuple[tuple[str, int], ...]  # (event of the pattern, number of the event in the key)
Todo = tuple[Pattern, ...]
Place = tuple[int, int, int]  # time, order, sub

_SUBS = 1 << 20
_FOREVER = 7_000 * 365 * 86_400_000_000  # without a time within, the end of the input decides


@dataclass(frozen=True)
class Report:
    """A match: its bindings, the place of the row that tells of it, and when it starts and ends."""

    place: Place
    bound: Bindings
    start: int
    end: int


@dataclass(frozen=True)
class Option:
    """What can come next: an event of the pattern or, without a name, the end; what must not come before."""

    name: str | None
    without: frozenset[str]
    rest: Todo


def options(todo: Todo) -> list[Option]:
    """All that can come next, the preferred first."""
    if not todo:
        return [Option(None, frozenset(), ())]
    head, rest = todo[0], todo[1:]
    match head:
        case Event(name):
            return [Option(name, frozenset(), rest)]
        case Negation(event):
            return [replace(one, without=one.without | {event.name}) for one in options(rest)]
        case Then(parts):
            return options((*parts, *rest))
        case Disjunction(parts):
            return [one for part in parts for one in options((part, *rest))]
        case Conjunction(parts):
            if len(parts) == 1:
                return options((*parts, *rest))
            return [
                one
                for i in range(len(parts))
                for one in options((parts[i], Conjunction(parts[:i] + parts[i + 1 :]), *rest))
            ]
        case Repetition(body, least, most, greedy):
            again: list[Option] = []
            if most != 0:
                fewer = Repetition(body, max(least - 1, 0), None if most is None else most - 1, greedy)
                again = options((body, fewer, *rest))
            stop = options(rest) if least == 0 else []
            return again + stop if greedy else stop + again
    raise TypeError(head)


class Key:
    """The events of one key in order, and the conditions over them."""

    def __init__(self, spec: MatchSpec, schema: Schema, rows: Sequence[Row], places: Sequence[Place]) -> None:
        self.spec, self.schema, self.rows, self.places = spec, schema, rows, places
        pattern = spec.pattern
        self.period = pattern.every_us if isinstance(pattern, Periodic) else None
        meant = pattern.meaning() if isinstance(pattern, Aperiodic | Periodic) else pattern
        self.whole: Todo = (meant,)
        self._typed: dict[int, Any] = {}  # by the identity of expressions that the spec keeps alive
        self.conditions = {one.name: one.condition for one in meant.events()}

    def holds(self, name: str, index: int, bound: Bindings) -> bool:
        condition = self.conditions[name]
        return condition is None or self.value(condition, self.rows[index], bound) is True

    def value(self, expr: Expr, row: Row, bound: Bindings) -> Any:
        plain, schema = self._typed.setdefault(id(expr), None) or with_fields(expr, self.schema)
        self._typed[id(expr)] = (plain, schema)
        seen = {one.field_name: self.bound_value(one, bound) for one in bound_in(expr)}
        return evaluate(plain, {**row, **seen}, schema)

    def bound_value(self, one: Bound, bound: Bindings) -> Any:
        rows = [self.rows[index] for name, index in bound if one.event in (None, name)]
        if one.function == "count":
            return len(rows)
        assert one.column is not None
        values = [row[one.column] for row in rows]
        if one.function in ("first", "last"):
            return None if not values else values[0 if one.function == "first" else -1]
        if all(value is None for value in values):
            return None
        what = Aggregate(AGGREGATES[one.function](), (col(one.column),))
        return aggregate(what, values, what.result_type(self.schema).dtype)

    def output(self, report: Report) -> Iterator[tuple[Bindings, Row]]:
        """What is bound, and the output columns: once for a match or, for all rows, up to each event."""
        lengths = range(1, len(report.bound) + 1) if self.spec.all_rows else [len(report.bound)]
        for length in lengths:
            bound = report.bound[:length]
            own = self.rows[bound[-1][1]]
            yield bound, {name: self.value(expr, own, bound) for name, expr in self.spec.columns}

    def deadline(self, start: int) -> int:
        within = self.spec.within_us
        return self.places[start][0] + (_FOREVER if within is None else within)


@dataclass(frozen=True)
class Run:
    """One way to have begun: what is bound, what may follow, which negated events have come since."""

    bound: Bindings
    follow: tuple[Option, ...]
    seen: frozenset[str] = frozenset()
    done: bool = False


# -- run by run ------------------------------------------------------------------------------------


class ExplodesError(Exception):
    """There are more runs than it is worth to go through one by one."""


class Simulation:
    def __init__(self, key: Key, most: int | None = None) -> None:
        self.key, self.spec = key, key.spec
        self.left = most  # so many steps of single runs it may take; None: any number
        self.starts: list[tuple[int, list[Run]]] = []  # (number of the first event, its runs by preference)
        self.ticks: dict[int, int] = {}
        self.gone: set[int] = set()  # consumed events
        self.reports: list[Report] = []
        self.instant: Place = (0, 0, 0)
        self.by_event = True
        self.number = 0

    def run(self) -> list[Report]:
        for index, (time, _, _) in enumerate(self.key.places):
            self.expire(time)
            self.instant, self.by_event, self.number = self.key.places[index], True, 0
            if self.spec.within_events is not None:
                while self.starts and index - self.starts[0][0] >= self.spec.within_events:
                    self.finish(0, None)
            self.offer(index)
        self.expire(None)
        return sorted(self.reports, key=lambda report: report.place)

    def expire(self, before: int | None) -> None:
        """Settles the starts whose deadlines are before a time; None is the end of all time."""
        while True:
            due = [(self.due(start), number) for number, (start, _) in enumerate(self.starts)]
            passed = [one for one in due if before is None or one[0] < before]
            if not passed:
                return
            at, number = min(passed)
            start = self.starts[number][0]
            _, order, sub = self.key.places[start]
            self.instant, self.by_event, self.number = (at, order, sub), False, 0
            if self.key.period is None:
                self.finish(number, at)
                continue
            for run in self.starts[number][1]:
                self.report(run.bound, at, number=self.ticks.get(start, 1))
            self.ticks[start] = self.ticks.get(start, 1) + 1
            if self.due(start) > self.key.deadline(start):
                self.starts.pop(number)

    def due(self, start: int) -> int:
        if self.key.period is not None:
            return self.key.places[start][0] + self.ticks.get(start, 1) * self.key.period
        return self.key.deadline(start)

    def finish(self, number: int, at: int | None) -> None:
        """A start is over: what is complete now is a match."""
        start, runs = self.starts[number]
        complete = []
        for run in self.alive(runs):
            if run.done:
                complete.append((run.bound, None))
            elif any(one.name is None and not one.without & run.seen for one in run.follow):
                ended = at is not None and self.spec.within_us is None  # it is the input that has ended
                complete.append((run.bound, None if ended else self.instant[0]))
        self.decide(number, complete)
        if self.spec.after is not AfterMatch.PAST_LAST:
            self.starts.pop(number)
        else:
            if not complete:
                self.starts[number] = (start, [])
            self.settle()

    def decide(self, number: int, complete: list[tuple[Bindings, int | None]]) -> bool:
        """Matches of one start, in order, at this instant; whether the start is over with it."""
        if not complete:
            return False
        start = self.starts[number][0]
        if self.spec.after is AfterMatch.PAST_LAST:
            bound, end = complete[0]
            self.starts[number] = (start, [Run(bound, (), done=True)])
            self.ends[start] = end
            return False
        one_only = self.spec.contiguity is not Contiguity.ANY or self.spec.after is AfterMatch.TO_NEXT
        one_only = one_only or self.spec.consumed
        for bound, end in complete[:1] if one_only else complete:
            self.report(bound, end)
        return one_only

    ends: dict[int, int | None]

    def settle(self) -> None:
        """Skips past the last event of each match, start by start."""
        while self.starts:
            start, runs = self.starts[0]
            if runs and runs[0].done:
                self.report(runs[0].bound, self.ends.get(start))
                last = runs[0].bound[-1][1]
                self.starts = [one for one in self.starts if one[0] > last]
            elif not runs:
                self.starts.pop(0)
            else:
                return

    def report(self, bound: Bindings, end: int | None, number: int | None = None) -> None:
        time, order, sub = self.instant
        rows = len(bound) if self.spec.all_rows else 1
        count = self.number if number is None else number
        place = (time, order, wrapped(sub * _SUBS + 2 * count + (0 if self.by_event else 1)))
        self.number += rows
        first = self.key.places[bound[0][1]][0]
        self.reports.append(
            Report(place, bound, first, self.key.places[bound[-1][1]][0] if end is None else end)
        )
        if self.spec.consumed:
            self.gone |= {index for _, index in bound}

    def alive(self, runs: list[Run]) -> list[Run]:
        return [run for run in runs if not any(index in self.gone for _, index in run.bound)]

    def offer(self, index: int) -> None:
        for number, (start, runs) in enumerate(self.starts):
            if index in self.gone:
                break
            complete: list[tuple[Bindings, int | None]] = []
            kept = self.step(self.alive(runs), index, complete)
            self.starts[number] = (start, kept)
            if self.decide(number, complete):
                self.starts[number] = (start, [])
        if index not in self.gone:
            complete = []
            opened = self.step([Run((), tuple(options(self.key.whole)))], index, complete, opening=True)
            if opened or complete:
                self.starts.append((index, opened))
                if self.decide(len(self.starts) - 1, complete):
                    self.starts[-1] = (index, [])
        self.starts = [one for one in self.starts if one[1]]
        if self.spec.after is AfterMatch.PAST_LAST:
            self.settle()

    def step(
        self, runs: list[Run], index: int, complete: list[tuple[Bindings, int | None]], opening: bool = False
    ) -> list[Run]:
        """The runs of one start after an event, by preference; what is decided goes to ``complete``."""
        every = self.spec.contiguity is Contiguity.ANY
        made: list[Run] = []
        for run in runs:
            if run.done:
                made.append(run)
                break
            made += self.successors(run, index, complete, opening)
            if any(one.done for one in made):
                break
        if not every and made and made[0].done and self.spec.after is not AfterMatch.PAST_LAST:
            complete.append((made[0].bound, None))
            return []
        if not every and made and made[0].done:
            return made[:1]
        return made

    def successors(
        self, run: Run, index: int, complete: list[tuple[Bindings, int | None]], opening: bool
    ) -> list[Run]:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise ExplodesError
        mode = self.spec.contiguity
        holds = self.key.holds
        takes = [
            one.name is not None and not one.without & run.seen and holds(one.name, index, run.bound)
            for one in run.follow
        ]
        watched = {name for one in run.follow for name in one.without}
        seen = run.seen | {name for name in watched if holds(name, index, run.bound)}
        made: list[Run] = []
        passing: list[Option] = []  # those that pass over the event

        def pass_over() -> None:
            if not opening and any(not one.without & seen for one in passing):
                made.append(Run(run.bound, tuple(passing), seen))
            passing.clear()

        for one, taken in zip(run.follow, takes, strict=True):
            if taken:
                assert one.name is not None
                made += self.arrive((*run.bound, (one.name, index)), one.rest, complete)
                if any(found.done for found in made):
                    return made
            # Once something has taken the event, what is preferred to the end and what is not are apart.
            apart = one.name is None and any(takes) and mode is not Contiguity.ANY
            if apart:
                pass_over()
            if mode is Contiguity.ANY or one.name is None or (mode is Contiguity.NEXT and not taken):
                passing.append(one)
            if apart:
                pass_over()
        pass_over()
        return made

    def arrive(self, bound: Bindings, todo: Todo, complete: list[tuple[Bindings, int | None]]) -> list[Run]:
        follow = options(todo)
        ends = [i for i, one in enumerate(follow) if one.name is None and not one.without]
        if self.spec.contiguity is Contiguity.ANY:
            if ends:
                complete.append((bound, None))
            follow = [one for i, one in enumerate(follow) if i not in ends]
            return [Run(bound, tuple(follow))] if follow else []
        made = []
        if ends:
            follow = follow[: ends[0]]
        if follow:
            made.append(Run(bound, tuple(follow)))
        if ends:
            made.append(Run(bound, (), done=True))
        return made


def simulate(key: Key, most: int | None = None) -> list[Report]:
    """All matches of one key in the order of their rows; fails with ``ExplodesError`` after so many steps of
    single runs."""
    simulation = Simulation(key, most)
    simulation.ends = {}
    return simulation.run()


# -- subset by subset ------------------------------------------------------------------------------


def words(
    todo: Todo, length: int
) -> Iterator[tuple[tuple[str, ...], tuple[frozenset[str], ...], frozenset[str]]]:
    """The words of that length, the preferred first: names, what must not come before each, and after all."""
    for one in options(todo):
        if one.name is None:
            if length == 0:
                yield (), (), one.without
        elif length:
            for names, without, after in words(one.rest, length - 1):
                yield (one.name, *names), (one.without, *without), after


def candidates(key: Key, start: int) -> list[tuple[Bindings, bool]]:
    """All matches from a start, and whether a negation at their ends makes them wait for the deadline."""
    spec, found = key.spec, []
    inside = [
        index
        for index in range(start, len(key.rows))
        if (spec.within_us is None or key.places[index][0] <= key.places[start][0] + spec.within_us)
        and (spec.within_events is None or index - start < spec.within_events)
    ]
    for size in range(1, len(inside) + 1):
        for chosen in combinations(inside, size):
            if chosen[0] != start:
                continue
            for names, without, after in words(key.whole, size):
                bound = tuple(zip(names, chosen, strict=True))
                if is_match(key, bound, without, after, inside):
                    found.append((bound, bool(after)))
    return found


def is_match(
    key: Key,
    bound: Bindings,
    without: tuple[frozenset[str], ...],
    after: frozenset[str],
    inside: list[int],
) -> bool:
    for i, (name, index) in enumerate(bound):
        before = bound[:i]
        if not key.holds(name, index, before):
            return False
        if i == 0:
            continue
        between = range(bound[i - 1][1] + 1, index)
        if any(key.holds(no, one, before) for no in without[i] for one in between):
            return False
        if key.spec.contiguity is Contiguity.STRICT and len(between):
            return False
        if key.spec.contiguity is Contiguity.NEXT and any(key.holds(name, one, before) for one in between):
            return False
    last = bound[-1][1]
    return not any(key.holds(no, one, bound) for no in after for one in inside if one > last)


def preference(key: Key, bound: Bindings) -> list[tuple[int, int, int]]:
    """Sorts matches of one start: the preferred first, by the choice made at each letter, then at the end.

    What stands before the end in the pattern is preferred to it. Of the rest, what takes the earlier event is
    preferred, and of what takes the same event, what stands first.
    """
    todo, made = key.whole, []
    for name, index in (*bound, (None, 0)):
        listed = options(todo)
        rank = next(i for i, one in enumerate(listed) if one.name == name)
        made.append((side(listed, rank), index, rank))
        todo = listed[rank].rest
    return made


def side(listed: list[Option], rank: int) -> int:
    """Whether a choice is before an end, is one, or is behind one: numbers that rise."""
    ends = sum(one.name is None for one in listed[:rank])
    return 2 * ends + (listed[rank].name is None)


def decided(key: Key, bound: Bindings, waits: bool) -> tuple[Any, ...]:
    """Sorts matches of one start by when they are decided, then by their events, a longer one first."""
    events = [(index, rank) for _, index, rank in preference(key, bound)[:-1]]
    return waits, 0 if waits else bound[-1][1], [*events, (len(key.rows), 0)]


def enumerate_matches(key: Key) -> list[Bindings]:
    """The matches of one key by definition, unrestricted."""
    spec, found, after = key.spec, [], -1
    for start in range(len(key.rows)):
        found_here = candidates(key, start)
        possible = [bound for bound, _ in found_here]
        if spec.contiguity is not Contiguity.ANY:
            possible = sorted(possible, key=lambda bound: preference(key, bound))[:1]
        elif spec.after is not AfterMatch.NO_SKIP:
            possible = [bound for bound, _ in sorted(found_here, key=lambda one: decided(key, *one))[:1]]
        if spec.after is AfterMatch.PAST_LAST:
            if start <= after or not possible:
                continue
            after = possible[0][-1][1]
        found += possible
    return found
