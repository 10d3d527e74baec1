"""A source that says nothing is told by name, where others wait for it, once until it speaks again."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock import count, tumbling
from penstock.metrics.silence import Silence, meetings
from penstock.metrics.watch import Totals, Watch

MEETING = {"tolls": {"cars": "per_lane"}, "cars": {"tolls": "per_lane"}}


def test_who_waits_for_whom() -> None:
    app = ps.App("meets")
    schema = {"ts": "timestamp", "k": "int64"}
    a, b, c = (app.source(name, ps.sources.Rows([], schema), event_time="ts") for name in "abc")
    app.sink("alone", c.window(tumbling("1m")).agg(n=count()), ps.sinks.Discard())
    app.sink("mixed", b.union(c), ps.sinks.Discard())  # of a union without a window nobody waits
    app.sink("both", a.union(b).window(tumbling("1m")).agg(n=count(), name="x"), ps.sinks.Discard())
    found = meetings(app.graph())
    assert {source: set(others) for source, others in found.items()} == {"a": {"b"}, "b": {"a"}}


def test_a_silent_source_is_told_once_until_it_speaks() -> None:
    silence = Silence(MEETING, after_s=30)
    assert silence.look(0, {"cars": 0, "tolls": 0}) == []
    assert silence.look(29, {"cars": 5, "tolls": 0}) == []
    (warning,) = silence.look(31, {"cars": 6, "tolls": 0})
    assert warning.startswith("source 'tolls' holds 'cars' back: nothing has come from it for 31 s")
    assert "step 'per_lane' waits for its time" in warning
    assert silence.look(40, {"cars": 7, "tolls": 0}) == []
    assert silence.look(50, {"cars": 8, "tolls": 1}) == []
    assert len(silence.look(90, {"cars": 9, "tolls": 1})) == 1


def test_where_all_are_silent_nobody_holds_anybody_back() -> None:
    silence = Silence(MEETING, after_s=30)
    silence.look(0, {"cars": 1, "tolls": 1})
    assert silence.look(100, {"cars": 1, "tolls": 1}) == []


def test_a_source_that_has_ended_or_meets_nobody_is_left_alone() -> None:
    silence = Silence(MEETING, after_s=30)
    silence.look(0, {"cars": 1, "tolls": 1, "alone": 1})
    assert silence.look(100, {"cars": 2, "alone": 1}) == []


def test_the_watch_of_a_run_tells_it(caplog: pytest.LogCaptureFixture) -> None:
    now_s = [0.0]
    watch = Watch("app", "Node", silence=Silence(MEETING), progress_every_s=10, clock=lambda: now_s[0])
    for _ in range(5):
        now_s[0] += 10
        heard = {"cars": now_s[0], "tolls": 0}
        watch.progress(lambda heard=heard: Totals(heard=heard))  # type: ignore[misc]
    assert [(record.levelname, record.getMessage().partition(":")[0]) for record in caplog.records] == [
        ("WARNING", "run 'app' source 'tolls' holds 'cars' back")
    ]
