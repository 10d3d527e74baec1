"""Queries over an auction's streams, after NEXMark's: each takes other operators or other columns."""

from __future__ import annotations

import penstock as ps
from penstock import avg, col, count, count_distinct, session, sliding, tumbling, when

_SECOND_US = 1_000_000


def auction_queries(app: ps.App, rows: int) -> dict[str, ps.Stream]:
    """The queries by name, over so many bids, auctions and persons."""
    bids, auctions, persons = _bids(app, rows), _auctions(app, rows), _persons(app, rows)
    per_auction, per_bidder = bids.key_by("auction"), bids.key_by("bidder")
    opened = auctions.select("ts", "auction", "seller", "category", "reserve")
    won = bids.join(opened, on="auction", window=tumbling("10s"))
    good = won.filter(col("price") >= col("reserve")).drop("window_start", "window_end")
    rise, peak = ps.event("rise", col("price") > 200), ps.event("peak", col("price") > 500)
    categories = {"category": [0, 1, 2], "title": ["art", "books", "coins"]}
    return {
        "q0": bids,
        "q1": bids.select("ts", "auction", "bidder", dollars=col("price") * 0.908),
        "q2": bids.filter(col("auction") % 123 == 0).select("ts", "auction", "price"),
        "q3": auctions.filter(col("category") == 1).join(
            persons.filter(col("state").is_in(["OR", "ID", "CA"])).select("ts", "name", seller=col("person")),
            on="seller",
            window=tumbling("1h"),
        ),
        "q4": won.key_by("category").window(tumbling("10s")).agg(mean=avg("price")),
        "q5": per_auction.window(sliding("10s", "2s")).agg(bids=count()),
        "q6": won.key_by("seller").window(tumbling("10s")).agg(mean=avg("price"), last=ps.last("price")),
        "q7": bids.window(tumbling("10s")).agg(highest=ps.max("price")),
        "q8": persons.join(
            auctions.select("ts", "auction", person=col("seller")), on="person", window=tumbling("10s")
        ),
        "q9": good.key_by("auction").window(tumbling("10s")).top(1, by="price"),
        "q10": bids.select("ts", "auction", day=col("ts").format_time("%Y-%m-%d"), hour=col("ts").hour()),
        "q11": per_bidder.window(session("10s")).agg(bids=count()),
        "q12": per_bidder.window(tumbling("10s")).agg(bids=count()),
        "q13": auctions.lookup(categories, on="category"),
        "q14": bids.filter(col("price") > 100).select(
            "ts",
            "auction",
            part=when((col("ts").hour() >= 8) & (col("ts").hour() <= 18), 1).otherwise(0),
            euros=col("price") * 0.85,
        ),
        "q15": bids.window(tumbling("1d")).agg(bids=count(), bidders=count_distinct("bidder")),
        "q16": bids.key_by("channel")
        .window(tumbling("1d"))
        .agg(bids=count(), bidders=count_distinct("bidder"), auctions=count_distinct("auction")),
        "q17": per_auction.window(tumbling("1d")).agg(
            bids=count(), least=ps.min("price"), most=ps.max("price"), mean=avg("price"), all=ps.sum("price")
        ),
        "q18": bids.key_by("bidder", "auction").window(tumbling("10s")).top(1, by="ts"),
        "q19": per_auction.window(tumbling("10s")).top(10, by="price"),
        "q20": bids.join(opened.filter(col("category") == 1), on="auction", window=sliding("20s", "10s")),
        "q21": bids.filter(col("url").contains("channel_id")).select(
            "ts", "bidder", channel=col("url").regexp_extract("channel_id=([^&]*)", 1)
        ),
        "q22": bids.select("ts", "auction", host=col("url").split_part("/", 3)),
        "q23": bids.deduplicate("bidder", "auction", within="1m"),
        "q24": bids.interval_join(opened, on="auction", lower="-5s", upper="5s"),
        "q25": per_bidder.match(
            rise >> peak, {"from_price": rise["price"], "to_price": peak["price"]}, within="10s"
        ),
        "q26": bids.select("ts", "auction", "price").union(
            auctions.select("ts", "auction", price=col("reserve"))
        ),
        "q27": bids.window(sliding("10s", "5s")).top(3, by="price"),
    }


def _bids(app: ps.App, rows: int) -> ps.Stream:
    schema = ps.Schema(
        ts="timestamp", auction="int64", bidder="int64", price="int64", channel="string", url="string"
    )
    data = [
        {
            "ts": number * _SECOND_US,
            "auction": number % 4,
            "bidder": number % 3,
            "price": 100 * number,
            "channel": ("Google", "Baidu")[number % 2],
            "url": f"https://auction.example/item/{number}?channel_id={number % 2}",
        }
        for number in range(rows)
    ]
    return app.source("bids", ps.sources.Rows(data, schema), event_time="ts", lateness="1s")


def _auctions(app: ps.App, rows: int) -> ps.Stream:
    schema = ps.Schema(ts="timestamp", auction="int64", seller="int64", category="int32", reserve="int64")
    data = [
        {
            "ts": number * _SECOND_US,
            "auction": number,
            "seller": number % 2,
            "category": number % 3,
            "reserve": 50 * number,
        }
        for number in range(rows)
    ]
    return app.source("auctions", ps.sources.Rows(data, schema), event_time="ts", lateness="1s")


def _persons(app: ps.App, rows: int) -> ps.Stream:
    schema = ps.Schema(ts="timestamp", person="int64", name="string", state="string")
    data = [
        {"ts": number * _SECOND_US, "person": number, "name": f"person {number}", "state": "OR"}
        for number in range(rows)
    ]
    return app.source("persons", ps.sources.Rows(data, schema), event_time="ts", lateness="1s")
