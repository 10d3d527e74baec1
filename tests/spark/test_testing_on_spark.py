"""Trials lead a run on Spark as they lead one on a node: the same tapes and results, also after an end."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

import penstock as ps
from penstock.testing import Trial
from tests.test_testing import SECOND, Traffic, car


def test_a_trial_settles_and_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    traffic = Traffic()
    with Trial(traffic.app, on=ps.Spark(checkpoint=tmp_path / "state")) as trial:
        traffic.cars.add([car(5), car(9), car(20, lane=2)])
        trial.settle()
        assert traffic.counted == []
        traffic.cars.watermark(60 * SECOND)
        trial.settle()
        assert traffic.counted == [(1, 2), (2, 1)]
        trial.restart()
        traffic.cars.add([car(59), car(61)])
        summary = trial.finish()
    assert summary.complete
    assert traffic.counted == [(1, 1), (1, 2), (2, 1)]
    assert [row["ts"] for row in traffic.late.rows()] == [59 * SECOND]
