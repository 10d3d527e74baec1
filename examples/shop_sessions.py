"""What do visitors of a web shop do in one visit, and which visits end without a purchase?

A session ends when a visitor does nothing for 30 minutes, however long it was. Aggregates with a condition of
their own are sums over ``when``.

$ python examples/shop_sessions.py
09:00 ada: 3 clicks in 9 minutes, 1 bought for 59.90
09:05 bob: 3 clicks in 43 minutes, 0 bought for 0.00
10:35 ada: 2 clicks in 4 minutes, 0 bought for 0.00
11:10 bob: 3 clicks in 3 minutes, 2 bought for 19.50
without a purchase: ['ada', 'bob']
"""

from datetime import UTC, datetime, timedelta

import penstock as ps
from penstock import col, count, session, when

CLICKS = [  # minutes after nine, visitor, action, value in euros
    (0, "ada", "view", 0.0),
    (4, "ada", "cart", 0.0),
    (5, "bob", "view", 0.0),
    (9, "ada", "buy", 59.9),
    (21, "bob", "cart", 0.0),
    (48, "bob", "view", 0.0),
    (95, "ada", "view", 0.0),
    (99, "ada", "view", 0.0),
    (130, "bob", "view", 0.0),
    (131, "bob", "buy", 12.5),
    (133, "bob", "buy", 7.0),
]
nine = datetime(2026, 3, 2, 9, tzinfo=UTC)
clicks = [
    {"ts": nine + timedelta(minutes=minute), "visitor": visitor, "action": action, "value": value}
    for minute, visitor, action, value in CLICKS
]

app = ps.App("shop")
schema = ps.Schema(ts="timestamp", visitor="string", action="string", value="float64")
events = app.source("clicks", ps.sources.Rows(clicks, schema), event_time="ts")

visits = (
    events.with_columns(bought=when(col("action") == "buy", 1).otherwise(0))
    .key_by("visitor")
    .window(session("30m"))
    .agg(clicks=count(), bought=ps.sum("bought"), revenue=ps.sum("value"))
)
all_visits, lost_visits = ps.sinks.Memory(), ps.sinks.Memory()
app.sink("visits", visits, all_visits)
app.sink("lost", visits.filter(col("bought") == 0), lost_visits)
app.run(on=ps.Node())

order = [("window_start", "ascending"), ("visitor", "ascending")]
for visit in all_visits.table().sort_by(order).to_pylist():
    minutes = (
        visit["window_end"] - visit["window_start"]
    ).seconds // 60 - 30  # the pause belongs to the window
    print(
        f"{visit['window_start']:%H:%M} {visit['visitor']}: {visit['clicks']} clicks in {minutes} minutes, "
        f"{visit['bought']} bought for {visit['revenue']:.2f}"
    )
print("without a purchase:", sorted(visit["visitor"] for visit in lost_visits.rows()))
