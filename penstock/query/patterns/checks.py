"""What a pattern must be so that it can be matched: checked while the query is written."""

from __future__ import annotations

from collections.abc import Callable

from penstock.query.errors import QueryError
from penstock.query.patterns.automaton import automaton, meaning
from penstock.query.patterns.modes import Contiguity
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

MOST_EVENTS = 62  # names: one bit of a word each
MOST_POSITIONS = 1_000  # after repetitions are unrolled


def check_pattern(
    pattern: Pattern, mode: Contiguity, within_us: int | None, within_events: int | None
) -> None:
    """Refuses what can match nothing, everything, or never be decided."""
    _check_names(pattern)
    meant = meaning(pattern)
    _check_parts(meant)
    if not matches_something(meant):
        raise QueryError(
            "a pattern must bind at least one event",
            detail=f"got {pattern!r}",
            hint="leave one event neither optional nor negated",
        )
    if starts_with_negation(meant):
        raise QueryError(
            "a pattern cannot begin with a negation",
            detail=f"got {pattern!r}",
            hint="say since when: event('a') >> ~event('b') >> ...",
        )
    if positions(meant) > MOST_POSITIONS:
        raise QueryError(
            f"a pattern has at most {MOST_POSITIONS} places for events",
            detail=f"{pattern!r} unrolls to {positions(meant)}",
            hint="repeat less often, or use one_or_more() with a condition on count()",
        )
    bounded = within_us is not None or within_events is not None
    if not bounded and mode is not Contiguity.STRICT:
        raise QueryError(
            "the pattern needs within",
            detail=f"{pattern!r} would remember every start for ever",
            hint="write within='10m' or within_events=100, or contiguity='strict'",
        )
    if not bounded and ends_with_negation(meant):
        raise QueryError(
            "a negation at the end needs within",
            detail=f"{pattern!r} does not say until when",
            hint="write within='10m' or within_events=100",
        )
    twice = automaton(pattern, cut=False).ambiguous()
    if twice is not None:
        raise QueryError(
            f"event '{twice}' could be bound in two ways at once",
            detail=f"got {pattern!r}: it is not clear which repetition it belongs to",
            hint="count once only, or put another event between",
        )


def bound_names(pattern: Pattern, surely: bool = False) -> dict[str, Event]:
    """The events that a match can have, or ``surely`` has, in the order in which they are written."""
    return {event.name: event for event in _bound(meaning(pattern), surely)}


def _bound(pattern: Pattern, surely: bool) -> list[Event]:
    match pattern:
        case Event():
            return [pattern]
        case Negation():
            return []
        case Repetition(_, least):
            return _bound(pattern.body, surely) if least or not surely else []
        case Disjunction(parts) if surely:
            common = set.intersection(*({one.name for one in _bound(part, True)} for part in parts))
            return [one for part in parts for one in _bound(part, True) if one.name in common]
    return [one for child in pattern.children() for one in _bound(child, surely)]


def explodes(pattern: Pattern, mode: Contiguity) -> bool:
    """Whether the number of matches can grow exponentially with that of events."""
    return mode is Contiguity.ANY and _any(
        meaning(pattern), lambda one: isinstance(one, Repetition) and one.most is None
    )


def positions(pattern: Pattern) -> int:
    """Places for events after unrolling."""
    below = [positions(child) for child in pattern.children()]
    match pattern:
        case Event():
            return 1
        case Negation():
            return 0
        case Repetition(_, least, most):
            return below[0] * (max(least, 1) if most is None else most)
        case Conjunction():
            return sum(below) << (len(below) - 1)
    return sum(below)


def matches_something(pattern: Pattern) -> bool:
    """Whether every word of it has a letter."""
    match pattern:
        case Event():
            return True
        case Negation():
            return False
        case Repetition(body, least):
            return least > 0 and matches_something(body)
        case Disjunction(parts):
            return all(map(matches_something, parts))
    return any(map(matches_something, pattern.children()))


def starts_with_negation(pattern: Pattern) -> bool:
    """Whether a negation can stand before the first event."""
    return _touches_negation(pattern, first=True)


def ends_with_negation(pattern: Pattern) -> bool:
    """Whether a negation can stand behind the last event."""
    return _touches_negation(pattern, first=False)


def _touches_negation(pattern: Pattern, first: bool) -> bool:
    if isinstance(pattern, Negation):
        return True
    if isinstance(pattern, Sequence):
        for part in pattern.parts if first else reversed(pattern.parts):
            if _touches_negation(part, first):
                return True
            if matches_something(part):
                return False
        return False
    return any(_touches_negation(child, first) for child in pattern.children())


def _check_names(pattern: Pattern) -> None:
    seen: set[str] = set()
    for one in pattern.events():
        if one.name in seen:
            raise QueryError(
                f"event '{one.name}' stands twice in the pattern",
                detail=f"got {pattern!r}",
                hint="give each its own name, or write times(2)",
            )
        seen.add(one.name)
    if len(seen) > MOST_EVENTS:
        raise QueryError(
            f"a pattern has at most {MOST_EVENTS} events",
            detail=f"got {len(seen)}",
            hint="match in two steps",
        )


def _check_parts(pattern: Pattern) -> None:
    for child in pattern.children():
        if isinstance(child, Aperiodic | Periodic):
            raise QueryError(
                "aperiodic and periodic are whole patterns",
                detail=f"got {child!r} inside of {pattern!r}",
                hint="match it on its own, and match on what that gives",
            )
        if isinstance(pattern, Conjunction | Disjunction) and not matches_something(child):
            raise QueryError(
                "each part of & and | must bind an event",
                detail=f"got {child!r} in {pattern!r}",
                hint="put the negation into a sequence, and the optional() around the whole",
            )
        if isinstance(pattern, Repetition) and not matches_something(child):
            raise QueryError(
                "what is repeated must bind an event",
                detail=f"got {pattern!r}",
                hint="repeat the event itself: a.zero_or_more()",
            )
        if not isinstance(pattern, Negation):
            _check_parts(child)


def _any(pattern: Pattern, holds: Callable[[Pattern], bool]) -> bool:
    return holds(pattern) or any(_any(child, holds) for child in pattern.children())
