"""The baselines compute what Penstock computes: the same rows from the same files, by Spark's own means."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from lab.bench.plain_traffic import FanOut, OpenWindows, PlainQueries, PlainQuery, numbered
from lab.bench.queries import expected_rows, query_names, same_rows
from lab.bench.traffic_feed import MicroBatch, SinkArrivals, TrafficFiles
from lab.bench.yahoo.plain import YahooFiles, YahooRun, run_plain
from lab.workloads.yahoo.data import YahooSettings
from penstock.query.errors import PenstockError
from penstock.workloads.traffic.settings import TrafficSettings
from tests.spark.conftest import spark  # noqa: F401 - a fixture

SECONDS = 4
SETTINGS = TrafficSettings(cars=200, roads=4, frames_per_second=5, metres_per_car=60.0)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TrafficFiles:
    return TrafficFiles(tmp_path_factory.mktemp("frames"), SETTINGS, SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("baseline", [PlainQueries, FanOut])
def test_a_baseline_tells_the_same_rows_as_the_node_engine(
    spark: SparkSession,  # noqa: F811
    files: TrafficFiles,
    tmp_path: Path,
    baseline: type[PlainQueries] | type[FanOut],
) -> None:
    live, arrivals = tmp_path / "live", SinkArrivals()
    live.mkdir()
    names = query_names(3, files)
    cut = len(files.paths) // 2 + 1  # inside a second: a window comes in two batches
    for path in files.paths[:cut]:
        shutil.copy(path, live)
    system = baseline(spark, SETTINGS.roads, tmp_path / "checkpoints")
    system.start(live, names, arrivals)
    for path in files.paths[cut:]:
        shutil.copy(path, tmp_path / path.name).rename(live / path.name)
    for query in system.running:
        query.processAllAvailable()
    batches = system.batches()
    system.stop()

    expected = expected_rows(files, 3)
    # Event time never passes the last second, so its window stays open.
    assert set(arrivals.rows) == {place for place in expected if place[1] < (SECONDS - 1) * 1_000_000}
    assert all(same_rows(rows, expected[place]) for place, rows in arrivals.rows.items())
    assert len(batches) >= 2 * len(system.running)
    assert all(batch.ms >= sum(batch.parts_ms.values()) * 0.5 for batch in batches)


def test_queries_are_those_of_the_workload() -> None:
    assert PlainQuery.numbered(5, roads=50) == PlainQuery("top_1", 1, "top", 4)
    assert [query.name for query in numbered(["count_0", "speed_0"], 50)] == ["count_0", "speed_0"]
    assert PlainQuery.numbered(153, roads=50).road == 1


def test_open_windows_are_merged_and_told_when_their_end_is_reached() -> None:
    def window(start_us: int, **values: object) -> dict[str, object]:
        return {"window_start": start_us, "window_end": start_us + 1_000_000, **values}

    speeds = OpenWindows(PlainQuery("speed_0", 0, "speed"))
    speeds.merge([window(0, total=10.0, reports=1), window(1_000_000, total=1.0, reports=1)])
    assert speeds.close(999_999) == []
    speeds.merge([window(0, total=50.0, reports=3)])
    assert speeds.close(1_000_000) == [window(0, speed=15.0)]
    assert speeds.close(2_000_000) == [window(1_000_000, speed=1.0)]

    top = OpenWindows(PlainQuery("top_0", 0, "top", k=2))
    top.merge([window(0, rank=1, speed=3.0, id=1), window(0, rank=2, speed=1.0, id=2)])
    top.merge([window(0, rank=1, speed=2.0, id=3)])
    assert [(row["rank"], row["id"]) for row in top.close(1_000_000)] == [(1, 1), (2, 3)]


def test_the_best_of_a_window_become_rows_with_ranks() -> None:
    query = PlainQuery("top_0", 0, "top", k=2)
    best = [SimpleNamespace(asDict=lambda: {"speed": 3.0}), SimpleNamespace(asDict=lambda: {"speed": 2.0})]
    row = SimpleNamespace(window_start=0, window_end=1_000_000, best=best)
    assert [(row["rank"], row["speed"]) for row in query.rows([row])] == [(1, 3.0), (2, 2.0)]


def test_plain_yahoo_counts_every_view_in_batches_of_the_same_size(
    spark: SparkSession,  # noqa: F811
    tmp_path: Path,
) -> None:
    settings = YahooSettings(events_per_second=200, base_us=3_000_000)
    files = YahooFiles(tmp_path / "events", batches=4, rows_per_batch=1_500, settings=settings)
    assert {start for start, _ in files.views} == {0, 10_000_000, 20_000_000}
    done = run_plain(spark, files, tmp_path / "checkpoint")  # raises if a view is missing
    assert len(done.batches) == 2
    assert done.rows_per_s > 0
    assert "addBatch" in done.parts_ms()


def test_a_wrong_count_of_views_is_told(tmp_path: Path) -> None:
    files = YahooFiles(
        tmp_path, batches=1, rows_per_batch=6_000, settings=YahooSettings(events_per_second=300)
    )
    views = dict(files.views)
    assert sum(views.values()) == 1_000  # of the one window that closes, a third
    files.check(views, "this")
    place = next(iter(views))
    with pytest.raises(PenstockError, match="this computes something else"):
        files.check({**views, place: views[place] + 1}, "this")


def test_throughput_counts_pauses_but_not_the_first_batches() -> None:
    batches = [MicroBatch(begin, 500.0, {"addBatch": 400.0}) for begin in (0.0, 5.0, 10.0, 11.0)]
    run = YahooRun.of(batches, rows_per_batch=300)
    assert run.rows_per_s == 600 / 1.5
    assert run.batch_median_ms == 500.0
    assert run.parts_ms() == {"addBatch": 400.0}
