"""An app with patterns that come and go, to be killed in the middle of its batches.

Some changes are declared before it starts, others are made by what it finds; all have an event time of their
own, so that the rows are known beforehand.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.query.patterns.patterns import Pattern
from tests.cep.selections.detection_cases import plain
from tests.spark import crash_app  # puts the point to die at in place

Rows = list[dict[str, Any]]

EVENTS = {"ts": "timestamp", "id": "int64", "k": "int32", "y": "int64"}
COUNT = 800
BEGIN = 1_000_000

assert crash_app.POINTS

_low, _high = ps.event("low", ps.col("y") <= 2), ps.event("high", ps.col("y") >= 7)
_rising = ps.event("rising", ps.col("y") > ps.bound("low")["y"] + 3)
#: By name, the pattern and the event whose id is reported.
PATTERNS: dict[str, tuple[Pattern, str]] = {
    "rise": (_low >> _high, "high"),
    "quiet": (_low >> ~_high, "low"),
    "climb": (_low >> _rising.one_or_more(), "rising"),
    "fall": (_high.one_or_more() >> _low, "low"),
}
#: (event time, what, the name, the pattern); the first ones are declared, the others made while it runs.
CHANGES = [
    (BEGIN, "add", "rise", "rise"),
    (BEGIN + 150, "add", "quiet", "quiet"),
    (BEGIN + 500, "add", "climb", "climb"),
    (BEGIN + 700, "add", "rise", "fall"),  # another pattern under the same name
    (BEGIN + 900, "remove", "quiet", ""),
]
DECLARED = 2
#: When a match has been found so far on, the next change is made: at a time that no batch has come to.
AHEAD_US = 300


def rows() -> Rows:
    """Events out of order, few of them late."""
    choose, now, found = random.Random(23), BEGIN, []
    for number in range(COUNT):
        now += choose.choice((0, 1, 1, 2, 4))
        behind = choose.choice((0, 0, 0, 2, 7, 50 if choose.random() < 0.1 else 0))
        found.append({"ts": now - behind, "id": number, "k": choose.randrange(12), "y": choose.randrange(10)})
    return found


def as_it_is(event: dict[str, Any]) -> list[dict[str, Any]]:
    """For its sake tasks import this module, and with it the point to die at."""
    return [event]


def make(patterns: ps.PatternSet, number: int) -> None:
    """Makes one of the changes."""
    at, what, name, key = CHANGES[number]
    if what == "remove":
        patterns.remove(name, at=at)
    else:
        pattern, reported = PATTERNS[key]
        patterns.add(name, pattern, {"id": ps.bound(reported)["id"]}, within="40us", at=at)


def build(output: Path | None, declared: int, react: Any = None) -> tuple[ps.App, ps.PatternSet, Any]:
    """The app, its set, and its sink: Parquet in ``output``, or else in memory."""
    app, patterns = ps.App("live"), ps.PatternSet({"id": "int64"})
    source = ps.sources.Rows(rows(), EVENTS, partitions=2)
    events = app.source("events", source, event_time="ts", lateness="10us").flat_map(as_it_is, EVENTS)
    found = events.key_by("k").match_set(patterns, name="watched")
    sink: Any = ps.sinks.Memory() if output is None else ps.sinks.Parquet(output)
    app.sink("found", found, sink)
    if react is not None:
        app.sink("react", found, ps.sinks.Callback(react))
    for number in range(declared):
        make(patterns, number)
    return app, patterns, sink


class Reacting:
    """Makes the next change when a match has come close to its time; of a run that goes on, those that the
    checkpoint does not have."""

    def __init__(self) -> None:
        self.patterns: ps.PatternSet | None = None

    def __call__(self, found: list[dict[str, Any]]) -> None:
        assert self.patterns is not None
        known = {(change.name, change.at_us) for change in self.patterns.changes}
        for number in range(DECLARED, len(CHANGES)):
            at, _, name, _ = CHANGES[number]
            if (name, at) not in known and any(at - AHEAD_US <= row["match_end"] < at - 100 for row in found):
                make(self.patterns, number)


@cache
def sequential() -> Rows:
    """The rows of the app on one node, to which all changes are declared."""
    app, patterns, sink = build(None, len(CHANGES))
    app.run(on=ps.Node(workers=1))
    found = sink.rows()
    for name in ("rise", "quiet", "climb"):
        assert len([row for row in found if row["pattern"] == name]) > 20, name
    assert patterns.names == ("rise", "climb")
    return ordered(found)


def ordered(rows: Rows) -> Rows:
    return sorted(({name: plain(value) for name, value in row.items()} for row in rows), key=repr)


def main(folder: str, tasks: str, batch_events: str) -> None:
    root, reacting = Path(folder), Reacting()
    app, reacting.patterns, _ = build(root / "out", DECLARED, reacting)
    runtime = crash_app.runtime(root, tasks, int(batch_events))
    summary = runtime.run(app.graph(), app.name)
    print(f"complete: {summary.complete}", flush=True)
