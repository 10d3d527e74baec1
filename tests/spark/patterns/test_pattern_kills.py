"""Patterns on Spark whose drivers are killed and started again: the rows are those of a run that was left
alone, on one node."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.cep.selections.detection_cases import expected, plain
from tests.spark.patterns import adaptive_app, by_start_app, detect_app, pattern_set_app
from tests.spark.processes import to_the_end, until_killed

pytestmark = pytest.mark.slow
Rows = list[dict[str, Any]]


def written(folder: Path) -> Rows:
    """The rows of a Parquet sink, with timestamps as numbers."""
    rows = pq.read_table(folder).to_pylist()
    return [{name: plain(value) for name, value in row.items()} for row in rows]


def in_sequence(folder: Path) -> Rows:
    return sorted(written(folder), key=lambda row: row["sequence"])


# -- a detector whose degree changes ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "points", "task_counts"),
    [
        ("sequence", ["manifest renamed:4"], [2, 2]),
        *[
            (
                family,
                [
                    "state half written:5",
                    "state loaded:3",
                    "one sink written:2",
                    "manifest not renamed:2",
                    "closing begins:1",
                ],
                [3, 2, None, 2, 4, 2],
            )
            for family in ("sequence", "rows", "time windows")
        ],
    ],
    ids=["sequence, while its degree changes", "sequence", "rows", "time windows"],
)
def test_a_detector_goes_on(
    family: str, points: Sequence[str], task_counts: Sequence[int | None], tmp_path: Path
) -> None:
    *tasks, last = task_counts
    for point, count in zip(points, tasks, strict=True):
        until_killed("tests.spark.patterns.detect_app", str(tmp_path), family, str(count), at=point)
    out = to_the_end("tests.spark.patterns.detect_app", str(tmp_path), family, str(last))
    assert out.endswith("degree 3\n"), out  # the last change has happened, and the degree is told of
    wanted = expected(detect_app.rows(), family)
    assert len(wanted) > 300
    assert in_sequence(tmp_path / "out") == wanted


def test_a_degree_that_follows_the_arrivals_goes_on(tmp_path: Path) -> None:
    """Killed while there are many instances, and again while there are few."""
    module, folder = "tests.spark.patterns.adaptive_app", str(tmp_path)
    said = until_killed(module, folder, "2", at="manifest renamed:8")
    said += until_killed(module, folder, "3", at="state loaded:5")
    said += to_the_end(module, folder, "2")
    told = [json.loads(line)["matches"] for line in said.splitlines() if '"matches"' in line]
    assert in_sequence(tmp_path / "out") == expected(adaptive_app.rows(), "sequence")
    assert len({one["planned"] for one in told}) >= 3
    assert max(one["observed"] for one in told) >= 7
    assert told[-1]["observed"] <= 3


# -- matches by start, and sets of patterns --------------------------------------------------------


def kill(
    module: str, folder: Path, points: Sequence[str], task_counts: Sequence[int | None], batch_events: int
) -> None:
    """Runs until each of the points in turn, every time with other tasks, then to the end."""
    tasks = itertools.cycle(task_counts)
    for point in points:
        until_killed(module, str(folder), str(next(tasks)), str(batch_events), at=point)
    to_the_end(module, str(folder), str(next(tasks)), str(batch_events))


@pytest.mark.parametrize(
    ("points", "task_counts", "batch_events"),
    [
        (["state written:7"], [2, 3], 200),
        (
            [
                "manifest renamed:3",
                "state loaded:4",
                "one sink written:2",
                "state half written:5",
                "task done:4",
            ],
            [2, 4, None, 3],
            60,
        ),
    ],
    ids=["once", "many times"],
)
def test_a_match_by_start_goes_on_in_its_order(
    points: Sequence[str], task_counts: Sequence[int | None], batch_events: int, tmp_path: Path
) -> None:
    kill("tests.spark.patterns.by_start_app", tmp_path, points, task_counts, batch_events)
    for query, rows in by_start_app.sequential().items():
        found = written(tmp_path / "out" / query)
        if query == "late":  # they come as they are read
            found, rows = (sorted(one, key=lambda row: row["id"]) for one in (found, rows))
        assert found == rows, query


@pytest.mark.parametrize(
    ("points", "task_counts", "batch_events"),
    [
        (["manifest not renamed:7"], [2, 3], 40),
        (
            [
                "first manifest:1",
                "manifest renamed:4",
                "state half written:3",
                "one sink written:5",
                "state loaded:4",
                "manifest not renamed:3",
                "task done:5",
                "closing begins:1",
            ],
            [2, None, 3, 1],
            30,
        ),
    ],
    ids=["between the rows and the manifest", "many times"],
)
def test_a_set_of_patterns_goes_on(
    points: Sequence[str], task_counts: Sequence[int | None], batch_events: int, tmp_path: Path
) -> None:
    kill("tests.spark.patterns.pattern_set_app", tmp_path, points, task_counts, batch_events)
    assert pattern_set_app.ordered(written(tmp_path / "out")) == pattern_set_app.sequential()
