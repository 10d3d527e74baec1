"""The Yahoo query: views per campaign and ten seconds (enjima 5.1.1)."""

from __future__ import annotations

from typing import Any

from lab.workloads.yahoo.data import YahooEvents
from penstock.query.aggregates import count
from penstock.query.expr import col
from penstock.query.stream.stream import Stream
from penstock.query.windows import tumbling


def views_per_campaign(events: Stream, generator: YahooEvents) -> Stream:
    """source → filter → project → lookup → tumbling window count."""
    ad_ids, campaign_ids = generator.campaign_table()
    table: dict[str, Any] = {"ad_id": ad_ids, "campaign_id": campaign_ids}
    return (
        events.filter(col("event_type") == 0)
        .select("ts", "ad_id")
        .lookup(table, on="ad_id", columns=["campaign_id"])
        .key_by("campaign_id")
        .window(tumbling("10s"))
        .agg(views=count())
    )
