"""Groups on real Spark: whoever shares a streaming query, the rows are those of the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import penstock as ps
from penstock.placement.query_groups import GroupPlan, GroupPlanner, QueryWork
from penstock.spark.groups.run import GroupedRun
from penstock.state.errors import StateError
from tests.engine.test_equivalence import compare, expected_of
from tests.graphs.graph_strategies import CATALOGUE, Drawn, few, random_graphs
from tests.spark import crash_app
from tests.spark.checkpoint.test_resume import check, crash_reference, stopped_after, written

_EVENTS = 300
_PATIENCE_S = 300.0


class AtOnce(GroupPlanner):
    """Parts the queries however little that pays."""

    def plan(self, work: QueryWork, most: int) -> GroupPlan:
        queries = work.queries()
        assert all(work.operator_ms.get(name, 0.0) >= 0.0 for name in work.queries_of)
        assert sum(work.operator_ms.values()) > 0.0
        half = len(queries) // 2
        groups = (tuple(queries[:half]), tuple(queries[half:]))
        return GroupPlan(groups, 2.0, 1.0, tuple(work.work_ms(group) for group in groups))


def check_groups(one: Drawn, groups: int, tasks: int | None, batch_events: int) -> None:
    built = one.build()
    reference = expected_of(one)
    queries = list(built.sinks)
    groups = min(groups, len(queries))
    named = [queries[number::groups] for number in range(groups)]
    runtime = ps.Spark(groups=named, tasks=tasks, batch_events=batch_events, concurrent_batches=2)
    summary = built.app.run(on=runtime)
    compare(built.results(), reference.sinks, one, built, str(runtime))
    assert summary.complete
    assert summary.groups == groups
    assert summary.queries == len(queries)


def test_a_result_does_not_depend_on_the_groups(spark: SparkSession) -> None:
    @settings(max_examples=1)
    @given(few(*sorted(CATALOGUE)[::6]), st.integers(2, 3), st.sampled_from((None, 2)))
    def check_one(one: Drawn, groups: int, tasks: int | None) -> None:
        check_groups(one, groups, tasks, 60)

    check_one()


@pytest.mark.slow
def test_random_graphs_in_random_groups(spark: SparkSession) -> None:
    @settings(settings.get_profile("thorough"), max_examples=8)
    @given(random_graphs, st.integers(2, 4), st.sampled_from((None, 1, 2, 3)), st.integers(10, 120))
    def check_one(one: Drawn, groups: int, tasks: int | None, batch_events: int) -> None:
        check_groups(one, groups, tasks, batch_events)

    check_one()


def test_queries_part_in_the_middle_of_a_run_and_nothing_is_lost(spark: SparkSession) -> None:
    app, sinks = crash_app.build(None, False, _EVENTS)
    run = ps.Spark(groups="auto", batch_events=25).start_groups(app.graph(), app.name, planner=AtOnce())
    summary = ended(run)
    assert run.plan is not None
    assert summary.complete
    assert summary.groups == 2
    assert {batch.group for batch in run.batches} == {None, 0, 1}
    check({name: sink.rows() for name, sink in sinks.items()}, crash_reference(False))


@pytest.mark.slow
def test_groups_outlive_a_restart_and_are_not_mixed_up(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint, out = tmp_path / "checkpoint", tmp_path / "out"
    app, _ = crash_app.build(out, False, _EVENTS)
    queries = [node.id for node in app.graph() if node.kind == "sink"]
    stopped_after(ps.Spark(checkpoint=checkpoint, batch_events=75), app, 1)  # all in one group

    named = [queries[0::2], queries[1::2]]  # divided, with the state of two batches
    app, _ = crash_app.build(out, False, _EVENTS)
    run = ps.Spark(groups=named, checkpoint=checkpoint, batch_events=75).start_groups(app.graph(), app.name)
    while len(run.batches) < 2 and not run.wait(0.05):
        pass
    run.stop()
    assert run.wait(_PATIENCE_S)
    run.finish()
    assert not run.changes

    app, _ = crash_app.build(out, False, _EVENTS)
    with pytest.raises(StateError, match='write groups="auto" to go on with them'):
        app.run(on=ps.Spark(checkpoint=checkpoint))
    with pytest.raises(StateError, match="the groups have changed"):
        app.run(on=ps.Spark(groups=[queries], checkpoint=checkpoint))
    summary = app.run(on=ps.Spark(groups="auto", checkpoint=checkpoint, batch_events=75))
    assert summary.complete
    assert summary.groups == 2
    check(written(out), crash_reference(False))


def test_what_fails_in_one_group_ends_the_run(spark: SparkSession) -> None:
    app = ps.App("failing")
    rows = [{"ts": number, "x": number} for number in range(40)]
    events = app.source("events", ps.sources.Rows(rows, {"ts": "timestamp", "x": "int64"}), event_time="ts")
    app.sink("fine", events.deduplicate("x"), ps.sinks.Memory())
    app.sink("broken", events, ps.sinks.Callback(_fails))
    with pytest.raises(ps.PenstockError, match="sink of query 'broken' failed"):
        app.run(on=ps.Spark(groups=[["fine"], ["broken"]], batch_events=10))


def _fails(rows: list[dict[str, Any]]) -> None:
    raise ValueError("no more")


def ended(run: GroupedRun) -> Any:
    assert run.wait(_PATIENCE_S)
    return run.finish()
