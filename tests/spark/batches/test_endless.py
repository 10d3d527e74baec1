"""Deduplication for ever tells how large it becomes, on Spark."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.operators.run import endless
from tests.engine.seat.test_endless import app, told


@pytest.mark.parametrize("tasks", [1, 2])
def test_deduplication_for_ever_is_told_at_each_doubling(
    tasks: int,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(endless, "FIRST_BYTES", 400_000)
    app().run(on=ps.Spark(checkpoint=tmp_path, tasks=tasks, batch_events=8_000))
    keys = told("\n".join(caplog.messages))
    assert 7_000 < keys[0] < 25_000
    assert 2 <= len(keys) <= 4
    assert all(later >= 1.5 * earlier for earlier, later in pairwise(keys))
