"""How many cars pass each lane of a road in a minute, and how fast are they?

Windows by event time, several aggregates, a condition on one of them.

$ python examples/traffic_windows.py
08:00  lane 1:  45 cars,  86 km/h on average, the fastest 126
08:00  lane 2:  45 cars, 114 km/h on average, the fastest 148
08:01  lane 1:  46 cars,  91 km/h on average, the fastest 126
08:01  lane 2:  44 cars, 119 km/h on average, the fastest 169
08:02  lane 1:  45 cars,  90 km/h on average, the fastest 126
08:02  lane 2:  45 cars, 113 km/h on average, the fastest 154
"""

import random
from datetime import UTC, datetime, timedelta

import penstock as ps
from penstock import avg, col, count, tumbling

chance = random.Random(1)
start = datetime(2026, 3, 2, 8, tzinfo=UTC)
reports = [
    {
        "ts": start + timedelta(seconds=second / 1.5),
        "lane": (lane := chance.choice([1, 2])),
        "speed": chance.gauss(90 if lane == 1 else 115, 18),
    }
    for second in range(270)
]

app = ps.App("traffic")
schema = ps.Schema(ts="timestamp", lane="int32", speed="float64")
cars = app.source("cars", ps.sources.Rows(reports, schema), event_time="ts")

per_lane = (
    cars.filter(col("speed") > 0)
    .key_by("lane")
    .window(tumbling("1m"))
    .agg(cars=count(), speed=avg("speed"), fastest=ps.max("speed"))
)
result = ps.sinks.Memory()
app.sink("per_lane", per_lane, result)
app.run(on=ps.Node())

for row in result.table().sort_by([("window_start", "ascending"), ("lane", "ascending")]).to_pylist():
    print(
        f"{row['window_start']:%H:%M}  lane {row['lane']}: {row['cars']:3} cars, "
        f"{row['speed']:3.0f} km/h on average, the fastest {row['fastest']:.0f}"
    )
