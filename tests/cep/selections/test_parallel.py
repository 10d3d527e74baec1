"""Parallel detection gives what one detector gives: the same matches in the same order, whatever the
degree, its changes, the policy, the threads and the cuts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.cep.selections.degree_control import DegreeControl
from penstock.cep.selections.splitter_operator import SplitterOperator
from penstock.engine.seat.execution import Execution
from penstock.engine.seat.settings import Settings
from penstock.metrics.degree import DegreeMetrics
from penstock.query.patterns.detecting import ASSIGNMENTS
from penstock.scaling.planner import QueueingPlanner
from penstock.scaling.profiles import measure_profile
from penstock.scaling.slices import Slicing
from tests.cep.selections.detection_cases import FAMILIES, TAGS, Row, app_of, expected, make_rows, rows_of


def run(
    rows: list[Row],
    family: str,
    node: ps.Node,
    degree: int | ps.Degree = 1,
    assignment: str = "round_robin",
) -> tuple[list[Row], Any]:
    app, sink = app_of(rows, family, degree, assignment)
    summary = node.run(app.graph())
    return rows_of(sink), summary


drawn_row = st.tuples(
    st.integers(0, 3),
    st.integers(-3, 0),
    st.integers(0, 2),
    st.integers(0, 2),
    st.none() | st.integers(0, 9),
)
rows_strategy = st.lists(drawn_row, max_size=50)


nodes = st.builds(
    ps.Node,
    workers=st.integers(1, 3),
    scheduling=st.sampled_from(["state", "congestion", "round_robin"]),
    block_events=st.integers(2, 64),
    source_batch=st.integers(1, 20),
    threads=st.sampled_from(["pool", "pool", "per_operator"]),
    memory=st.sampled_from(["blocks", "queues"]),
)


@pytest.mark.parametrize("family", FAMILIES)
def test_parallel_is_sequential_whatever_the_degree_and_its_changes(family: str) -> None:
    @settings(deadline=None, max_examples=15)
    @given(
        rows_strategy,
        nodes,
        st.integers(1, 5),
        st.lists(st.tuples(st.integers(0, 50), st.integers(1, 5)), max_size=6),
        st.sampled_from(ASSIGNMENTS),
    )
    def check(
        drawn: list[tuple[int, int, int, int, int | None]],
        node: ps.Node,
        start: int,
        changes: list[tuple[int, int]],
        assignment: str,
    ) -> None:
        rows = make_rows(drawn)
        found, summary = run(rows, family, node, ps.Degree(start, 5, tuple(changes)), assignment)
        assert found == expected(rows, family)
        degrees = summary.metrics.degrees
        assert all(1 <= one.observed == one.requested <= one.most for one in degrees.values())
        assert set(degrees) == ({"matches"} if rows else set())

    check()


def test_the_degree_changes_where_it_is_asked_to_and_buffers_are_freed() -> None:
    rows = make_rows([(1, 0, n % 2, n % 3, n % 7) for n in range(3000)])
    degree = ps.Degree(1, 4, ((500, 4), (1000, 2), (1500, 3)))
    app, sink = app_of(rows, "sequence", degree, "round_robin")
    execution = Execution(app.graph(), Settings(workers=2, source_batch=50, block_events=64))
    execution.start()
    assert execution.wait(300)
    summary = execution.finish()
    assert rows_of(sink) == expected(rows, "sequence")
    splitter = next(v.operator for v in execution._vertices if v.operator.id == "matches.splitter")
    assert isinstance(splitter, SplitterOperator)
    assert splitter.degrees_seen == [1, 4, 2, 3]
    assert splitter._buffer.events < 3000
    busy = {one.id: one.emitted for one in summary.metrics.operators if ".instance" in one.id}
    assert all(busy[f"matches.instance{number}"] > 0 for number in range(4))
    assert summary.metrics.degrees == {"matches": DegreeMetrics(3, 3, 3, 4)}
    assert "'matches': degree 3" in str(summary)


def test_queueing_theory_sets_the_degree_of_a_running_detector() -> None:
    """100 events a second of 20 ms offer a load of 2, then 200 of 40 ms one of 8."""
    profile = measure_profile("rising", [100.0, 200.0], lambda rate: np.full(20, 0.02 * (rate / 100.0)))
    random = np.random.default_rng(6)
    between = np.concatenate((random.exponential(0.01, 1000), random.exponential(0.005, 1000)))
    times = np.cumsum(between * 1e6).astype(int).tolist()
    rows = [
        {"ts": ts, "kind": n % 2, "tag": TAGS[n % 2], "key": n % 3, "value": n % 5}
        for n, ts in enumerate(times)
    ]
    control = ps.Degree(
        most=6, control=lambda: DegreeControl(QueueingPlanner(profile), Slicing(arrivals=250))
    )
    node = ps.Node(workers=2, source_batch=100, block_events=64)
    found, summary = run(rows, "sequence", node, control)
    assert found == expected(rows, "sequence")
    told = summary.metrics.degrees["matches"]
    assert told.planned in (8, 9, 10)  # what it would take
    assert (told.requested, told.observed, told.most) == (6, 6, 6)
    assert "degree 6, requested 6, planned" in str(told)
