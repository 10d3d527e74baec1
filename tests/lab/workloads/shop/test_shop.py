"""The shop: fields, skew, changing skew, moving hot items, and its applications against plain counting."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lab.workloads.shop.data import FIELDS, VOCABULARY, ShopEvents, ShopSettings, popularity
from lab.workloads.shop.query import Ledger, commcount, ledger, top_n
from lab.workloads.shop.source import EVENT_TIME, shop_source
from penstock.app import App
from penstock.connectors.memory.sink import Memory
from penstock.engine.node import Node
from penstock.query.stream.stream import Stream

Columns = dict[str, NDArray[Any]]


def read(shop: ShopSettings, offset: int, *lengths: int) -> Columns:
    columns: Columns = {
        name: np.zeros(sum(lengths), np.int32 if kind == "string" else np.int64) for name, kind in FIELDS
    }
    events, start = ShopEvents(shop), 0
    for n in lengths:
        events.fill(offset + start, n, columns, start)
        start += n
    return columns


@settings(max_examples=40)
@given(
    st.integers(0, 2**40),
    st.lists(st.integers(0, 50), min_size=1, max_size=6),
    st.sampled_from([0.5, ((0.0, 0.0), (0.002, 1.0), (0.005, 0.2))]),
    st.sampled_from([None, 0.003]),
)
def test_events_do_not_depend_on_how_reads_are_cut(
    offset: int, lengths: list[int], zipf: Any, moves_every_s: float | None
) -> None:
    shop = ShopSettings(seed=2, items=50, zipf=zipf, moves_every_s=moves_every_s, disorder_us=500, base_us=0)
    offset %= 10**6
    cut, whole = read(shop, offset, *lengths), read(shop, offset, sum(lengths))
    for name, _ in FIELDS:
        np.testing.assert_array_equal(cut[name], whole[name], err_msg=name)


@pytest.mark.parametrize("zipf", [0.0, 1.0, 1.5])
def test_items_are_as_popular_as_the_coefficient_says(zipf: float) -> None:
    columns = read(ShopSettings(items=100, zipf=zipf), 0, 200_000)
    counts = np.sort(np.bincount(columns["item_id"], minlength=101)[1:])[::-1] / 200_000
    np.testing.assert_allclose(counts, popularity(100, zipf), atol=0.004)
    assert columns["item_id"].min() >= 1
    assert columns["item_id"].max() <= 100


def test_behaviours_are_mostly_views() -> None:
    columns = read(ShopSettings(), 0, 200_000)
    shares = np.bincount(columns["behaviour"], minlength=4) / 200_000
    assert VOCABULARY["behaviour"] == ("pv", "buy", "cart", "fav")
    np.testing.assert_allclose(shares, [0.896, 0.020, 0.055, 0.029], atol=0.003)


def test_the_skew_changes_while_the_stream_runs() -> None:
    shop = ShopSettings(items=1000, zipf=((0.0, 0.0), (1.0, 1.5)), events_per_second=50_000)
    calm, skewed = read(shop, 0, 50_000), read(shop, 50_000, 50_000)
    assert np.bincount(calm["item_id"]).max() / 50_000 < 0.003
    assert np.bincount(skewed["item_id"]).max() / 50_000 > 0.3


def test_hot_items_move() -> None:
    shop = ShopSettings(items=1000, zipf=1.5, moves_every_s=1.0, events_per_second=20_000)
    events = ShopEvents(shop)
    hottest = [int(np.bincount(read(shop, start, 20_000)["item_id"]).argmax()) for start in (0, 20_000)]
    assert hottest == [events.hottest(0), events.hottest(20_000)]
    assert hottest[0] != hottest[1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"events_per_second": 0},
        {"items": 0},
        {"zipf": -1.0},
        {"zipf": ((1.0, 0.5),)},
        {"moves_every_s": 0.0},
        {"disorder_us": -1},
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must"):
        ShopSettings(**wrong)


SHOP = ShopSettings(items=60, zipf=1.0, events_per_second=1_000, base_us=0)
EVENTS = 6_000


def rows_of(build: Any) -> list[dict[str, Any]]:
    app, sink = App("shop"), Memory()
    events: Stream = app.source("events", shop_source(SHOP, EVENTS), event_time=EVENT_TIME)
    app.sink("out", build(events), sink)
    app.run(on=Node(workers=1))
    return sink.rows()


def counted(behaviour: str) -> dict[int, Counter[int]]:
    """By second: how often each item had the behaviour."""
    columns = read(SHOP, 0, EVENTS)
    found: dict[int, Counter[int]] = {}
    wanted = columns["behaviour"] == VOCABULARY["behaviour"].index(behaviour)
    for second, item in zip(columns["ts"][wanted] // 1_000_000, columns["item_id"][wanted], strict=True):
        found.setdefault(int(second), Counter())[int(item)] += 1
    return found


def test_commcount_counts_the_views_of_every_item() -> None:
    expected = {
        (second, item): views
        for second, views_of in counted("pv").items()
        for item, views in views_of.items()
    }
    rows = rows_of(commcount)
    assert {(row["window_start"] // 1_000_000, row["item_id"]): row["views"] for row in rows} == expected


def test_top_n_ranks_the_purchases_of_each_window() -> None:
    rows = rows_of(lambda events: top_n(events, n=3, parts=4))
    for second, purchases in counted("buy").items():
        ranked = [row for row in rows if row["window_start"] // 1_000_000 == second]
        best = sorted(purchases.values(), reverse=True)[:3]
        assert [row["purchases"] for row in sorted(ranked, key=lambda row: row["rank"])] == best


def test_the_ledger_seals_each_items_events_in_order() -> None:
    rows = rows_of(lambda events: ledger(events, rounds=1))
    assert len(rows) == EVENTS
    items = Counter(row["item_id"] for row in rows)
    assert {(row["item_id"], row["number"]) for row in rows} == {
        (item, number) for item, count in items.items() for number in range(1, count + 1)
    }
    assert len({row["seal"] for row in rows}) == EVENTS
    assert Ledger(1) == Ledger(1)
