from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.workloads.yahoo.data import FIELDS as YAHOO_FIELDS
from lab.workloads.yahoo.data import YahooSettings
from lab.workloads.yahoo.replay import YahooReplay
from penstock.connectors.memory.generator import STRIPE
from penstock.connectors.offsets import STRETCH, OffsetPositions, ready_within
from penstock.connectors.reader import ENDLESS, NodeSource, Reader, Resume
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import RunError
from penstock.query.types import Schema
from penstock.sources import Columns, Generator, Rows, Traffic
from penstock.workloads.traffic.settings import TrafficSettings
from tests.connectors.drain import Drain, RangeDrain

SECOND = 1_000_000_000
LANES = ["left", "right"]


def fill(offset: int, n: int, columns: dict[str, Any], start: int) -> None:
    columns["x"][start : start + n] = np.arange(offset, offset + n)
    columns["lane"][start : start + n] = np.arange(offset, offset + n) // 3 % 2


def generator(**options: Any) -> Generator:
    return Generator(fill, {"x": "int64", "lane": "string"}, vocabulary={"lane": LANES}, **options)


class Clock:
    def __init__(self) -> None:
        self.now_ns = 5

    def __call__(self) -> int:
        return self.now_ns


# -- ranges ----------------------------------------------------------------------------


@given(
    rows=st.integers(0, 30),
    repeat=st.integers(0, 3),
    partitions=st.integers(1, 3),
    limit=st.integers(1, 40),
    cuts=st.lists(st.integers(1, 9), min_size=1),
)
def test_columns_in_ranges_are_the_columns_as_a_whole(
    rows: int, repeat: int, partitions: int, limit: int, cuts: list[int]
) -> None:
    data = {
        "x": np.arange(rows),
        "lane": [f"lane {i % 5}" for i in range(rows)],
        "y": [None if i % 3 == 0 else i / 2 for i in range(rows)],
    }
    source = Columns(
        data, {"x": "int64", "lane": "string", "y": "float64?"}, repeat=repeat, partitions=partitions
    )
    for partition in range(partitions):
        whole = Drain(source, partition=partition).to_end()
        assert RangeDrain(source, partition=partition).to_end(limit, cuts) == whole


@given(st.integers(0, 300), st.integers(1, 50))
def test_a_generator_in_ranges_is_the_generator_as_a_whole(events: int, limit: int) -> None:
    source = generator(limit=events)
    assert RangeDrain(source).to_end(limit) == Drain(source).to_end()


def test_a_range_begins_anywhere_in_a_partition_of_stripes() -> None:
    source = generator(partitions=2)
    drain = RangeDrain(source, partition=1)
    drain.resume = Resume(STRIPE - 2, STRIPE - 2, STRIPE - 2)
    drain.read(STRIPE + 1)
    assert [row["x"] for row in drain.rows] == [2 * STRIPE - 2, 2 * STRIPE - 1, 3 * STRIPE]


def test_simulated_traffic_goes_on_in_another_process() -> None:
    source = Traffic(TrafficSettings(cars=50, roads=2), seconds=1)
    whole = Drain(source).to_end()
    first, second = RangeDrain(pickle.loads(pickle.dumps(source))), RangeDrain(source)
    first.read(500)
    second.resume = first.resume
    second.read(1250)
    assert first.rows + second.rows == whole


def test_a_source_that_cannot_be_read_again_says_so() -> None:
    class Once(NodeSource):
        @property
        def schema(self) -> Schema:
            return Schema(x="int64")

        def open(self, layout: Layout, strings: StringPool) -> list[Reader]:
            return []

    with pytest.raises(RunError, match="a Once source cannot be read again: Spark needs that"):
        Once().positions()


# -- how far ---------------------------------------------------------------------------


def test_where_sources_end() -> None:
    assert Columns({"x": [1, 2, 3]}, partitions=2, repeat=2).positions().final == [4, 2]
    assert Columns({"x": [1, 2, 3]}, repeat=None).positions().final is None
    assert Columns({"x": [1]}, partitions=2, repeat=None).positions().final == [ENDLESS, 0]
    assert Rows([], {"x": "int64"}).positions().final == [0]
    assert generator().positions().final is None
    assert generator(limit=STRIPE + 1, partitions=2).positions().final == [STRIPE, 1]


def test_an_endless_source_without_limit_is_read_in_stretches() -> None:
    assert generator(partitions=2).positions().latest([7, 7], None) == [7 + STRETCH // 2, 7 + STRETCH // 2]
    assert generator().positions().latest([7], 10) == [17]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=5), st.integers(1, 200)
)
def test_a_limit_is_used_up_and_never_exceeded(partitions: Sequence[tuple[int, int]], limit: int) -> None:
    start = [begin for begin, _ in partitions]
    ready = [begin + more for begin, more in partitions]
    end = ready_within(start, ready, limit)
    assert all(a <= b <= c for a, b, c in zip(start, end, ready, strict=True))
    assert sum(end) - sum(start) == min(limit, sum(ready) - sum(start))
    steps = sorted(b - a for a, b, c in zip(start, end, ready, strict=True) if b < c)
    assert not steps or steps[-1] - steps[0] <= 1  # who is cut short is cut alike


# -- pacing ----------------------------------------------------------------------------


def test_only_what_is_due_can_be_read() -> None:
    clock = Clock()
    positions = OffsetPositions([1000, 30], rate=100, clock=clock)
    assert positions.latest([0, 0], None) == [0, 0]
    clock.now_ns += SECOND
    assert positions.latest([0, 0], None) == [50, 30]
    assert positions.latest([0, 0], 20) == [10, 10]


def test_a_run_that_goes_on_does_not_rush() -> None:
    clock = Clock()
    positions = OffsetPositions([ENDLESS], rate=[(10, 100), (1, 1000)], start=[990], clock=clock)
    assert positions.latest([990], None) == [990]
    clock.now_ns += SECOND // 10
    assert positions.latest([990], None) == [1000]
    clock.now_ns += SECOND // 10  # the next step of the rate
    assert positions.latest([1000], None) == [1100]


def test_a_pause_at_the_beginning_is_kept() -> None:
    clock = Clock()
    positions = OffsetPositions([ENDLESS], rate=[(10, 0), (1, 1000)], start=[0], clock=clock)
    clock.now_ns += 10 * SECOND
    assert positions.latest([0], None) == [0]
    clock.now_ns += SECOND
    assert positions.latest([0], None) == [1000]


@pytest.mark.parametrize("start", [0, 200])
def test_a_reader_knows_when_its_events_were_due(start: int) -> None:
    for source in (
        Columns({"x": np.arange(1000)}, partitions=2, rate=200, repeat=5),
        generator(partitions=2, rate=200),
    ):
        positions = source.positions(start=[start, start])
        began = positions.started_unix_ns
        assert began is not None
        layout = Layout(source.schema)
        for end in (start + 100, start + 700):
            hint = positions.describe(1, start, end)
            reader = source.open_range(1, Resume(start, start, start), end, layout, StringPool(), hint)
            assert reader.available(0) == end - start
            assert reader.read(layout.allocate(50), 0, 50) == 50
            assert reader.created_ns() == began + SECOND // 2
            assert reader.next_due_ns() is None


# -- shipping --------------------------------------------------------------------------


def sent(source: NodeSource) -> tuple[int, NodeSource]:
    data = pickle.dumps(source)
    return len(data), pickle.loads(data)


def test_large_columns_travel_as_a_file(tmp_path: Path) -> None:
    rows = 100_000
    data = {"x": np.arange(rows), "lane": [LANES[i % 2] for i in range(rows)]}
    source = Columns(data, partitions=2, ordered=True, repeat=None)
    shipped = source.shipped(str(tmp_path))
    assert shipped.key() == source.key()
    size, received = sent(shipped)
    assert size < 5_000
    assert (received.schema, received.partitions, received.ordered) == (source.schema, 2, True)
    drain = RangeDrain(received, partition=1)
    drain.resume = Resume(49_998, 49_998, 49_998)
    drain.read(50_001)
    assert drain.rows == [
        {"x": 99_997, "lane": "right"},
        {"x": 99_999, "lane": "right"},
        {"x": 1, "lane": "right"},
    ]
    assert shipped.shipped(str(tmp_path)) is shipped
    assert len(list(tmp_path.iterdir())) == 1


def test_small_columns_travel_as_they_are(tmp_path: Path) -> None:
    source = Columns({"x": [1, 2]})
    assert source.shipped(str(tmp_path)) is source
    assert list(tmp_path.iterdir()) == []


def test_a_generator_with_many_words_travels_as_a_file(tmp_path: Path) -> None:
    words = [f"a long word with number {i}" for i in range(50_000)]
    source = Generator(fill, {"x": "int64", "lane": "string"}, vocabulary={"lane": words}, limit=6)
    shipped = source.shipped(str(tmp_path))
    assert shipped.key() == source.key()
    size, received = sent(shipped)
    assert size < 5_000
    assert RangeDrain(received).to_end() == Drain(source).to_end()
    (file,) = tmp_path.iterdir()
    file.unlink()
    unlucky = pickle.loads(pickle.dumps(source.shipped(str(tmp_path))))
    next(tmp_path.iterdir()).unlink()
    with pytest.raises(RunError, match=r"cannot read a source's data.*every worker sees"):
        RangeDrain(unlucky).read(1)


def test_a_function_that_only_this_process_knows_stays(tmp_path: Path) -> None:
    def local(offset: int, n: int, columns: dict[str, Any], start: int) -> None:
        pass

    source = Generator(local, {"x": "int64"})
    assert source.shipped(str(tmp_path)) is source


def test_the_workloads_are_small_to_send(tmp_path: Path) -> None:
    replay = YahooReplay(YahooSettings(events_per_second=1_000), size=30_000)
    sources = [
        Traffic(TrafficSettings(cars=5_000, roads=10)),
        Generator(replay.fill, dict(YAHOO_FIELDS), limit=40_000),
    ]
    for source in sources:
        assert sent(source)[0] < 5_000
        assert sent(source.shipped(str(tmp_path)))[0] < 5_000
    assert RangeDrain(sent(sources[1].shipped(str(tmp_path)))[1]).to_end() == Drain(sources[1]).to_end()
