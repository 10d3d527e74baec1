"""The Yahoo benchmark measures what it says: every event is counted, by the engine as by the fused loop."""

from __future__ import annotations

import numpy as np
import pytest

from lab.bench.yahoo.node import run_engine, share_outside_kernels
from lab.workloads.yahoo.data import FIELDS, YahooSettings
from lab.workloads.yahoo.fused import campaign_slots, fused_count, ingest_and_count
from lab.workloads.yahoo.replay import YahooReplay
from penstock.engine.node import Node


@pytest.fixture(scope="module")
def replay() -> YahooReplay:
    return YahooReplay(YahooSettings(events_per_second=1_000), size=6_000)


def test_a_replay_goes_on_in_time_and_in_its_cycles(replay: YahooReplay) -> None:
    columns = {name: np.zeros(20_000, np.int64) for name, _ in FIELDS}
    replay.fill(0, 20_000, columns, 0)
    assert np.all(np.diff(columns["ts"]) == 1_000)
    assert np.all(np.diff(columns["ad_id"]) % 1_000 == 1)
    pieces = {name: np.zeros(20_000, np.int64) for name, _ in FIELDS}
    for start, stop in ((0, 1), (1, 5_999), (5_999, 13_000), (13_000, 20_000)):
        replay.fill(start, stop - start, pieces, start)
    assert all(np.array_equal(columns[name], pieces[name]) for name in columns)


def test_the_engine_counts_every_view(replay: YahooReplay) -> None:
    events = 200_000  # run_engine itself raises if a view is missing
    summary = run_engine(replay, events, node=Node(workers=2, block_events=512), queries=2)
    assert summary.metrics.read == 2 * events
    assert summary.complete


def test_both_limits_count_the_same_as_the_query_means(replay: YahooReplay) -> None:
    slots, campaigns = campaign_slots(*replay.events.campaign_table())
    columns = tuple(replay.columns[name] for name, _ in FIELDS)
    in_place, ingested = (np.zeros((1, len(campaigns)), np.int64) for _ in range(2))
    block = tuple(np.zeros(700, np.int64) for _ in columns)
    assert fused_count(columns[0], columns[3], columns[5], slots, in_place) == 2_000
    assert ingest_and_count(columns, block, slots, ingested) == 2_000
    assert np.array_equal(in_place, ingested)


def test_the_share_outside_kernels_is_a_share(replay: YahooReplay) -> None:
    assert 0.0 < share_outside_kernels(replay, 50_000) < 1.0
