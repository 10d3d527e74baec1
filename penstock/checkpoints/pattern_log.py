"""What a version of the state knows of a pattern set: the patterns in force, and the changes to come.

A version has all that the next batch must know. So a change counts once the manifest that has it is there,
and a batch that is run again sees the very same changes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.cep.patterns.match_set import InForce
from penstock.query.patterns.sets import PatternChange
from penstock.query.patterns.texts import pattern_of, pattern_text


class LoggedChange(NamedTuple):
    """From an event time on, ``name`` is the pattern of this text; without one it is gone."""

    name: str
    at_us: int
    text: str | None

    @classmethod
    def of(cls, change: PatternChange) -> LoggedChange:
        assert change.at_us is not None, "the set settles times before it hands changes out"
        return cls(change.name, change.at_us, None if change.spec is None else pattern_text(change.spec))

    def change(self) -> PatternChange:
        return PatternChange(self.name, self.at_us, None if self.text is None else pattern_of(self.text))


class LoggedPattern(NamedTuple):
    """A pattern in force, and the number of the change that added it, in the order of event time."""

    number: int
    name: str
    at_us: int
    text: str


@dataclass(frozen=True)
class SetLog:
    """One set as a version has it. Changes that have been made and undone again are forgotten."""

    in_force: tuple[LoggedPattern, ...] = ()
    coming: tuple[LoggedChange, ...] = ()  # in the order of their times
    applied: int = 0  # how many changes have been made so far
    #: What the app had declared before it started, by pattern: when it starts again, that is not news.
    declared: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, body: Mapping[str, Any] | None) -> SetLog:
        if body is None:
            return cls()
        return cls(
            tuple(LoggedPattern(*one) for one in body["in_force"]),
            tuple(LoggedChange(*one) for one in body["coming"]),
            body["applied"],
            body["declared"],
        )

    def plain(self) -> dict[str, Any]:
        """As JSON has it; ``of`` is the way back."""
        return {
            "in_force": [list(one) for one in self.in_force],
            "coming": [list(one) for one in self.coming],
            "applied": self.applied,
            "declared": dict(self.declared),
        }

    def after(self, passed_us: int, new: Iterable[LoggedChange], withdrawn: Iterable[str] = ()) -> SetLog:
        """The log behind a batch that has matched all events before ``passed_us``.

        Changes of these times have been made by its tasks. ``new`` ones are none of them. Of patterns that
        were ``withdrawn`` no change is to come any more, but new ones.
        """
        in_force = {one.name: one for one in self.in_force}
        applied, coming = self.applied, list(self.coming)
        while coming and coming[0].at_us < passed_us:
            change = coming.pop(0)
            in_force.pop(change.name, None)
            if change.text is not None:
                in_force[change.name] = LoggedPattern(applied, change.name, change.at_us, change.text)
            applied += 1
        without = set(withdrawn)
        coming = [change for change in coming if change.name not in without]
        coming = sorted([*coming, *new], key=lambda change: change.at_us)  # stable, as in the operator
        return SetLog(tuple(in_force.values()), tuple(coming), applied, self.declared)

    def patterns(self) -> list[InForce]:
        """For the operator: the patterns that a batch begins with."""
        return [InForce(one.number, one.name, pattern_of(one.text)) for one in self.in_force]

    def changes(self) -> list[PatternChange]:
        """For the operator: the changes that are made in a batch or later."""
        return [change.change() for change in self.coming]

    def known(self) -> list[PatternChange]:
        """For the set: how all that is in force or to come was added."""
        made = [PatternChange(one.name, one.at_us, pattern_of(one.text)) for one in self.in_force]
        return [*made, *self.changes()]

    def last(self) -> dict[str, str]:
        """The patterns that are there once all changes have been made, by name."""
        found: dict[str, str | None] = {one.name: one.text for one in self.in_force}
        found |= {change.name: change.text for change in self.coming}
        return {name: text for name, text in found.items() if text is not None}


def declarations(changes: Sequence[PatternChange]) -> dict[str, str]:
    """By pattern, a digest of all that is said of it, in order."""
    said: dict[str, list[Any]] = {}
    for change in changes:
        text = None if change.spec is None else pattern_text(change.spec)
        said.setdefault(change.name, []).append([change.at_us, text])
    return {name: hashlib.sha256(json.dumps(one).encode()).hexdigest()[:16] for name, one in said.items()}
