"""A match by start on Spark: the rows of a sequential match in its order, while tasks, routes and the degree
change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import penstock as ps
from penstock.engine.seat.settings import Settings
from tests.cep.patterns.strategies import specs, streams
from tests.cep.patterns.test_by_start import Rows, app_of, degrees, matches, with_rows
from tests.spark.in_process import run_in_process
from tests.spark.patterns import by_start_app

engines = st.builds(Settings, block_events=st.sampled_from((4, 64, 1024)), turn_blocks=st.integers(1, 3))


def check(one: Any, rows: Rows, degree: ps.Degree, seed: int, engine: Settings, folder: Path) -> int:
    """Spark's tasks, in this process: cut, routed, repeated and moved at random."""
    assume(one is not None)
    spec, partitions = one[0], 1 + seed % 2
    app, found, late = app_of(spec, rows, degree, "3us", partitions)
    run_in_process(app.graph(), folder, seed, engine)
    sequential = matches(spec, rows, ps.Node(workers=1), None, "3us", partitions)
    assert found.rows() == sequential[0], spec.pattern
    assert sorted(map(repr, late.rows())) == sorted(map(repr, sequential[1]))
    return len(found.rows())


@pytest.mark.parametrize("contiguity", ["strict", "next", "any"])
def test_tasks_give_the_rows_of_a_sequential_match(contiguity: str, tmp_path: Path) -> None:
    counted: list[int] = []
    drawn = specs((), False, (contiguity,), ("no_skip", "to_next"), ("unrestricted",)).map(with_rows)

    @settings(max_examples=20)
    @given(drawn, streams(60), degrees(), st.integers(0, 2**16), engines)
    def compare(one: Any, rows: Rows, degree: ps.Degree, seed: int, engine: Settings) -> None:
        counted.append(check(one, rows, degree, seed, engine, tmp_path / "state"))

    compare()
    assert sum(counted) > 20, "too few matches to mean anything"


@pytest.mark.slow
@settings(settings.get_profile("thorough"), max_examples=60)
@given(
    specs((), True, after=("no_skip", "to_next"), consumption=("unrestricted",), rows=("one", "all")),
    streams(80),
    degrees(),
    st.integers(0, 2**16),
    engines,
)
def test_random_patterns_give_the_rows_of_a_sequential_match(
    tmp_path_factory: pytest.TempPathFactory,
    one: Any,
    rows: Rows,
    degree: ps.Degree,
    seed: int,
    engine: Settings,
) -> None:
    check(one, rows, degree, seed, engine, tmp_path_factory.getbasetemp() / "by_start")


# -- with Spark ------------------------------------------------------------------------------------


def test_spark_gives_the_rows_of_a_sequential_match_in_its_order(spark: SparkSession) -> None:
    app, sinks = by_start_app.build(None, by_start_app.DEGREE)
    app.run(on=ps.Spark(tasks=3, batch_events=300))
    for query, rows in by_start_app.sequential().items():
        found = sinks[query].rows()
        assert found == rows if query != "late" else len(found) == len(rows), query
