"""A degree planned from the arrivals, on real Spark: it follows the rate, and the rows are those of one
detector."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import Any

from pyspark.sql import SparkSession

import penstock as ps
from tests.cep.selections.detection_cases import expected, rows_of
from tests.spark.patterns import adaptive_app

Told = list[dict[str, Any]]


def check_degrees(told: Told) -> None:
    """Up when arrivals come six times as fast, and down again; what is asked for is there one batch later."""
    planned = [value for value, _ in groupby(one["planned"] for one in told)]
    assert len(planned) >= 3, planned
    assert min(planned) <= 3
    assert max(planned) >= 7
    assert planned[-1] <= 3, planned
    observed = [one["observed"] for one in told]
    assert max(observed) == min(max(planned), adaptive_app.MOST)
    assert observed[-1] <= 3
    for before, after in pairwise(told):
        assert after["requested"] <= adaptive_app.MOST
        assert before["most"] == adaptive_app.MOST
        # every batch has events, so what was planned in one is what instances there are in the next
        assert after["observed"] in (before["planned"], min(before["planned"], adaptive_app.MOST))


def test_the_degree_follows_the_rate_of_arrivals(spark: SparkSession) -> None:
    app, sink = adaptive_app.build()
    told: Told = []
    runtime = ps.Spark(tasks=2, batch_events=2 * adaptive_app.BATCH_EVENTS)
    summary = runtime.run(
        app.graph(), app.name, on_progress=lambda batch: told.append(dict(batch.degrees.get("matches", {})))
    )
    assert summary.complete
    assert rows_of(sink) == expected(adaptive_app.rows(), "sequence")
    check_degrees([one for one in told if one])
    assert summary.degrees["matches"].observed <= 3
