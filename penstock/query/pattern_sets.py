"""Pattern sets: patterns over one stream that can be added, replaced and removed while the app runs.

A change takes effect at an event time: a pattern sees the events from its addition to its removal, and
reports what is decided before its removal. So a result still depends on its input only, the changes being
part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock
from typing import Any, NoReturn

from penstock.query.durations import Duration
from penstock.query.errors import QueryError
from penstock.query.expr import lit
from penstock.query.graph import MatchSpec
from penstock.query.matching import MATCH_NAMES, matched
from penstock.query.patterns import Pattern
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
    """Patterns that change while an app runs, on the node engine; their matches have the same columns.

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

        The rest is as in ``match``. One of that name that is there already is replaced: what it has begun is
        dropped at that time.
        """
        schema, keys = self._bound()
        spec, made = matched(
            schema, keys, pattern, output, within, within_events, contiguity, after_match, consumption,
            "one", max_runs,
        )  # fmt: skip
        self._check(name, made)
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

    def settled(self, start: int, passed_us: int, until_us: int) -> list[PatternChange]:
        """The changes from number ``start`` on, those without a time settled at ``passed_us``. From now on no
        change can be before ``until_us``."""
        with self._lock:
            for number in range(start, len(self._changes)):
                if self._changes[number].at_us is None:
                    self._changes[number] = replace(self._changes[number], at_us=passed_us)
            self._passed_us = until_us
            return self._changes[start:]

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

    def __reduce__(self) -> NoReturn:
        raise QueryError(
            "patterns that change while the app runs need the node engine",
            hint="run on ps.Node(...), or write one match(...) per pattern",
        )


def _microseconds(at: datetime | int | None) -> int | None:
    if at is None or (isinstance(at, int) and not isinstance(at, bool)):
        return at
    value = lit(at).value
    assert isinstance(value, int)
    return value
