"""Pattern sets: patterns over one stream that can be added, replaced and removed while the app runs.

A change takes effect at an event time: a pattern sees the events from its addition to its removal, and
reports what is decided before its removal. So a result still depends on its input only, the changes being
part of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock
from typing import Any

from penstock.query.durations import Duration
from penstock.query.errors import QueryError
from penstock.query.expr import lit
from penstock.query.patterns.matching import MATCH_NAMES, PatternWarning, matched
from penstock.query.patterns.patterns import Pattern
from penstock.query.steps import MatchSpec
from penstock.query.types import DataType, Field, Schema

PATTERN_NAME = "pattern"
_BEGINNING = -(2**63)


@dataclass(frozen=True)
class PatternChange:
    """From an event time on, ``name`` is this pattern; without one it is gone. None: as soon as possible."""

    name: str
    at_us: int | None
    spec: MatchSpec | None


class PatternSet:
    """Patterns that change while an app runs; their matches have the same columns.

    Changes may be made in any thread of the process that runs the app. On Spark they count from the next
    batch on and are written into the checkpoint before it begins: a later run goes on with them.

    >>> alerts = PatternSet({"lane": "int32"})
    >>> slow, fast = event("slow", col("speed") < 10), event("fast", col("speed") > 40)
    >>> cars.key_by("id").match_set(alerts).schema.names
    ('id', 'pattern', 'match_start', 'match_end', 'lane')
    >>> alerts.add("jump", slow >> fast, {"lane": fast["lane"]}, within="10s")
    >>> alerts.names
    ('jump',)
    """

    def __init__(self, output: Schema | Mapping[str, str | DataType]) -> None:
        self.output = Schema.of(output)
        self._lock = Lock()
        self._changes: list[PatternChange] = []
        self._stream: tuple[Schema, tuple[str, ...]] | None = None
        self._passed_us = _BEGINNING  # events before it have been matched
        #: Called with a new pattern, in the thread that adds it: a runtime that compiles it here need not do
        #: so between events.
        self.prepare: Callable[[MatchSpec], None] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The patterns that are in it by the last change of each."""
        last = {change.name: change.spec for change in self.changes}
        return tuple(name for name, spec in last.items() if spec is not None)

    @property
    def changes(self) -> tuple[PatternChange, ...]:
        """All changes so far, with the times at which they took effect: made at the same times in another
        run, they give the same matches again."""
        with self._lock:
            return tuple(self._changes)

    def add(
        self,
        name: str,
        pattern: Pattern,
        output: Mapping[str, Any],
        *,
        at: datetime | int | None = None,
        within: Duration | None = None,
        within_events: int | None = None,
        contiguity: str | None = None,
        after_match: str = "no_skip",
        consumption: str = "unrestricted",
        max_runs: int | None = None,
    ) -> None:
        """Adds a pattern from the event time ``at`` on, by default as soon as possible.

        The rest is as in ``match``. One of that name that is there already is replaced: it is removed, with
        all that it has begun, and the new one added at the same event time.
        """
        schema, keys = self._bound()
        spec, made = matched(
            schema, keys, pattern, output, within, within_events, contiguity, after_match, consumption,
            "one", max_runs,
        )  # fmt: skip
        self._check(name, made)
        if self.prepare is not None:
            self.prepare(spec)
        self._change(PatternChange(name, _microseconds(at), spec))

    replace = add

    def remove(self, name: str, *, at: datetime | int | None = None) -> None:
        """Removes a pattern at an event time, with all that it has begun."""
        if name not in self.names:
            raise QueryError(f"no pattern '{name}'", hint=f"patterns here: {', '.join(self.names) or 'none'}")
        self._change(PatternChange(name, _microseconds(at), None))

    # -- for the stream and the operator -------------------------------------------------------------------

    def bind(self, schema: Schema, keys: tuple[str, ...]) -> Schema:
        """Says which events it matches; gives the columns of its matches."""
        if self._stream is not None:
            raise QueryError("a pattern set belongs to one stream", hint="make another PatternSet")
        self._stream = (schema, keys)
        bounds = [Field(name, DataType.TIMESTAMP) for name in MATCH_NAMES]
        named = Field(PATTERN_NAME, DataType.STRING)
        return Schema([*(schema[key] for key in keys), named, *bounds, *self.output])

    def settled(self, start: int, until_us: int) -> list[PatternChange]:
        """The changes from number ``start`` on, for an operator that now matches the events up to
        ``until_us``: from now on no change can be before that.

        One without a time takes effect where no operator has come yet: several may share the keys.
        """
        with self._lock:
            for number in range(start, len(self._changes)):
                if self._changes[number].at_us is None:
                    self._changes[number] = replace(self._changes[number], at_us=self._passed_us)
            self._passed_us = max(self._passed_us, until_us)
            return self._changes[start:]

    def settled_behind(self, start: int, passed_us: int) -> list[PatternChange]:
        """The changes from number ``start`` on, behind a batch that has matched all up to ``passed_us``.

        Those without a time take effect there, and so do those whose time has passed in that batch.
        """
        with self._lock:
            self._passed_us = passed_us
            for number in range(start, len(self._changes)):
                change = self._changes[number]
                if change.at_us is None or change.at_us < passed_us:
                    self._changes[number] = replace(change, at_us=passed_us)
                    if change.at_us is not None:
                        _warn_of_delay(change.name, change.at_us, passed_us)
            return self._changes[start:]

    def taken_over(
        self, decide: Callable[[list[PatternChange]], list[PatternChange]], passed_us: int | None
    ) -> None:
        """A run begins: ``decide`` gets the changes made so far and says which are those of the run, whose
        events before ``passed_us`` have been matched; None: it has matched none yet."""
        with self._lock:
            self._changes = decide(self._changes)
            self._passed_us = _BEGINNING if passed_us is None else passed_us

    def refitted(self, name: str, spec: MatchSpec) -> None:
        """Raises unless a pattern that was added elsewhere fits the stream and the set."""
        schema, keys = self._bound()
        within = None if spec.within_us is None else f"{spec.within_us}us"
        _, made = matched(
            schema, keys, spec.pattern, dict(spec.columns), within, spec.within_events, spec.contiguity,
            spec.after, "consumed" if spec.consumed else "unrestricted", "one", spec.max_runs,
        )  # fmt: skip
        self._check(name, made)

    def _bound(self) -> tuple[Schema, tuple[str, ...]]:
        if self._stream is None:
            raise QueryError(
                "the pattern set has no stream yet", hint="call stream.match_set(patterns) before adding"
            )
        return self._stream

    def _check(self, name: Any, made: Schema) -> None:
        if not isinstance(name, str) or not name:
            raise QueryError("a pattern needs a name", detail=f"got {name!r}", hint="write e.g. 'jump'")
        got = {field.name: field for field in made}
        for field in self.output:
            found = got.get(field.name)
            if found is None or found.dtype is not field.dtype or (found.nullable and not field.nullable):
                raise QueryError(
                    f"output column '{field.name}' does not fit the set",
                    detail=f"pattern '{name}' gives {found or 'none'}, the set has {field}",
                    hint="cast it, fill its nulls, or declare it otherwise",
                )
        known = {*self.output.names, *MATCH_NAMES, *self._bound()[1]}
        extra = [one for one in got if one not in known]
        if extra:
            raise QueryError(
                f"output column '{extra[0]}' is not one of the set",
                hint=f"columns here: {', '.join(self.output.names)}",
            )

    def _change(self, change: PatternChange) -> None:
        with self._lock:
            if change.at_us is not None and change.at_us < self._passed_us:
                raise QueryError(
                    "that time has passed",
                    detail=f"events before {self._passed_us} us have been matched, got {change.at_us}",
                    hint="leave 'at' out: it then takes effect as soon as possible",
                )
            self._changes.append(change)

    def __reduce__(self) -> tuple[Any, ...]:
        """What travels to a task: whose matches they are. The changes come to it with every batch."""
        return _described, (self.output, self._stream)


def _described(output: Schema, stream: tuple[Schema, tuple[str, ...]] | None) -> PatternSet:
    described = PatternSet(output)
    described._stream = stream
    return described


def _warn_of_delay(name: str, asked_us: int, passed_us: int) -> None:
    warnings.warn(
        f"pattern '{name}' changes later than asked: at {passed_us} us and not at {asked_us}, which a batch "
        "passed meanwhile; ask for a later time, or leave 'at' out",
        PatternWarning,
        stacklevel=2,
    )


def _microseconds(at: datetime | int | None) -> int | None:
    if at is None or (isinstance(at, int) and not isinstance(at, bool)):
        return at
    value = lit(at).value
    assert isinstance(value, int)
    return value
