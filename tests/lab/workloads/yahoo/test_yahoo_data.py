"""The Yahoo events: exact cycles, uniform users, and no dependence on how reads are cut."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lab.workloads.yahoo.data import (
    ADS,
    ADS_PER_CAMPAIGN,
    CAMPAIGNS,
    FIELDS,
    PAGES,
    USERS,
    YahooEvents,
    YahooSettings,
)

Columns = dict[str, NDArray[np.int64]]


def read(settings: YahooSettings, offset: int, *lengths: int) -> Columns:
    columns = {name: np.full(sum(lengths), -1, np.int64) for name, _ in FIELDS}
    events = YahooEvents(settings)
    start = 0
    for n in lengths:
        events.fill(offset + start, n, columns, start)
        start += n
    return columns


def assert_same(left: Columns, right: Columns) -> None:
    for name, _ in FIELDS:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


@given(
    st.integers(0, 2**48),
    st.lists(st.integers(0, 50), min_size=1, max_size=8),
    st.integers(1, 5_000_000),
    st.integers(0, 2**32),
)
def test_events_do_not_depend_on_how_reads_are_cut(
    offset: int, lengths: list[int], rate: int, seed: int
) -> None:
    settings = YahooSettings(seed=seed, events_per_second=rate, base_us=7)
    assert_same(read(settings, offset, *lengths), read(settings, offset, sum(lengths)))


@given(st.integers(0, 2**48), st.integers(1, 5_000_000))
def test_event_time_is_the_offset_over_the_rate(offset: int, rate: int) -> None:
    ts = read(YahooSettings(events_per_second=rate, base_us=13), offset, 40)["ts"]
    assert ts.tolist() == [13 + i * 1_000_000 // rate for i in range(offset, offset + 40)]


def test_ads_types_and_events_go_round() -> None:
    columns = read(YahooSettings(), 123, 6000)
    i = np.arange(123, 6123)
    np.testing.assert_array_equal(columns["ad_id"], i % 1000 + 1)
    np.testing.assert_array_equal(columns["ad_type"], i % 5)
    np.testing.assert_array_equal(columns["event_type"], i % 3)


@pytest.mark.parametrize(("name", "size"), [("user_id", USERS), ("page_id", PAGES)])
def test_users_and_pages_are_uniform(name: str, size: int) -> None:
    values = read(YahooSettings(seed=3), 0, 1_000_000)[name]
    assert values.min() >= 1
    assert values.max() <= size
    per_tenth = np.bincount((values - 1) * 10 // size, minlength=10)
    # Five standard deviations of a binomial count.
    assert abs(per_tenth - 100_000).max() < 5 * 300
    # Of N uniform draws from N values, 1 - 1/e are distinct.
    assert abs(len(np.unique(values)) / size - (1 - np.exp(-1))) < 0.003


def test_users_and_pages_are_unrelated() -> None:
    columns = read(YahooSettings(seed=3), 0, 200_000)
    assert abs(np.corrcoef(columns["user_id"], columns["page_id"])[0, 1]) < 0.01
    assert abs(np.corrcoef(columns["user_id"][1:], columns["user_id"][:-1])[0, 1]) < 0.01


def test_a_user_keeps_an_address() -> None:
    columns = read(YahooSettings(), 0, 500_000)
    assert len(np.unique(columns["user_id"])) == len(
        np.unique(np.stack((columns["user_id"], columns["ip_address"])), axis=1).T
    )
    assert columns["ip_address"].min() >= 0
    assert columns["ip_address"].max() < 2**32


def test_a_seed_decides_everything_random() -> None:
    assert_same(read(YahooSettings(seed=5), 10, 100), read(YahooSettings(seed=5), 10, 100))
    other = read(YahooSettings(seed=6), 10, 100)
    assert (read(YahooSettings(seed=5), 10, 100)["user_id"] != other["user_id"]).mean() > 0.9


def test_fill_touches_only_its_rows() -> None:
    columns = {name: np.full(10, -1, np.int64) for name, _ in FIELDS}
    YahooEvents(YahooSettings()).fill(0, 3, columns, 4)
    for name, _ in FIELDS:
        assert (columns[name][:4] == -1).all()
        assert (columns[name][4:7] >= 0).all()
        assert (columns[name][7:] == -1).all()


def test_each_of_the_campaigns_has_ten_ads() -> None:
    ad_ids, campaign_ids = YahooEvents(YahooSettings(seed=1)).campaign_table()
    assert ad_ids.tolist() == list(range(1, ADS + 1))
    campaigns, ads = np.unique(campaign_ids, return_counts=True)
    assert len(campaigns) == CAMPAIGNS
    assert (ads == ADS_PER_CAMPAIGN).all()
    assert (YahooEvents(YahooSettings(seed=2)).campaign_table()[1] != campaign_ids).any()


def test_a_rate_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="events_per_second must be positive: yahoo got 0"):
        YahooSettings(events_per_second=0)
