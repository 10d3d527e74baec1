"""150 questions about one stream on Spark: one streaming query, the stream is read once.

Queries that are alike share operators and compiled code: three things are asked of each of 50 roads.

$ python examples/spark_many_queries.py
150 queries, 100,000 events read
road 0: [667, 667, 666] cars, 18.0 18.0 18.0 m/s, the fastest 21.0 21.0 21.0
road 49: [666, 667, 667] cars, 27.8 27.8 27.8 m/s, the fastest 30.8 30.8 30.8
"""

import numpy as np

import penstock as ps
from penstock import avg, col, count, tumbling

EVENTS, ROADS = 100_000, 50
numbers = np.arange(EVENTS)
columns = {
    "ts": numbers * 300,
    "road": numbers % ROADS,
    "speed": 15 + numbers % 7 + numbers % ROADS / 5,
}

app = ps.App("roads")
schema = ps.Schema(ts="timestamp", road="int64", speed="float64")
cars = app.source("cars", ps.sources.Columns(columns, schema), event_time="ts")
sinks = {}
for road in range(ROADS):
    here = cars.filter(col("road") == road)
    questions = {
        f"flow_{road}": here.window(tumbling("10s")).agg(cars=count()),
        f"speed_{road}": here.window(tumbling("10s")).agg(speed=avg("speed")),
        f"fastest_{road}": here.window(tumbling("10s")).top(1, by="speed"),
    }
    for name, stream in questions.items():
        app.sink(name, stream, sinks.setdefault(name, ps.sinks.Memory()))

summary = app.run(on=ps.Spark())

print(f"{summary.queries} queries, {summary.progress.rows_in:,} events read")
for road in (0, 49):
    cars_seen = [row["cars"] for row in sinks[f"flow_{road}"].rows()]
    speeds = [f"{row['speed']:.1f}" for row in sinks[f"speed_{road}"].rows()]
    fastest = [f"{row['speed']:.1f}" for row in sinks[f"fastest_{road}"].rows()]
    print(f"road {road}: {cars_seen} cars, {' '.join(speeds)} m/s, the fastest {' '.join(fastest)}")
