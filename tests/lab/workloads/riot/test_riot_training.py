"""Training: rows on disk, read by ranges, quartiles, and models whose content can be told by hand."""

from __future__ import annotations

import pickle
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lab.workloads.riot.prediction import INTERCEPT, WEIGHTS
from lab.workloads.riot.settings import OBSERVATIONS, RiotSettings
from lab.workloads.riot.table_insert import TableInsert
from lab.workloads.riot.trainers import decision_tree, linear_regression, quartile_classes
from lab.workloads.riot.training_rows import RowsReader, timer, training_rows, write_training_table
from penstock.query.errors import QueryError, RunError
from penstock.query.types import Schema
from tests.connectors.drain import rows_of

SMALL = RiotSettings(table_rows=450, range_rows=200, events_per_second=10, base_ms=1)


def as_text(rows: list[list[Any]]) -> str:
    return "\n".join(",".join(str(value) for value in row) for row in rows)


def test_the_timer_asks_for_ranges_round_and_round() -> None:
    rows = rows_of(timer(SMALL, limit=4))
    assert [(row["message"], row["first_row"], row["last_row"]) for row in rows] == [
        (0, 0, 199),
        (1, 100, 299),
        (2, 200, 399),
        (3, 49, 248),  # 251 places to start from
    ]
    assert [row["ts"] for row in rows] == [1_000, 101_000, 201_000, 301_000]


def test_rows_are_read_from_the_table_by_their_numbers(tmp_path: Path) -> None:
    reader = RowsReader(write_training_table(tmp_path / "training.sqlite", SMALL))
    expected = training_rows(SMALL)[7:9].tolist()
    for reading in (reader, pickle.loads(pickle.dumps(reader))):
        assert [
            [float(value) for value in line.split(",")] for line in reading.read(7, 8).split("\n")
        ] == expected
    assert reader.read(449, 900).count("\n") == 0
    with pytest.raises(ValueError, match="no training rows from 450 to 460"):
        reader.read(450, 460)


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot read training rows from '.*nowhere.sqlite'"):
        RowsReader(tmp_path / "nowhere.sqlite").read(0, 1)


def test_air_quality_in_training_rows_follows_the_other_observations() -> None:
    model = linear_regression(as_text(training_rows(RiotSettings()).tolist()))
    assert model["intercept"] == pytest.approx(INTERCEPT, abs=0.5)
    assert model["weights"] == pytest.approx(WEIGHTS, rel=0.1)


def test_a_regression_finds_the_plane_that_rows_lie_on() -> None:
    random = np.random.default_rng(0)
    rows = [
        [t, h, light, d, 2 * t - 3 * h + 0.5 * d + 1]
        for t, h, light, d in random.integers(0, 50, (20, 4)).tolist()
    ]
    model = linear_regression(as_text(rows))
    assert model["weights"] == pytest.approx({"temperature": 2.0, "humidity": -3.0, "dust": 0.5})
    assert model["intercept"] == pytest.approx(1.0)


def test_a_tree_splits_half_way_between_the_classes() -> None:
    rows = [[t, 50, 1, 100, 20, "BAD" if t <= 7 else "GOOD"] for t in range(1, 15)]
    assert decision_tree(as_text(rows)) == {
        "nodes": [
            {"observation": "temperature", "at_most": 7.5, "left": 1, "right": 2},
            {"class": "BAD"},
            {"class": "GOOD"},
        ]
    }


@pytest.mark.parametrize(
    ("air", "classes"),
    [
        # Quartiles of 1, 3, 5, 7 at positions 1.25, 2.5, 3.75: 1.5, 4, 6.5.
        ([5, 1, 3, 7], ["VERYGOOD", "BAD", "GOOD", "EXCELLENT"]),
        # 1, 1, 7: the limits belong to the lower quarter.
        ([1, 1, 1, 9], ["BAD", "BAD", "BAD", "EXCELLENT"]),
        ([4], ["BAD"]),
        # 1.75, 3.5, 5.25
        ([1, 2, 3, 4, 5, 6], ["BAD", "GOOD", "GOOD", "VERYGOOD", "VERYGOOD", "EXCELLENT"]),
    ],
)
def test_classes_are_quarters_of_all_values(air: list[float], classes: list[str]) -> None:
    assert quartile_classes(np.array(air, np.float64)) == classes


def test_training_rows_have_a_column_per_observation() -> None:
    assert training_rows(SMALL).shape == (450, len(OBSERVATIONS))


def count(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        found: int = connection.execute("SELECT count(*) FROM messages").fetchone()[0]
        return found


def test_rows_are_inserted_a_hundred_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "table" / "messages.sqlite"
    sink = TableInsert(path)
    writer = sink.open(Schema.of({"message": "int64", "type": "string?"}))
    seen = []
    for first, rows in ((0, 99), (99, 1), (100, 130)):
        numbers = list(range(first, first + rows))
        writer.write(pa.RecordBatch.from_pydict({"message": numbers, "type": [None] * rows}))
        seen.append(count(path))
    writer.close(True)
    assert [*seen, count(path)] == [0, 100, 200, 230]
    assert "batches of 100" in sink.guarantee
    with pytest.raises(RunError, match="exists and is not empty"):
        sink.open(Schema.of({"message": "int64"}))


def test_a_batch_of_no_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="batch must be positive: got 0"):
        TableInsert(tmp_path / "x", batch=0)
