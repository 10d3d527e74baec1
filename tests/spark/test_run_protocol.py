"""All runtimes give runs that can be asked the same, and that come to the same."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

import penstock as ps
from penstock.engine.seat.execution import Execution
from penstock.metrics.summary import RuntimeRun, Summary
from penstock.spark.batches.run import SparkRun
from penstock.spark.groups.run import GroupedRun

_PATIENCE_S = 300.0


def _runs(node: Execution, batches: SparkRun, groups: GroupedRun) -> list[RuntimeRun[Summary, object]]:
    """Holds when types are checked."""
    return [node, batches, groups]


def _graph() -> Any:
    app = ps.App("traffic")
    rows = [{"ts": 1_000 * number, "lane": number % 3} for number in range(300)]
    late = [{"ts": 5, "lane": 0}] * 4
    source = ps.sources.Rows([*rows, *late], {"ts": "timestamp", "lane": "int64"})
    cars = app.source("cars", source, event_time="ts")
    counts = cars.key_by("lane").window(ps.tumbling("10ms")).agg(cars=ps.count(), name="per_lane")
    app.sink("counts", counts, ps.sinks.Memory())
    return app.graph()


def test_runs_of_all_runtimes_come_to_the_same(spark: SparkSession) -> None:
    runs: list[RuntimeRun[Summary, object]] = [
        ps.Node().start(_graph()),
        ps.Spark().start(_graph()),
        ps.Spark(groups=[["counts"]]).start_groups(_graph()),
    ]
    outcomes = []
    for run in runs:
        assert run.wait(_PATIENCE_S)
        summary, totals = run.finish(), run.totals()
        assert (totals.read, totals.written) == (summary.read, summary.written)
        assert (totals.late, totals.failed) == (sum(summary.late.values()), 0)
        outcomes.append(
            (
                summary.complete,
                summary.read,
                summary.written,
                summary.queries,
                summary.late,
                summary.failed,
                summary.bad_records,
                summary.open_windows,
            )
        )
    assert outcomes[0] == (True, 304, 90, 1, {"per_lane": 4}, {}, 0, 0)
    assert outcomes[1:] == [outcomes[0]] * 2
