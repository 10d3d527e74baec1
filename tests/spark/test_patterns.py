"""Patterns on real Spark: the matches of the reference, whatever the tasks and batches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import penstock as ps
from tests.graph_strategies import Drawn, few
from tests.spark.test_equivalence import check_run

_NAMES = ("match", "match, all rows", "match after window", "process after match")


@pytest.mark.slow  # the default run has them among all operators
def test_patterns_give_the_rows_of_the_reference(spark: SparkSession) -> None:
    runtimes = st.builds(ps.Spark, tasks=st.sampled_from((1, 2, 3)), batch_events=st.integers(20, 120))

    @settings(max_examples=2)
    @given(few(*_NAMES), runtimes)
    def check(one: Drawn, runtime: ps.Spark) -> None:
        check_run(one, runtime)

    check()
