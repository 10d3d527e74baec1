"""A million made-up sensor readings: a source of one's own, and how fast this machine takes them.

``Generator`` calls a function that writes events straight into numpy columns. As the function depends on the
offset alone, a run can go on after a crash and gets the same events.

$ python examples/generated_source.py
second   0  north: 167,000 events, 230.00 V on average, 2,000 missing
second   0  south: 167,000 events, 230.00 V on average, 2,000 missing
second   0  west: 166,000 events, 230.00 V on average, 1,000 missing
second  50  north: 167,000 events, 230.00 V on average, 2,000 missing
second  50  south: 167,000 events, 230.00 V on average, 2,000 missing
second  50  west: 166,000 events, 230.00 V on average, 1,000 missing
"""

import numpy as np

import penstock as ps
from penstock import avg, col, count, tumbling

SECOND = 1_000_000


def fill(offset, n, columns, start):
    """Writes the events [offset, offset + n) at ``start``: 10,000 a second of 500 sensors in three halls."""
    numbers = np.arange(offset, offset + n)
    here = slice(start, start + n)
    columns["ts"][here] = numbers * 100
    columns["sensor"][here] = numbers % 500
    columns["hall"][here] = numbers % 500 % 3  # strings are numbers of the vocabulary
    columns["volts"][here] = 230 + np.sin(numbers / 1_000)
    columns["volts?"][here] = numbers % 100 == 0  # True where there is none


app = ps.App("sensors")
source = ps.sources.Generator(
    fill,
    ps.Schema(ts="timestamp", sensor="int64", hall="string", volts="float64?"),
    limit=1_000_000,
    vocabulary={"hall": ["north", "south", "west"]},
)
sensors = app.source("sensors", source, event_time="ts")
halls = (
    sensors.key_by("hall")
    .window(tumbling("50s"))
    .agg(events=count(), volts=avg("volts"), missing=ps.sum(ps.when(col("volts").is_null(), 1).otherwise(0)))
)
result = ps.sinks.Memory()
app.sink("halls", halls, result)
summary = app.run(on=ps.Node())

order = [("window_start", "ascending"), ("hall", "ascending")]
for row in result.table().sort_by(order).to_pylist():
    print(
        f"second {row['window_start'].timestamp():3.0f}  {row['hall']}: {row['events']:,} events, "
        f"{row['volts']:.2f} V on average, {row['missing']:,} missing"
    )
assert summary.events_per_s > 0  # print(summary) tells it, and more
