"""How a batch runs: each row is one case."""

from __future__ import annotations

import pytest

from penstock.spark.batches.ways.way import NATIVE_ROWS, Terms, Waiting, Way, choose

ONE, SEVERAL = Terms(one_reads=True, driver_works=True), Terms(one_reads=False, driver_works=True)
GROUP, GROUPED = Terms(one_reads=True, driver_works=False), Terms(one_reads=False, driver_works=False)


def _frame(rows: int, *, aggregates: bool = False, filters: bool = True, tells: bool = True) -> Waiting:
    return Waiting(rows, aggregates, filters, tells)


FEW, MANY = _frame(NATIVE_ROWS - 1), _frame(NATIVE_ROWS)
SUMS = _frame(NATIVE_ROWS, aggregates=True)


@pytest.mark.parametrize(
    ("terms", "tasks", "waiting", "way"),
    [
        # sources of ours, and the batch that closes everything
        (ONE, 1, None, Way.WHOLE),
        (ONE, 2, None, Way.ROUTED),
        (SEVERAL, 1, None, Way.HERE),
        (SEVERAL, 2, None, Way.ROUTED),
        (GROUP, 1, None, Way.WHOLE),
        (GROUPED, 1, None, Way.ROUTED),
        (GROUPED, 2, None, Way.ROUTED),
        # a DataFrame
        (ONE, 1, FEW, Way.WHOLE),
        (ONE, 2, FEW, Way.ROUTED),
        (ONE, 1, MANY, Way.WHOLE),  # who gets all rows might as well do the first steps
        (ONE, 2, MANY, Way.FILTERED),
        (SEVERAL, 1, MANY, Way.HERE),
        (SEVERAL, 2, MANY, Way.FILTERED),
        (GROUPED, 2, MANY, Way.FILTERED),
        (ONE, 1, SUMS, Way.GROUPS),
        (GROUP, 1, SUMS, Way.GROUPS),
        (ONE, 2, SUMS, Way.ROUTED),  # its groups go to one task
        (SEVERAL, 1, SUMS, Way.HERE),
        (ONE, 1, _frame(NATIVE_ROWS - 1, aggregates=True), Way.WHOLE),
        (ONE, 2, _frame(NATIVE_ROWS, filters=False), Way.ROUTED),
        # bad records would be left out uncounted
        (ONE, 1, _frame(NATIVE_ROWS, aggregates=True, tells=False), Way.WHOLE),
        (ONE, 2, _frame(NATIVE_ROWS, tells=False), Way.ROUTED),
    ],
)
def test_a_batch_runs(terms: Terms, tasks: int, waiting: Waiting | None, way: Way) -> None:
    assert choose(terms, tasks, waiting) is way


def test_spark_alone_sees_the_rows_of_native_ways() -> None:
    assert {way for way in Way if way.is_native} == {Way.GROUPS, Way.FILTERED}
