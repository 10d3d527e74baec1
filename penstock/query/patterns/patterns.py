"""Patterns: what a user writes to say which events, in which order, make a situation.

``a >> b`` is b after a, ``a & b`` both in any order, ``a | b`` either, ``~a`` none of it. Patterns are
values: they describe and match nothing. What each means exactly: ``docs/design/2026-11-16-patterns.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, NoReturn

from penstock.query.durations import Duration, duration_text, duration_us
from penstock.query.errors import QueryError
from penstock.query.expr import Expr, as_expr
from penstock.query.patterns.bound import Events

_MOST_PARTS = 6  # of a conjunction: its positions double with each


class Pattern:
    """A description of events in order. Made with ``event`` and Python's operators.

    >>> low, high = event("low"), event("high")
    >>> low.one_or_more() >> ~event("reset") >> high.optional()
    low+ >> ~reset >> high?
    """

    __slots__ = ()

    def __rshift__(self, other: Pattern) -> Pattern:
        return Sequence((*_parts(self, Sequence), *_parts(_pattern(other), Sequence)))

    def __and__(self, other: Pattern) -> Pattern:
        parts = (*_parts(self, Conjunction), *_parts(_pattern(other), Conjunction))
        if len(parts) > _MOST_PARTS:
            raise QueryError(
                f"a conjunction has at most {_MOST_PARTS} parts",
                detail=f"got {len(parts)}",
                hint="its orders double with every part: use a repetition of (a | b | ...) instead",
            )
        return Conjunction(parts)

    def __or__(self, other: Pattern) -> Pattern:
        return Disjunction((*_parts(self, Disjunction), *_parts(_pattern(other), Disjunction)))

    def said(self) -> tuple[Any, ...]:
        """What it means to a checkpoint: its class and its fields, as plain values."""
        parts = (_said(getattr(self, one.name)) for one in fields(self))  # type: ignore[arg-type]
        return (type(self).__name__, *parts)

    def __invert__(self) -> Pattern:
        raise QueryError(
            "only a single event can be negated",
            detail=f"got {self!r}",
            hint="write ~event('a', condition), with the conditions joined by | or &",
        )

    def __bool__(self) -> NoReturn:
        raise QueryError(
            "a pattern has no truth value",
            detail=f"got {self!r}",
            hint="write >> for then, & for and, | for or, ~ for not",
        )

    def one_or_more(self) -> Repetition:
        """At least once, as often as possible."""
        return self.times(1, None)

    def zero_or_more(self) -> Repetition:
        """Any number of times, as often as possible."""
        return self.times(0, None)

    def optional(self) -> Repetition:
        """Once or not at all, once if possible."""
        return self.times(0, 1)

    def at_least(self, least: int) -> Repetition:
        """That often or more."""
        return self.times(least, None)

    def times(self, least: Any, most: Any = -1) -> Repetition:
        """Exactly ``least`` times, or from ``least`` to ``most`` times; ``most=None`` sets no limit."""
        limit = least if most == -1 else most
        whole = isinstance(least, int) and not isinstance(least, bool) and least >= 0
        if not whole or not (limit is None or (isinstance(limit, int) and limit >= max(least, 1))):
            raise QueryError(
                "a repetition needs whole numbers, the smaller first",
                detail=f"got times({least!r}, {most!r})",
                hint="write e.g. times(3), times(2, 5) or at_least(2)",
            )
        if isinstance(self, Negation):
            raise QueryError("a negation cannot be repeated", detail=f"got {self!r}", hint="leave it out")
        return Repetition(self, least, limit)

    def children(self) -> tuple[Pattern, ...]:
        """The patterns directly below this one."""
        return ()

    def events(self) -> Iterator[Event]:
        """All its events, the negated ones too, in the order in which they are written."""
        for child in self.children():
            yield from child.events()


@dataclass(frozen=True, eq=False, repr=False)
class Event(Pattern, Events):
    """One event for which a condition holds."""

    name: str
    condition: Expr | None = None

    def __invert__(self) -> Pattern:
        return Negation(self)

    def events(self) -> Iterator[Event]:
        yield self

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False, repr=False)
class Sequence(Pattern):
    """The parts one after the other."""

    parts: tuple[Pattern, ...]

    def children(self) -> tuple[Pattern, ...]:
        return self.parts

    def __repr__(self) -> str:
        return " >> ".join(_inside(part, Conjunction, Disjunction) for part in self.parts)


@dataclass(frozen=True, eq=False, repr=False)
class Conjunction(Pattern):
    """All parts, in any order, each whole before the next begins."""

    parts: tuple[Pattern, ...]

    def children(self) -> tuple[Pattern, ...]:
        return self.parts

    def __repr__(self) -> str:
        return " & ".join(_inside(part, Disjunction) for part in self.parts)


@dataclass(frozen=True, eq=False, repr=False)
class Disjunction(Pattern):
    """One of the parts; where several fit, the one written first is preferred."""

    parts: tuple[Pattern, ...]

    def children(self) -> tuple[Pattern, ...]:
        return self.parts

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.parts))


@dataclass(frozen=True, eq=False, repr=False)
class Negation(Pattern):
    """No such event where it stands: between its neighbours, or from the last event to the deadline."""

    event: Event

    def children(self) -> tuple[Pattern, ...]:
        return (self.event,)

    def __invert__(self) -> Pattern:
        return self.event

    def __repr__(self) -> str:
        return f"~{self.event!r}"


@dataclass(frozen=True, eq=False, repr=False)
class Repetition(Pattern):
    """The body again and again, as often as possible or, if reluctant, as seldom as will do."""

    body: Pattern
    least: int
    most: int | None
    greedy: bool = True

    def reluctant(self) -> Repetition:
        """As seldom as will do."""
        return replace(self, greedy=False)

    def children(self) -> tuple[Pattern, ...]:
        return (self.body,)

    def __repr__(self) -> str:
        marks = {(0, 1): "?", (0, None): "*", (1, None): "+"}
        most = "" if self.most is None else self.most
        counts = f"{{{self.least}}}" if self.least == self.most else f"{{{self.least},{most}}}"
        mark = marks.get((self.least, self.most), counts) + ("" if self.greedy else "?")
        return _inside(self.body, Sequence, Conjunction, Disjunction, Repetition) + mark


@dataclass(frozen=True, eq=False, repr=False)
class Aperiodic(Pattern):
    """Snoop's A: every ``each`` between a ``start`` and the next ``until``; only as a whole pattern."""

    start: Pattern
    each: Pattern
    until: Event
    cumulative: bool = False

    def children(self) -> tuple[Pattern, ...]:
        return (self.start, self.each, self.until)

    def meaning(self) -> Pattern:
        """The same with the other operators."""
        if self.cumulative:  # reluctant, so that an event that fits both ends it
            since = self.start >> self.each.zero_or_more().reluctant()
            if isinstance(self.each, Event):  # none is passed over, whatever the end asks of them
                since = since >> ~self.each
            return since >> self.until
        return self.start >> ~self.until >> self.each

    def __repr__(self) -> str:
        star = ", cumulative" if self.cumulative else ""
        return f"aperiodic({self.start!r}, {self.each!r}, until {self.until!r}{star})"


@dataclass(frozen=True, eq=False, repr=False)
class Periodic(Pattern):
    """Snoop's P: again and again after a ``start``, while no ``until`` has come; only as a whole pattern."""

    start: Event
    every_us: int
    until: Event

    def children(self) -> tuple[Pattern, ...]:
        return (self.start, self.until)

    def meaning(self) -> Pattern:
        """What holds at every report."""
        return self.start >> ~self.until

    def __repr__(self) -> str:
        return f"periodic({self.start!r}, every {duration_text(self.every_us)}, until {self.until!r})"


def event(name: Any, condition: Expr | bool | None = None) -> Event:
    """One event of a pattern, with a name and what must be true of it; without a condition any event fits.

    Its columns are read with ``[]`` in conditions of later events and in the output.

    >>> small = event("small", col("amount") < 10)
    >>> event("large", col("amount") > 100 * small["amount"]).condition
    (amount > (100 * small.amount))
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise QueryError(
            "an event of a pattern needs a name",
            detail=f"got {name!r}",
            hint="a name is letters, digits and _: event('login', col('kind') == 'login')",
        )
    if isinstance(condition, str | Pattern):
        raise QueryError(
            "a condition must be an expression",
            detail=f"event '{name}' got {condition!r}",
            hint="write e.g. col('speed') > 30",
        )
    return Event(name, None if condition is None else as_expr(condition))


def aperiodic(start: Pattern, each: Pattern, *, until: Event, cumulative: bool = False) -> Aperiodic:
    """Every ``each`` after a ``start`` with no ``until`` between; with ``cumulative`` one match at ``until``.

    >>> aperiodic(event("open"), event("reading"), until=event("close"))
    aperiodic(open, reading, until close)
    """
    for part in (start, each, until):
        _pattern(part)
    return Aperiodic(start, each, _single(until, "until"), bool(cumulative))


def periodic(start: Event, *, every: Duration, until: Event) -> Periodic:
    """A match every ``every`` after a ``start``, as long as ``within`` lasts and no ``until`` has come.

    >>> periodic(event("open"), every="10s", until=event("close"))
    periodic(open, every 10s, until close)
    """
    every_us = duration_us(every, "every")
    if every_us <= 0:
        raise QueryError("every must be positive", detail=f"got '{every}'", hint="write e.g. '10s'")
    return Periodic(_single(start, "start"), every_us, _single(until, "until"))


def _single(value: Any, what: str) -> Event:
    if not isinstance(value, Event):
        raise QueryError(f"'{what}' must be a single event", detail=f"got {value!r}", hint="write event('a')")
    return value


def _pattern(value: Any) -> Pattern:
    if not isinstance(value, Pattern):
        raise QueryError(
            "not a pattern", detail=f"got {value!r}", hint="write e.g. event('a', col('speed') > 30)"
        )
    return value


def _said(value: Any) -> Any:
    if isinstance(value, Pattern):
        return value.said()
    if isinstance(value, Expr):
        return value.key()
    return tuple(map(_said, value)) if isinstance(value, tuple) else value


def _parts(pattern: Pattern, kind: type) -> tuple[Pattern, ...]:
    return pattern.children() if isinstance(pattern, kind) else (pattern,)


def _inside(pattern: Pattern, *looser: type) -> str:
    return f"({pattern!r})" if isinstance(pattern, looser) else repr(pattern)
