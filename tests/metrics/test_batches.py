"""Batches of a run: as JSON lines that survive a crash, and summed up."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.metrics.batches import BatchProgress, ProgressLog, RunProgress, quantile, read_progress
from tests.batch_progress import progress


def test_a_batch_is_one_line_of_json_and_back() -> None:
    line = progress(3).to_json()
    assert "\n" not in line
    assert json.loads(line)["watermark_us"] == {"cars": 1_699_999_999_000_000, "tolls": None}
    assert BatchProgress.from_json(line) == progress(3)


def test_the_log_is_read_while_it_is_written_and_goes_on_in_a_second_run(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "progress.jsonl"
    with ProgressLog(path) as log:
        log.write(progress(0))
        assert read_progress(path) == [progress(0)]
    with ProgressLog(path) as log:
        log.write(progress(1))
    assert read_progress(path) == [progress(0), progress(1)]


@given(st.integers(0, 2_000))
def test_a_line_that_a_crash_cut_off_costs_that_line_only(tmp_path_factory: Any, keep: int) -> None:
    path = tmp_path_factory.mktemp("log") / "progress.jsonl"
    with ProgressLog(path) as log:
        log.write(progress(0))
        log.write(progress(1))
    whole = path.read_bytes()
    path.write_bytes(whole[:keep])
    lines = whole.split(b"\n")
    intact = sum(keep >= len(b"\n".join(lines[: count + 1])) for count in range(2))
    assert [batch.batch_id for batch in read_progress(path)] == list(range(intact))
    with ProgressLog(path) as log:
        log.write(progress(2))
    assert [batch.batch_id for batch in read_progress(path)] == [*range(intact), 2]


def test_a_run_is_summed_up() -> None:
    run = RunProgress.of(progress(number) for number in range(101))
    assert (run.batches, run.rows_in, run.rows_out, run.late, run.bad_records) == (
        101,
        101_000,
        303,
        101,
        202,
    )
    assert run.rows_out_by_query == {"per_lane": 202, "fast é": 101}
    assert (run.median_batch_ms, run.p99_batch_ms) == (100.0, 149.0)
    assert run.median_parts_ms == {"read": 60.0, "engine": 30.0}
    assert run.p99_parts_ms == {"read": 109.0, "engine": 30.0}
    assert run.elapsed_s == (100 * 100 + 150) / 1e3
    assert run.last == progress(100)
    assert json.loads(json.dumps(run.to_dict()))["batch_parts_ms"] == run.median_parts_ms


def test_a_part_that_some_batches_do_not_have_counts_as_nothing_there() -> None:
    run = RunProgress.of([progress(0), progress(1), progress(2, parts_ms={"compact": 9.0})])
    assert run.median_parts_ms == {"read": 10.0, "engine": 30.0, "compact": 0.0}


def test_a_run_without_batches() -> None:
    run = RunProgress()
    assert run.elapsed_s == 0.0
    assert math.isnan(run.median_batch_ms)
    assert run.median_parts_ms == {}


def test_quantiles_by_hand() -> None:
    assert quantile([4, 1, 3], 0.5) == 3
    assert quantile([1, 2], 0.5) == 1.5
    assert quantile(range(1, 201), 0.99) == 198
    assert quantile([5], 0.99) == 5
