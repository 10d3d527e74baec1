"""The rule above all others on real Spark: graphs with every operator, cut into batches, on one task and on
several, must give the rows of the reference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import penstock as ps
from tests.engine.test_equivalence import compare, described, expected_of
from tests.graphs.graph_strategies import CATALOGUE, Drawn, few, random_graphs

runtimes = st.builds(ps.Spark, tasks=st.sampled_from((None, 1, 2, 3)), batch_events=st.integers(5, 120))


_NAMES = sorted(CATALOGUE)
#: Several graphs as queries of one app: a run on Spark takes seconds, however many.
_PARTS = [tuple(_NAMES[part::4]) for part in range(4)]


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, len(_PARTS)))]
)
def test_every_operator_gives_the_rows_of_the_reference(part: int, spark: SparkSession) -> None:
    @settings(max_examples=1)
    @given(few(*_PARTS[part]), runtimes)
    def check(one: Drawn, runtime: ps.Spark) -> None:
        check_run(one, runtime)

    check()


@pytest.mark.parametrize("tasks", [None, 2])
def test_two_sources_without_any_state_are_read_to_their_ends(tasks: int | None, spark: SparkSession) -> None:
    app, sinks = ps.App("stateless"), {}
    for name in ("some", "others"):
        rows = [{"ts": number, "x": number} for number in range(10)]
        source = ps.sources.Rows(rows, {"ts": "timestamp", "x": "int64"})
        sinks[name] = ps.sinks.Memory()
        app.sink(
            f"even_{name}",
            app.source(name, source, event_time="ts").filter(ps.col("x") % 2 == 0),
            sinks[name],
        )
    summary = app.run(on=ps.Spark(tasks=tasks, batch_events=4))
    assert summary.complete
    assert [sorted(row["x"] for row in sink.rows()) for sink in sinks.values()] == [[0, 2, 4, 6, 8]] * 2


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_random_graphs_give_the_rows_of_the_reference(part: int, spark: SparkSession) -> None:
    @settings(settings.get_profile("thorough"), max_examples=5)
    @given(random_graphs, runtimes)
    def check(one: Drawn, runtime: ps.Spark) -> None:
        check_run(one, runtime)

    check()


def check_run(one: Drawn, runtime: ps.Spark) -> None:
    built = one.build()
    reference = expected_of(one)
    summary = built.app.run(on=runtime)
    compare(built.results(), reference.sinks, one, built, str(runtime))
    assert summary.complete
    expected_late = {name: count for name, count in reference.late_counts.items() if count}
    assert summary.late == expected_late, f"late counts differ\n{described(one, built, str(runtime))}"
