"""The queries benchmark measures what it says: latency from the right moment, and only of the right rows."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lab.bench.queries import check_rows, expected_rows, query_names, ratios, same_rows, traffic_app
from lab.bench.traffic_feed import FileFeed, Measured, MicroBatch, SinkArrivals, Span, TrafficFiles, measure
from penstock.connectors.files.source import Parquet
from penstock.engine.node import Node
from penstock.query.errors import PenstockError
from penstock.workloads.traffic.settings import TrafficSettings

SETTINGS = TrafficSettings(cars=100, roads=2, frames_per_second=10, metres_per_car=60.0)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TrafficFiles:
    return TrafficFiles(tmp_path_factory.mktemp("frames"), SETTINGS, 3)


def measured(system: str, queries: int, latency_ms: list[float], batch_ms: float = 100.0) -> Measured:
    batches = [MicroBatch(0.0, batch_ms, {"engine": batch_ms})]
    return Measured(system, queries, latency_ms, 0, batches, SinkArrivals(), 0.0)


def test_an_event_is_created_when_its_frame_is_due(files: TrafficFiles, tmp_path: Path) -> None:
    feed = FileFeed(files, tmp_path)
    feed.began_s = 1000.0
    assert [path.name for path in tmp_path.iterdir()] == ["000000.parquet"]
    assert feed.created_s(0) == 1000.0
    assert feed.created_s(1_000_000) == pytest.approx(1001.0)
    assert feed.created_s(1_000_001) == pytest.approx(1001.1)  # nothing comes between two frames


def test_an_event_in_a_file_of_several_frames_is_created_with_the_file(tmp_path: Path) -> None:
    whole = TrafficFiles(tmp_path / "frames", SETTINGS, 2, frames_per_file=5)
    assert [pq.read_metadata(path).num_rows for path in whole.paths] == [5 * SETTINGS.cars] * 4
    feed = FileFeed(whole, tmp_path / "live")
    feed.began_s = 1000.0
    assert feed.created_s(0) == feed.created_s(400_000) == 1000.0
    assert feed.created_s(400_001) == feed.created_s(900_000) == pytest.approx(1000.5)
    assert feed.created_s(1_000_000) == pytest.approx(1001.0)


class Instant:
    """A system that tells every window at one moment of the wall clock: when it is stopped being awaited."""

    name = "instant"

    def __init__(self, expected: dict[tuple[str, int], list[dict[str, object]]]) -> None:
        self.expected, self.stopped = expected, False

    def start(self, folder: Path, queries: Sequence[str], arrivals: SinkArrivals) -> None:
        for (query, _), rows in self.expected.items():
            arrivals.add(query, rows)
        self.told_s = time.time()

    def batches(self) -> list[MicroBatch]:
        return [MicroBatch(self.told_s - 10.0, 1.0, {}), MicroBatch(self.told_s + 10.0, 2.0, {})]

    def stop(self) -> None:
        self.stopped = True


def test_latency_is_from_the_stream_reaching_the_windows_end_to_the_rows_arrival(
    files: TrafficFiles, tmp_path: Path
) -> None:
    rows: list[dict[str, object]] = [{"window_start": 0, "window_end": 1_000_000, "speed": 1.0}]
    system = Instant({("speed_0", 0): rows})
    found = measure(system, ["speed_0"], files, tmp_path, Span(0, 1, 0), {("speed_0", 0)})
    assert system.stopped
    # Told before event time began, and the window ends a second after that.
    (latency_ms,) = found.latency_ms
    assert -1500 < latency_ms <= -1000
    assert [batch.ms for batch in found.batches] == [2.0]  # the other one was before the measured windows
    assert found.missing == 0


def test_a_window_that_never_comes_counts_with_the_time_waited(files: TrafficFiles, tmp_path: Path) -> None:
    found = measure(Instant({}), ["speed_0"], files, tmp_path, Span(0, 1, 0), {("speed_0", 0)})
    assert found.missing == 1
    assert found.latency_ms[0] >= 0


def test_empty_windows_are_not_waited_for(files: TrafficFiles, tmp_path: Path) -> None:
    system = Instant({("speed_0", 0): [{"window_start": 0}]})
    found = measure(system, ["speed_0", "speed_1"], files, tmp_path, Span(0, 1, 0), {("speed_0", 0)})
    assert len(found.latency_ms) == 1


def test_expected_rows_are_those_that_callbacks_get(files: TrafficFiles) -> None:
    arrivals = SinkArrivals()
    traffic_app(Parquet(files.folder, ordered=True), 6, SETTINGS.roads, arrivals).run(on=Node(workers=1))
    expected = expected_rows(files, 6)
    assert {query for query, _ in expected} == set(query_names(6, files))
    assert arrivals.rows.keys() == expected.keys()
    assert all(same_rows(rows, expected[place]) for place, rows in arrivals.rows.items())


def test_rows_are_the_same_up_to_order_rounding_and_ties() -> None:
    counts = [{"lane": 0, "reports": 3}, {"lane": 1, "reports": 2}]
    assert same_rows(counts, counts[::-1])
    assert not same_rows(counts, counts[:1])
    assert not same_rows(counts, [counts[0], {"lane": 1, "reports": 1}])
    assert same_rows([{"speed": 0.1 + 0.2}], [{"speed": 0.3}])
    assert not same_rows([{"speed": 0.3}], [{"speed": 0.3001}])

    def best(*cars: tuple[float, int]) -> list[dict[str, float]]:
        return [{"rank": rank, "speed": speed, "id": id} for rank, (speed, id) in enumerate(cars, 1)]

    assert same_rows(best((9.0, 1), (8.0, 2)), best((9.0, 1), (8.0, 7)))  # others may be as fast as the last
    assert same_rows(best((9.0, 1), (9.0, 2), (8.0, 3)), best((9.0, 2), (9.0, 1), (8.0, 3)))
    assert not same_rows(best((9.0, 1), (8.0, 2)), best((9.0, 3), (8.0, 2)))
    assert not same_rows(best((9.0, 1), (8.0, 2)), best((9.0, 1), (7.0, 2)))


def test_a_system_that_computes_something_else_is_found_out() -> None:
    result = measured("plain", 1, [1.0])
    result.arrivals.add("speed_0", [{"window_start": 0, "speed": 1.0}])
    check_rows(result, {("speed_0", 0): [{"window_start": 0, "speed": 1.0}]})
    with pytest.raises(PenstockError, match="plain computes something else: query 'speed_0'"):
        check_rows(result, {("speed_0", 0): [{"window_start": 0, "speed": 2.0}]})


def test_ratios_compare_medians_at_30_queries_and_batches_at_150() -> None:
    results = {
        ("plain", 30): measured("plain", 30, [2500.0, 2000.0, 1000.0]),
        ("fanout", 30): measured("fanout", 30, [600.0]),
        ("penstock", 1): measured("penstock", 1, [50.0], batch_ms=80.0),
        ("penstock", 30): measured("penstock", 30, [100.0]),
    }
    found = ratios(results)
    assert (found["latency_vs_plain_30"], found["latency_vs_fanout_30"]) == (20.0, 6.0)
    assert math.isnan(found["growth_150_over_1"])
    results["penstock", 150] = measured("penstock", 150, [120.0], batch_ms=120.0)
    assert ratios(results)["growth_150_over_1"] == 1.5
    results["plain", 30] = measured("plain", 30, [1000.0, 1000.0, 9000.0, 9000.0])  # falls behind
    assert math.isnan(ratios(results)["latency_vs_plain_30"])


def test_growing_latency_shows_that_a_rate_is_not_sustained() -> None:
    assert measured("plain", 1, [1.0, 1.0, 1.0]).latency_growth == 1.0
    assert measured("plain", 1, [1.0, 1.0, 1.0]).sustained
    assert measured("plain", 1, [1.0, 2.0, 3.0]).latency_growth == pytest.approx(3.0)
    assert not measured("plain", 1, [1.0, 2.0, 3.0]).sustained
    assert measured("plain", 1, [1.0, 2.0, 3.0]).figures()["latency_median_ms"] == 2.0
