"""Apps over ten rows: what they cost is what it costs to start them."""

from __future__ import annotations

import penstock as ps
from lab.bench.start.auction import auction_queries
from penstock import avg, col, count, session, sliding, tumbling

_SECOND_US = 1_000_000
_ROWS = 10


def window_app() -> ps.App:
    """One query: a window by key."""
    app = ps.App("window")
    events = _events(app)
    per_user = events.key_by("user").window(tumbling("10s")).agg(events=count(), mean=avg("amount"))
    app.sink("per_user", per_user, ps.sinks.Memory())
    return app


def five_app() -> ps.App:
    """Five unlike queries: sliding windows, sessions, a join, deduplication, a pattern."""
    app = ps.App("five")
    events = _events(app)
    users = events.key_by("user")
    first, second = ps.event("first", col("kind") == 0), ps.event("second", col("kind") == 1)
    others = events.filter(col("kind") == 1).select("ts", "user", other=col("amount"))
    queries = {
        "sliding": users.window(sliding("10s", "2s")).agg(events=count(), mean=avg("amount")),
        "sessions": users.window(session("2s")).agg(events=count(), most=ps.max("amount")),
        "join": events.filter(col("kind") == 0).join(others, on="user", window=tumbling("5s")),
        "deduplication": events.deduplicate("user", within="5s"),
        "pattern": users.match(
            first >> second, {"before": first["amount"], "after": second["amount"]}, within="5s"
        ),
    }
    for name, stream in queries.items():
        app.sink(name, stream, ps.sinks.Memory())
    return app


def auction_app() -> ps.App:
    """28 queries over an auction's streams, after NEXMark's."""
    app = ps.App("auction")
    for name, stream in auction_queries(app, _ROWS).items():
        app.sink(name, stream, ps.sinks.Memory())
    return app


#: By name: what makes an app.
APPS = {"window": window_app, "five": five_app, "auction": auction_app}


def _events(app: ps.App) -> ps.Stream:
    rows = [
        {"ts": number * _SECOND_US, "user": number % 3, "kind": number % 2, "amount": float(number)}
        for number in range(_ROWS)
    ]
    schema = ps.Schema(ts="timestamp", user="int64", kind="int32", amount="float64")
    return app.source("events", ps.sources.Rows(rows, schema), event_time="ts", lateness="1s")
