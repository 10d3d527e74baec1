"""What a version knows of a pattern set: hand-worked, and when an app starts again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import penstock as ps
from penstock.checkpoints.pattern_log import LoggedChange, LoggedPattern, SetLog
from penstock.checkpoints.pattern_logs import PatternLogs
from penstock.checkpoints.positions import Progress
from penstock.query.errors import RunError
from penstock.query.patterns.matching import PatternWarning
from penstock.query.steps import MatchSetSpec
from penstock.spark.batches.stages import Stages, cut
from penstock.spark.groups.groups import check_pattern_sets
from penstock.state.errors import StateError

TYPES = {"ts": "timestamp", "k": "int32", "y": "int64"}
LOW, HIGH = ps.event("low", ps.col("y") < 2), ps.event("high", ps.col("y") > 7)


def change(name: str, at_us: int, text: str | None = "{}") -> LoggedChange:
    return LoggedChange(name, at_us, text)


def test_changes_are_numbered_in_the_order_of_their_times() -> None:
    log = SetLog().after(0, [change("b", 20), change("a", 10), change("c", 20, "new"), change("a", 30, None)])
    assert [one.name for one in log.coming] == ["a", "b", "c", "a"]
    later = log.after(20, [])
    assert later.in_force == (LoggedPattern(0, "a", 10, "{}"),)  # 20 has not been passed yet
    assert later.applied == 1
    last = later.after(31, [change("c", 40)])
    assert last.in_force == (LoggedPattern(1, "b", 20, "{}"), LoggedPattern(2, "c", 20, "new"))
    assert last.applied == 4
    assert last.coming == (change("c", 40),)


def test_a_replaced_pattern_is_another_one() -> None:
    log = SetLog().after(0, [change("a", 1), change("b", 1), change("a", 5, "new")]).after(9, [])
    assert log.in_force == (LoggedPattern(1, "b", 1, "{}"), LoggedPattern(2, "a", 5, "new"))
    assert SetLog.of(json.loads(json.dumps(log.plain()))) == log


class Started:
    """An app with a set, started from what an earlier one has left."""

    def __init__(self, declare: Any, left: Progress | None = None, fresh: tuple[str, ...] = ()) -> None:
        app, self.patterns = ps.App("live"), ps.PatternSet({"y": "int64"})
        events = app.source("events", ps.sources.Rows([], TYPES), event_time="ts")
        app.sink("found", events.key_by("k").match_set(self.patterns, name="set"), ps.sinks.Memory())
        declare(self)
        self.stages: Stages = cut(app.graph())
        self.logs, self.progress = PatternLogs.begin(
            self.stages, left or Progress({"events": {}}, (0,)), fresh
        )

    def add(self, name: str, pattern: Any = None, **how: Any) -> None:
        pattern = LOW >> HIGH if pattern is None else pattern
        self.patterns.add(name, pattern, {"y": ps.bound("low")["y"]}, within="5s", **how)

    def batch(self, passed_us: int) -> Progress:
        self.progress = self.logs.after(replace(self.progress, seen_us={"events": passed_us}))
        return Progress.from_json(json.loads(json.dumps(self.progress.to_json())))

    def log(self) -> SetLog:
        return SetLog.of(self.progress.patterns["set"])


def test_what_is_declared_again_is_no_news_whatever_has_happened_since() -> None:
    def declare(app: Started) -> None:
        app.add("a")
        app.add("b", at=50)

    first = Started(declare)
    first.batch(10)
    first.patterns.remove("a")
    first.add("c")
    left = first.batch(20)
    again = Started(declare, left)
    assert again.logs.told == []
    assert again.progress == left
    assert again.patterns.names == ("c", "b")
    assert again.batch(30).patterns["set"]["coming"] == [["b", 50, first.log().coming[-1].text]]
    assert [one.name for one in again.log().in_force] == ["c"]


def test_what_is_declared_otherwise_changes_behind_the_batch_at_hand() -> None:
    def before(app: Started) -> None:
        app.add("a")
        app.add("b")
        app.add("c", at=50)

    def now(app: Started) -> None:
        app.add("a", LOW >> ~HIGH)
        app.add("c", at=90)
        app.add("d")

    left = Started(before).batch(10)
    again = Started(now, left)
    assert SetLog.of(again.progress.patterns["set"]) == SetLog.of(left.patterns["set"])
    assert again.logs.told == [
        "pattern 'a' of 'set' is declared otherwise now: it is replaced",
        "pattern 'd' of 'set' is new",
        "pattern 'b' of 'set' is no longer declared: it is removed",
    ]
    again.batch(40)
    made = [(one.name, one.at_us, one.text is not None) for one in again.log().coming]
    assert made == [("a", 40, True), ("d", 40, True), ("b", 40, False), ("c", 50, True)]
    quiet = Started(now, again.batch(60))
    assert quiet.logs.told == []
    assert quiet.patterns.names == ("a", "d", "c")


def test_a_step_that_starts_anew_has_what_is_declared() -> None:
    left = Started(lambda app: app.add("a")).batch(10)
    again = Started(lambda app: app.add("b"), replace(left, seen_us={"events": 10}), fresh=("set",))
    assert [(one.name, one.at_us) for one in again.log().coming] == [("b", 10)]


def test_a_time_that_a_batch_has_passed_meanwhile_is_told_and_later() -> None:
    app = Started(lambda app: None)
    app.batch(10)
    app.add("a", at=15)
    with pytest.warns(PatternWarning, match="'a' changes later than asked: at 20 us and not at 15"):
        app.batch(20)
    assert app.log().coming[0].at_us == 20
    assert app.patterns.changes[0].at_us == 20


def test_patterns_of_a_checkpoint_that_do_not_fit_are_refused() -> None:
    left = Started(lambda app: app.add("a", ps.event("low", ps.col("y") < 2) >> HIGH)).batch(10)
    body = json.loads(json.dumps(left.patterns))
    number, name, at_us, text = body["set"]["in_force"][0]
    body["set"]["in_force"][0] = [number, name, at_us, text.replace('"name":"y"', '"name":"z"')]
    with pytest.raises(StateError, match=r"the patterns of step 'set' cannot be taken.*'z'"):
        Started(lambda app: None, replace(left, patterns=body))
    body["set"]["in_force"][0] = [number, name, at_us, "{}"]
    with pytest.raises(StateError, match="a pattern of the checkpoint cannot be read"):
        Started(lambda app: None, replace(left, patterns=body))


def test_a_set_is_in_one_group() -> None:
    app, patterns = ps.App("live"), ps.PatternSet({"y": "int64"})
    events = app.source("events", ps.sources.Rows([], TYPES), event_time="ts")
    found = events.match_set(patterns, name="set")
    app.sink("all", found, ps.sinks.Memory())
    app.sink("some", found.filter(ps.col("y") > 1), ps.sinks.Memory())
    graph = app.graph()
    assert any(isinstance(node.spec, MatchSetSpec) for node in graph.nodes)
    check_pattern_sets(graph, (("all", "some"),))
    with pytest.raises(RunError, match=r"pattern set 'set' cannot be in 2 groups.*put queries all, some"):
        check_pattern_sets(graph, (("all",), ("some",)))
