"""The hand-fused Yahoo loop counts what plain numpy counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.workloads.yahoo.data import CAMPAIGNS, FIELDS, YahooEvents, YahooSettings
from lab.workloads.yahoo.fused import WINDOW_US, campaign_slots, fused_count


@given(st.integers(0, 10**9), st.integers(1, 3000), st.integers(1, 2000), st.integers(0, 9))
def test_counts_equal_those_of_numpy(offset: int, n: int, rate: int, seed: int) -> None:
    events = YahooEvents(YahooSettings(seed=seed, events_per_second=rate))
    columns = {name: np.zeros(n, np.int64) for name, _ in FIELDS}
    events.fill(offset, n, columns, 0)
    ad_ids, campaign_ids = events.campaign_table()
    slot_of_ad, campaigns = campaign_slots(ad_ids, campaign_ids)
    windows = columns["ts"] // WINDOW_US
    first, rows = int(windows[0]), int(windows[-1] - windows[0]) + 1
    counts = np.zeros((rows, CAMPAIGNS), np.int64)

    counted = fused_count(columns["ts"], columns["ad_id"], columns["event_type"], slot_of_ad, counts, first)

    kept = columns["event_type"] == 0
    campaign = campaign_ids[columns["ad_id"][kept] - 1]
    expected = np.zeros_like(counts)
    np.add.at(expected, (windows[kept] - first, np.searchsorted(campaigns, campaign)), 1)
    np.testing.assert_array_equal(counts, expected)
    assert counted == kept.sum()


def test_events_may_come_in_any_order() -> None:
    ts = np.array([0, WINDOW_US, 5, 2 * WINDOW_US - 1])
    counts = np.zeros((2, 1), np.int64)
    fused_count(ts, np.ones(4, np.int64), np.zeros(4, np.int64), np.array([-1, 0]), counts)
    assert counts.tolist() == [[2], [2]]


def test_an_ad_without_campaign_is_dropped() -> None:
    counts = np.zeros((1, 1), np.int64)
    ones = np.ones(3, np.int64)
    assert fused_count(ones, ones - 1, ones - 1, np.array([-1, 0]), counts) == 0
    assert counts.sum() == 0


def test_a_window_without_a_row_is_an_error() -> None:
    ones = np.ones(1, np.int64)
    with pytest.raises(ValueError, match="windows 3 to 3 for 2 rows from 0"):
        fused_count(3 * WINDOW_US * ones, ones, 0 * ones, np.array([-1, 0]), np.zeros((2, 1), np.int64))
