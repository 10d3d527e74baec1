"""A match by start on Spark: the rows of a sequential match in its order, while tasks, routes and the degree
change, and after a kill."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import penstock as ps
from penstock.engine.settings import Settings
from tests.cep.strategies import specs, streams
from tests.cep.test_by_start import Rows, app_of, degrees, matches, with_rows
from tests.spark import by_start_app
from tests.spark.in_process import run_in_process
from tests.spark.processes import driver

_PATIENCE_S = 300.0

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


@cache
def sequential() -> dict[str, Rows]:
    """The rows of the app without a degree, on one node."""
    app, sinks = by_start_app.build(None, None)
    app.run(on=ps.Node(workers=1))
    found = {name: sink.rows() for name, sink in sinks.items()}
    assert min(map(len, found.values())) > 5
    assert len(found["swings"]) > 500
    return found


def killed(folder: Path, points: Sequence[str], task_counts: Sequence[int | None], batch_events: int) -> None:
    """Runs until each of the points in turn, every time with other tasks, then to the end."""
    tasks = itertools.cycle(task_counts)
    for point in points:
        with driver(*_arguments(folder, next(tasks), batch_events), env={"CRASH_KILL_AT": point}) as process:
            out, err = process.communicate(timeout=_PATIENCE_S)
        assert process.returncode == -signal.SIGKILL, f"not killed at '{point}'\n{out}\n{err}"
    with driver(*_arguments(folder, next(tasks), batch_events)) as process:
        out, err = process.communicate(timeout=_PATIENCE_S)
    assert process.returncode == 0, err
    assert out.endswith("complete: True\n"), out
    for query, rows in sequential().items():
        found: Rows = [_plain(row) for row in pq.read_table(folder / "out" / query).to_pylist()]
        if query == "late":  # they come as they are read
            found, rows = (sorted(one, key=lambda row: row["id"]) for one in (found, rows))
        assert found == rows, query


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Timestamps as numbers."""
    return {
        name: round(one.timestamp() * 1e6) if hasattr(one, "timestamp") else one for name, one in row.items()
    }


def _arguments(folder: Path, tasks: int | None, batch_events: int) -> list[str]:
    return ["tests.spark.by_start_app", str(folder), str(tasks), str(batch_events)]


def test_spark_gives_the_rows_of_a_sequential_match_in_its_order(spark: SparkSession) -> None:
    app, sinks = by_start_app.build(None, by_start_app.DEGREE)
    app.run(on=ps.Spark(tasks=3, batch_events=300))
    for query, rows in sequential().items():
        found = sinks[query].rows()
        assert found == rows if query != "late" else len(found) == len(rows), query


@pytest.mark.slow  # it starts Spark twice
def test_a_kill_and_other_tasks_change_neither_rows_nor_order(tmp_path: Path) -> None:
    killed(tmp_path, ["state written:7"], [2, 3], batch_events=200)


@pytest.mark.slow
def test_kills_at_many_points_change_neither_rows_nor_order(tmp_path: Path) -> None:
    points = [
        "manifest renamed:3",
        "state loaded:4",
        "one sink written:2",
        "state half written:5",
        "task done:4",
    ]
    killed(tmp_path, points, [2, 4, None, 3], batch_events=60)
