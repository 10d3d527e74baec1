"""Events that functions fail for, on Spark: set aside as in the reference, also by a run that goes on where
another ended with the error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from pyspark.sql import SparkSession

import penstock as ps
from penstock.query.errors import RunError
from penstock.query.user_functions import Context, ProcessFunction
from tests.graphs.graph_strategies import Drawn, few
from tests.reference import Row, run_reference
from tests.spark.checkpoint.test_resume import check
from tests.spark.test_equivalence import check_run

_COLUMNS = {"ts": "timestamp", "k": "int64", "n": "int64"}
_ROWS = [{"ts": n * 1_000, "k": n % 3, "n": n} for n in range(120)]


class Counting(ProcessFunction):
    """Counts by key, and fails for the event 70 after it has counted it."""

    def on_event(self, event: Row, context: Context) -> Iterator[Row]:
        context.state["count"] += 1
        if event["n"] == 70:
            raise ValueError("seventy")
        yield {"k": event["k"], "count": context.state["count"]}


def counting(out: Path | None, on_error: str) -> ps.App:
    app = ps.App("counting")
    events = app.source("events", ps.sources.Rows(_ROWS, _COLUMNS), event_time="ts")
    counts = events.key_by("k").process(
        Counting(), {"k": "int64", "count": "int64"}, {"count": "int64"}, on_error=on_error, name="counting"
    )
    streams = {"counts": counts, "others": events}
    if on_error == "set_aside":
        streams["failed"] = counts.failed()
    for name, stream in streams.items():
        app.sink(name, stream, ps.sinks.Memory() if out is None else ps.sinks.Parquet(out / name))
    return app


def test_failing_functions_give_the_rows_of_the_reference(spark: SparkSession) -> None:
    @settings(max_examples=1)
    @given(few("failing functions"))
    def check_one(one: Drawn) -> None:
        check_run(one, ps.Spark(tasks=2, batch_events=40))

    check_one()


@pytest.mark.parametrize("tasks", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_a_run_that_ended_with_the_error_goes_on_setting_it_aside(
    tasks: int | None, spark: SparkSession, tmp_path: Path
) -> None:
    runtime = ps.Spark(checkpoint=tmp_path / "checkpoint", tasks=tasks, batch_events=30)
    with pytest.raises(RunError, match=r"'Counting.on_event' raised ValueError: seventy: step 'counting'"):
        counting(tmp_path / "out", "stop").run(on=runtime)
    summary = counting(tmp_path / "out", "set_aside").run(on=runtime)
    assert summary.complete
    assert summary.changes == ""
    assert summary.failed == {"counting": 1}
    assert summary.progress.failed == 1
    assert "events that 'counting' failed for, set aside: 1" in str(summary)
    found = {name: pq.read_table(tmp_path / "out" / name).to_pylist() for name in ("counts", "others")}
    expected = run_reference(counting(None, "set_aside").graph(), {"events": [_ROWS]})
    (failed,) = pq.read_table(tmp_path / "out" / "failed").to_pylist()
    assert {name: failed[name] for name in ("k", "n", "error", "step")} == {
        "k": 1, "n": 70, "error": "ValueError: seventy", "step": "counting",
    }  # fmt: skip
    del expected["failed"]
    for rows in (found["others"], expected["others"]):
        for row in rows:
            del row["ts"]
    check(found, expected)
