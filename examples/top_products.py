"""Which three products sell best in every ten minutes, and what are they called?

A window's sums, ranked in windows that follow them, with names looked up in a table.

$ python examples/top_products.py
09:00  1. lamp   138
09:00  2. chair  112
09:00  3. desk    94
09:10  1. lamp   152
09:10  2. chair  126
09:10  3. desk   113
09:20  1. lamp   187
09:20  2. chair  101
09:20  3. rug     80
"""

import random
from datetime import UTC, datetime, timedelta

import penstock as ps
from penstock import tumbling

NAMES = {"product": [1, 2, 3, 4, 5], "name": ["lamp", "chair", "desk", "shelf", "rug"]}

chance = random.Random(5)
start = datetime(2026, 3, 2, 9, tzinfo=UTC)
sales = [
    {
        "ts": start + timedelta(seconds=3 * number),
        "product": chance.choices(NAMES["product"], weights=[5, 4, 3, 2, 2])[0],
        "pieces": chance.randint(1, 4),
    }
    for number in range(600)
]

app = ps.App("sales")
schema = ps.Schema(ts="timestamp", product="int64", pieces="int64")
sold = app.source("sales", ps.sources.Rows(sales, schema), event_time="ts")

best = (
    sold.key_by("product")
    .window(tumbling("10m"))
    .agg(pieces=ps.sum("pieces"))
    .drop("window_start", "window_end")
    .window(tumbling("10m"))
    .top(3, by="pieces")
    .lookup(NAMES, on="product")
)
result = ps.sinks.Memory()
app.sink("best", best, result)
app.run(on=ps.Node())

for row in result.table().sort_by([("window_start", "ascending"), ("rank", "ascending")]).to_pylist():
    print(f"{row['window_start']:%H:%M}  {row['rank']}. {row['name']:5} {row['pieces']:4}")
