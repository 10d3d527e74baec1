"""The matches of a pattern per key."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.durations import duration_text
from penstock.query.patterns.by_start import GIVEN
from penstock.query.patterns.degree import Degree
from penstock.query.patterns.modes import AfterMatch, Contiguity, coupling
from penstock.query.patterns.patterns import Pattern
from penstock.query.steps.meanings import keys_of
from penstock.query.steps.spec import PLACE, TIMED, Keyed, Means, NamedExprs, Names, Order, declared
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class MatchSpec(Keyed):
    """Reports the matches of a pattern per key; events come in (event time, source, offset) order.

    ``columns`` are computed from the events that a match has bound; with ``all_rows`` there is a row per
    bound event, as of that event.
    """

    name = "match"
    order = Order.MULTIPLIED
    names_columns = True

    pattern: Pattern
    within_us: int | None
    within_events: int | None
    contiguity: Contiguity
    after: AfterMatch
    consumed: bool  # events of a reported match are in no other
    columns: NamedExprs
    all_rows: bool
    max_runs: int  # per key; by start, per first event
    degree: Degree | None = None  # by start: how many instances share the first events
    by_start: bool = False  # it is one of the three steps that such a match becomes: keys are instances

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        given = GIVEN.names if self.by_start else ()
        computed = (expr.columns() for name, expr in self.columns if name in wanted)
        return TIMED.union(PLACE, self.keys, self.asked(), given, *computed)

    def asked(self) -> Names:
        """The columns that the conditions of the pattern read."""
        events = self.pattern.events()
        return set().union(*(one.condition.columns() for one in events if one.condition is not None))

    def means(self) -> Means:
        within = (self.within_us, self.within_events, self.max_runs)
        modes = (self.contiguity.value, self.after.value, self.consumed)
        rows = (keys_of(self.columns), self.all_rows)
        return (self.keys, self.by_start, self.pattern.said(), within, modes, rows)

    def details(self) -> str:
        return f"{self._parallel()}: {self.how()}"

    def how(self) -> str:
        """What is matched, and how."""
        told = [repr(self.pattern), f"contiguity {self.contiguity.value}"]
        told += [] if self.within_us is None else [f"within {duration_text(self.within_us)}"]
        told += [] if self.within_events is None else [f"within {self.within_events} events"]
        told += [] if self.after is AfterMatch.NO_SKIP else [f"after match {self.after.value}"]
        told += ["consumed"] if self.consumed else []
        return ", ".join(told)

    def _parallel(self) -> str:
        """What runs in parallel. It comes first: a long pattern may be cut off."""
        if self.keys:
            return f"by {', '.join(self.keys)}"
        if self.degree is not None:
            return f"by start at {self.degree}"
        why = coupling(self.after, self.consumed)
        return f"at degree 1 because {why or 'it has neither key nor degree'}"
