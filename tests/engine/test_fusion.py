"""Operators that run in one kernel give the same rows and the same counts as by themselves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock import col, count, sum_, tumbling
from penstock.metrics.operators import OperatorMetrics
from tests.engine.test_equivalence import compare, expected_of
from tests.graphs.graph_strategies import Drawn, few_random_graphs

SCHEMA = {"ts": "timestamp", "k": "int64?", "v": "float64?"}
TABLE = {"k": [0, 1, 2], "weight": [1.5, None, 2.5]}


def rows(count_: int) -> list[dict[str, Any]]:
    """Some keys and values are null, some keys are in no table, some values are no number."""
    return [
        {
            "ts": i * 1_000 - (5_000_000 if i % 97 == 50 else 0),
            "k": None if i % 11 == 3 else i % 5,
            "v": None if i % 7 == 2 else float("nan") if i % 13 == 4 else float(i),
        }
        for i in range(count_)
    ]


def run(node: ps.Node, *, left: bool, ends: bool) -> tuple[list[dict[str, Any]], dict[str, OperatorMetrics]]:
    """A row of steps before a window, or before a sink; the result and what each operator did."""
    app = ps.App("fused")
    stream = app.source("s", ps.sources.Rows(rows(3_000), SCHEMA), event_time="ts", lateness="10ms")
    chain = (
        stream.filter(col("k").is_null() | (col("k") != 1), name="first")
        .with_columns(twice=col("v") * 2, name="twice")
        .lookup(TABLE, on="k", columns=["weight"], how="left" if left else "inner", name="weights")
        .filter((col("twice") > 20) | col("weight").is_null(), name="second")
    )
    result = ps.sinks.Memory()
    if ends:
        app.sink("out", chain, result)
    else:
        total = (
            chain.key_by("k")
            .window(tumbling("100ms"))
            .agg(n=count(), total=sum_(col("twice") * col("weight")), name="window")
        )
        app.sink("out", total, result)
    summary = app.run(on=node)
    plain = [{name: repr(value) for name, value in row.items()} for row in result.rows()]
    return sorted(plain, key=str), {one.id: one for one in summary.metrics.operators}


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("block_events", [3, 64, 65_536])
def test_rows_and_counts_of_every_operator_are_the_same(left: bool, ends: bool, block_events: int) -> None:
    fused, together = run(ps.Node(block_events=block_events, max_chunks=2), left=left, ends=ends)
    single, apart = run(ps.Node(block_events=block_events, fusion=False), left=left, ends=ends)
    assert fused == single
    assert together.keys() == apart.keys()
    for name, one in apart.items():
        other = together[name]
        assert (other.kind, other.processed, other.emitted, other.late, other.pending) == (
            one.kind,
            one.processed,
            one.emitted,
            one.late,
            0,
        ), name
    assert together["first"].turns == together["second"].turns  # they have their turns together
    assert all(one.busy_ns >= 0 for one in together.values())


def test_explain_says_whose_kernel_a_step_runs_in() -> None:
    app = ps.App("fused")
    stream = app.source("s", ps.sources.Rows([], SCHEMA), event_time="ts").filter(col("v") > 0, name="some")
    app.sink("out", stream.window(tumbling("1s")).agg(n=count(), name="window"), ps.sinks.Discard())
    assert "@ in the kernel of window" in app.explain(on=ps.Node())
    assert "in the kernel of" not in app.explain(on=ps.Node(fusion=False))


def test_the_steps_before_a_keyed_operator_of_several_tasks_feed_its_splitter() -> None:
    result, together = run(ps.Node(tasks=2), left=False, ends=False)
    expected, apart = run(ps.Node(fusion=False), left=False, ends=False)
    assert result == expected
    assert together["second"].emitted == apart["second"].emitted


def test_counts_do_not_change_with_fusion_off() -> None:
    @settings(max_examples=4)
    @given(few_random_graphs(), st.integers(2, 64))
    def check(one: Drawn, block_events: int) -> None:
        expected_of(one)  # refuses graphs whose order is not defined
        fused, single = one.build(), one.build()
        counts = []
        for built, fusion in ((fused, True), (single, False)):
            node = ps.Node(workers=2, fusion=fusion, block_events=block_events)
            operators = built.app.run(on=node).metrics.operators
            counts.append({each.id: (each.processed, each.emitted, each.late) for each in operators})
        compare(fused.results(), single.results(), one, fused, "fusion, expected without")
        assert counts[0] == counts[1]

    check()
