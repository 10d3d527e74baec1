"""Which orders were paid within ten minutes, how long did it take, and which were not paid?

Two streams: an interval join makes the pairs, a group join also keeps what has no partner.

$ python examples/orders_and_payments.py
order 1: 30.00 after 2 minutes
order 3: 12.50 after 10 minutes
order 4: 50.00 after 3 minutes
order 4: 49.00 after 6 minutes
order 2: 80.00 not paid within ten minutes
"""

from datetime import UTC, datetime, timedelta

import penstock as ps
from penstock import col, count, tumbling

noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
orders = [
    {"ts": noon + timedelta(minutes=minute), "order": order, "total": total}
    for minute, order, total in [(0, 1, 30.0), (1, 2, 80.0), (4, 3, 12.5), (9, 4, 99.0)]
]
payments = [
    {"ts": noon + timedelta(minutes=minute), "order_id": order, "paid": paid}
    for minute, order, paid in [(2, 1, 30.0), (12, 4, 50.0), (14, 3, 12.5), (15, 4, 49.0), (19, 2, 80.0)]
]

app = ps.App("orders")
ordered = app.source(
    "orders",
    ps.sources.Rows(orders, ps.Schema(ts="timestamp", order="int64", total="float64")),
    event_time="ts",
)
paid = app.source(
    "payments",
    ps.sources.Rows(payments, ps.Schema(ts="timestamp", order_id="int64", paid="float64")),
    event_time="ts",
)

in_time = ordered.interval_join(paid, on={"order": "order_id"}, lower="0s", upper="10m").select(
    "order", "paid", seconds=(col("ts_right") - col("ts")) // 1_000_000
)
missing = ordered.group_join(
    paid,
    on={"order": "order_id"},
    window=tumbling("1h"),
    aggregates={"payments": count(), "sum": ps.sum("paid")},
    where=col("ts_right") - col("ts") <= timedelta(minutes=10),
    select=["order", "total", "payments"],
).filter(col("payments") == 0)

pairs, unpaid = ps.sinks.Memory(), ps.sinks.Memory()
app.sink("in_time", in_time, pairs)
app.sink("missing", missing, unpaid)
app.run(on=ps.Node())

for row in sorted(pairs.rows(), key=lambda row: (row["order"], row["seconds"])):
    print(f"order {row['order']}: {row['paid']:.2f} after {row['seconds'] // 60} minutes")
for row in unpaid.rows():
    print(f"order {row['order']}: {row['total']:.2f} not paid within ten minutes")
