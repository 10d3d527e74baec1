"""A match by start gives the rows of a sequential one in the same order, whatever the degree."""

from __future__ import annotations

import random
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock import col, event, previous
from penstock.cep.patterns.match_splitter import MatchSplitter
from penstock.cep.selections.selections import EventBatch
from penstock.engine.seat.summary import NodeSummary
from penstock.memory.layout import LATE, ORDER, SUB
from penstock.operators.by_start import with_instances
from penstock.operators.run.projections import without_plain_projections
from penstock.query.explain import describe
from penstock.query.patterns.by_start import GIVEN
from penstock.query.patterns.matching import PatternWarning, matched
from penstock.query.steps import MatchSpec, MatchSplitSpec
from penstock.query.types import Schema
from penstock.routing.control import RoutingControl
from tests.cep.patterns.strategies import SCHEMA, specs, streams
from tests.cep.patterns.test_matcher import expected
from tests.engine.keyed.test_parallel import parallel_nodes
from tests.harness import Harness, layout

Rows = list[dict[str, Any]]

MODES = [(contiguity, after) for contiguity in ("strict", "next", "any") for after in ("no_skip", "to_next")]
#: Every bound event in a row of its own, so that few kernels do for all patterns.
OUTPUT = {"at": previous("ts"), "x": previous("x"), "y": previous("y")}

one_task = st.builds(
    ps.Node,
    workers=st.integers(1, 2),
    block_events=st.sampled_from([2, 16, 1024]),
    source_batch=st.one_of(st.none(), st.integers(1, 9)),
)
nodes = st.one_of(parallel_nodes(), parallel_nodes(), one_task)


@st.composite
def degrees(draw: Any) -> ps.Degree:
    changes = draw(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), max_size=4))
    return ps.Degree(draw(st.integers(1, 4)), changes=tuple(changes))


def app_of(
    spec: MatchSpec, rows: Rows, degree: ps.Degree | int | None, lateness: str = "0s", partitions: int = 1
) -> tuple[ps.App, ps.sinks.Memory, ps.sinks.Memory]:
    """An app that matches like ``spec``, with its sinks: what is found, and what comes too late."""
    app, found, late = ps.App("patterns"), ps.sinks.Memory(), ps.sinks.Memory()
    source = ps.sources.Rows(rows, SCHEMA, partitions=partitions)
    matching = app.source("events", source, event_time="ts", lateness=lateness).match(
        spec.pattern,
        dict(spec.columns),
        within=None if spec.within_us is None else f"{spec.within_us}us",
        within_events=spec.within_events,
        contiguity=spec.contiguity.value,
        after_match=spec.after.value,
        rows="all" if spec.all_rows else "one",
        max_runs=spec.max_runs,
        degree=degree,
        name="found",
    )
    app.sink("out", matching, found)
    app.sink("late", matching.late(), late)
    return app, found, late


def matches(
    spec: MatchSpec,
    rows: Rows,
    node: ps.Node,
    degree: ps.Degree | int | None,
    lateness: str = "0s",
    partitions: int = 1,
) -> tuple[Rows, Rows, NodeSummary]:
    """What a node finds, what came too late, and how it went."""
    app, found, late = app_of(spec, rows, degree, lateness, partitions)
    summary = app.run(on=node)
    return found.rows(), late.rows(), summary


def compare(one: Any, rows: Rows, node: ps.Node, degree: ps.Degree) -> int:
    assume(one is not None)
    spec = one[0]
    found, _, _ = matches(spec, rows, node, degree)
    sequential, _, _ = matches(spec, rows, ps.Node(workers=1), None)
    assert found == sequential, spec.pattern
    by_oracle = expected(spec, one[1], rows)
    assert found == [{name: row[name] for name in one[1].names} for row in by_oracle], spec.pattern
    return len(found)


def with_rows(one: Any) -> Any:
    """The same pattern with a row per bound event."""
    if one is None:
        return None
    spec = one[0]
    within = None if spec.within_us is None else f"{spec.within_us}us"
    return matched(
        SCHEMA, (), spec.pattern, OUTPUT, within, spec.within_events,
        spec.contiguity, spec.after, "unrestricted", "all", spec.max_runs,
    )  # fmt: skip


@pytest.mark.parametrize(("contiguity", "after"), MODES)
def test_every_mode_gives_the_rows_of_a_sequential_match(contiguity: str, after: str) -> None:
    found: list[int] = []
    drawn = specs((), False, (contiguity,), (after,), ("unrestricted",)).map(with_rows)

    @settings(max_examples=25)
    @given(drawn, streams(16), nodes, degrees())
    def check(one: Any, rows: Rows, node: ps.Node, degree: ps.Degree) -> None:
        found.append(compare(one, rows, node, degree))

    check()
    assert sum(found) > 20, "too few matches to mean anything"


@settings(max_examples=3)
@given(
    specs((), True, after=("no_skip", "to_next"), consumption=("unrestricted",)),
    streams(14),
    nodes,
    degrees(),
)
def test_conditions_on_earlier_events_too(one: Any, rows: Rows, node: ps.Node, degree: ps.Degree) -> None:
    compare(one, rows, node, degree)


@pytest.mark.slow
@settings(settings.get_profile("thorough"), max_examples=150)
@given(
    specs((), True, after=("no_skip", "to_next"), consumption=("unrestricted",), rows=("one", "all")),
    streams(16),
    nodes,
    degrees(),
)
def test_random_patterns_give_the_rows_of_a_sequential_match(
    one: Any, rows: Rows, node: ps.Node, degree: ps.Degree
) -> None:
    compare(one, rows, node, degree)


A, B = event("a", col("y") == 0), event("b", col("y") >= 1)


def spec_of(pattern: ps.Pattern, **options: Any) -> MatchSpec:
    given = {
        "within": "9us", "within_events": None, "contiguity": None, "after_match": "no_skip",
        "consumption": "unrestricted", "rows": "all", "max_runs": None,
    } | options  # fmt: skip
    return matched(SCHEMA, (), pattern, OUTPUT, **given)[0]


PERIODIC = spec_of(ps.periodic(A, every="3us", until=event("c", col("x") == 3)))
APERIODIC = spec_of(ps.aperiodic(A, B, until=event("c", col("x") == 3)))


@settings(max_examples=8)
@given(st.sampled_from([PERIODIC, APERIODIC]), streams(24), nodes, degrees())
def test_periodic_and_aperiodic_patterns_too(
    spec: MatchSpec, rows: Rows, node: ps.Node, degree: ps.Degree
) -> None:
    assert matches(spec, rows, node, degree)[0] == matches(spec, rows, ps.Node(workers=1), None)[0]


@settings(max_examples=15)
@given(streams(40), nodes, degrees(), st.randoms(use_true_random=False))
def test_disorder_and_late_events_change_nothing(
    rows: Rows, node: ps.Node, degree: ps.Degree, choose: random.Random
) -> None:
    spec = spec_of(A >> B.one_or_more(), contiguity="any", max_runs=1000)
    shuffled = sorted(rows, key=lambda row: row["ts"] + choose.randint(0, 8))
    found, late, _ = matches(spec, shuffled, node, degree, "4us")
    sequential, late_there, _ = matches(spec, shuffled, ps.Node(workers=1), None, "4us")
    assert (found, late) == (sequential, late_there)


def test_a_limit_of_runs_holds_for_each_first_event_whatever_the_degree() -> None:
    rows = [{"ts": number, "k": 0, "x": 0, "y": min(1, number % 4)} for number in range(40)]
    spec = replace(spec_of(A >> B.times(2), contiguity="any", rows="one"), max_runs=2)
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)
        for degree in (1, 2, 3):
            found, _, summary = matches(spec, rows, ps.Node(workers=1, tasks=2), degree)
            dropped = sum(operator.dropped_runs for operator in summary.metrics.operators)
            results.append((found, dropped))
    assert results[0] == results[1] == results[2]
    assert results[0][1] > 0


def test_an_instance_is_never_called_a_key_that_is_too_hot(caplog: pytest.LogCaptureFixture) -> None:
    rows = [{"ts": number, "k": 0, "x": 0, "y": number % 2} for number in range(3_000)]
    eager = RoutingControl(chi=0.1, cooldown=0)
    node = ps.Node(tasks=2, block_events=512, workers=1, rebalance=eager, rebalance_every_s=0.0)
    found, _, summary = matches(spec_of(A >> B, within="2us"), rows, node, 1)
    assert len(found) == 3_000
    assert "no routing can help" not in caplog.text
    assert summary.metrics.routing["found.instances"].hot_keys == {}


# -- what is asked for, and what is told -----------------------------------------------------------


def app_with(**options: Any) -> tuple[ps.App, ps.Stream]:
    app = ps.App("patterns")
    events = app.source("events", ps.sources.Rows([], SCHEMA), event_time="ts")
    keyed = events.key_by(options.pop("key")) if "key" in options else events
    return app, keyed.match(A >> B, within="9us", name="found", **options)


LATER = ps.Degree(1, changes=((9, 2),))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"degree": 2, "consumption": "consumed"},
            "got degree 2, but consumed events are in no other.*key_by",
        ),
        ({"degree": 2, "after_match": "past_last"}, "got degree 2, but a match skips.*leave degree out"),
        ({"degree": LATER, "consumption": "consumed"}, "got degree 1, 2 from event 9, but consumed"),
        (
            {"degree": 2, "key": "k"},
            "with keys has no degree: .*got degree 2, but runs by k on as many tasks",
        ),
        ({"degree": 0}, "start is a whole number from 1 to 1024: .*a degree got 0"),
        ({"degree": "many"}, "degree is a whole number or a Degree: .*got 'many'"),
    ],
)
def test_a_degree_that_does_not_fit_is_refused_before_anything_runs(options: Any, said: str) -> None:
    with pytest.raises(ps.QueryError, match=said):
        app_with(**options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "match at degree 1 because it has neither key nor degree: a >> b"),
        ({"key": "k"}, "match by k: a >> b"),
        ({"degree": 3}, "match by start at degree 3: a >> b"),
        ({"degree": ps.Degree(1, 4, ((50, 2),))}, "by start at degree 1, 2 from event 50 of 4: a >> b"),
        ({"consumption": "consumed"}, "at degree 1 because consumed events are in no other match: a >> b"),
        (
            {"after_match": "past_last", "degree": 1},
            "at degree 1 because a match skips the events up to its last",
        ),
    ],
)
def test_explain_tells_how_a_match_runs(options: Any, said: str) -> None:
    app, stream = app_with(**options)
    app.sink("out", stream, ps.sinks.Discard())
    text = app.explain()
    assert said in text
    places = "split in stage 1, matched by instance in stage 2, merged in stage 3"
    assert (places in text) == ("by start" in said)


def test_a_match_by_start_becomes_three_steps_and_keeps_its_id() -> None:
    app, stream = app_with(degree=2)
    app.sink("out", stream, ps.sinks.Discard())
    app.sink("late", stream.late(), ps.sinks.Discard())
    graph = with_instances(without_plain_projections(app.graph()))
    assert [node.id for node in graph] == [
        "events", "found.splitter", "found.instances", "found", "out", "late",
    ]  # fmt: skip
    assert [one.node for one in graph["late"].inputs] == ["found.splitter"]
    assert graph["found"].schema == app.graph()["found"].schema
    told = [describe(graph[name].spec) for name in ("found.splitter", "found.instances")]
    assert told[0].startswith("match_splitter by start: a >> b")
    assert told[1].startswith("match by $instance: a >> b")


def test_the_degree_is_a_metric() -> None:
    match = spec_of(A >> B)
    spec = MatchSplitSpec(match, ps.Degree(2, 5, ((3, 4),)))
    output = layout(Schema([*SCHEMA, *GIVEN]), "ts", [ORDER, SUB])
    step = Harness(MatchSplitter, spec, [layout(SCHEMA, "ts", [ORDER, SUB, LATE])], output)
    assert isinstance(step.operator, MatchSplitter)
    assert step.operator.degree is None  # most tasks never have an event
    step.feed([{"ts": time, "k": 0, "x": 0, "y": 0, ORDER: time} for time in range(9)])
    step.watermark(4)
    assert (step.operator.degree.observed, step.operator.degree.most) == (4, 5)
    step.end()
    assert len({row["$instance"] for row in step.rows()}) == 4
    assert [row["$position"] for row in step.rows() if row["$opens"]].count(8) == 1


class Rising:
    """A control that asks for one more instance after every ten events, for too many in the end."""

    def __init__(self) -> None:
        self.seen = 0

    def observe(self, batch: EventBatch) -> int | None:
        before, self.seen = self.seen // 10, self.seen + len(batch)
        return None if self.seen // 10 == before else 1 + self.seen // 10

    def export(self) -> dict[str, Any]:
        return {"seen": np.array([self.seen]), "nothing": np.zeros(0)}

    def restore(self, state: dict[str, Any]) -> None:
        (self.seen,) = state["seen"].astype(np.int64).tolist()
        assert len(state["nothing"]) == 0


def test_a_control_sets_the_degree_and_is_part_of_the_state() -> None:
    spec = MatchSplitSpec(spec_of(A >> B), ps.Degree(1, most=3, control=Rising))
    output = layout(Schema([*SCHEMA, *GIVEN]), "ts", [ORDER, SUB])

    def splitter() -> Harness:
        return Harness(MatchSplitter, spec, [layout(SCHEMA, "ts", [ORDER, SUB, LATE])], output)

    step, told = splitter(), []
    for begin in range(0, 60, 6):
        step.feed([{"ts": time, "k": 0, "x": 0, "y": 0, ORDER: time} for time in range(begin, begin + 6)])
        step.watermark(begin + 3)
        moved = splitter()  # as it is after a kill
        moved.operator.import_state(step.operator.export_state())
        step = moved
        assert step.operator.degree is not None
        told.append((step.operator.degree.planned, step.operator.degree.observed))
    assert told == [(1, 1), (1, 1), (2, 2), (3, 3), (3, 3), (4, 3), (4, 3), (5, 3), (6, 3), (6, 3)]


def test_two_matches_that_differ_in_degree_only_are_two_steps() -> None:
    app = ps.App("patterns")
    events = app.source("events", ps.sources.Rows([], SCHEMA), event_time="ts")
    for number, degree in enumerate((None, 2, 2, 3)):
        app.sink(f"out{number}", events.match(A >> B, within="9us", degree=degree), ps.sinks.Discard())
    kinds = [node.kind for node in app.graph()]
    assert kinds.count("match") == 3


def test_the_degree_is_told_under_the_name_of_the_step() -> None:
    app = ps.App("a")
    columns = {"ts": list(range(40)), "x": [n % 4 for n in range(40)]}
    source = ps.sources.Columns(columns, {"ts": "timestamp", "x": "int64"})
    pattern = ps.event("a", ps.col("x") == 0) >> ps.event("b", ps.col("x") == 3)
    found = app.source("s", source, event_time="ts").match(
        pattern, within="10us", degree=ps.Degree(1, 3, ((20, 3),)), name="pairs"
    )
    app.sink("out", found, ps.sinks.Discard())
    summary = app.run(on=ps.Node(workers=1))
    assert summary.metrics.degrees["pairs"].observed == 3
