"""Meters report over a bad line: what comes in disorder counts, what comes far too late is not lost.

``lateness`` says how far an event may lie behind the latest one. What lies further behind is in no window
but in ``.late()``: never in both, never in neither.

$ python examples/late_events.py
06:00:00  readings: 4, 11 kW
06:00:20  readings: 1, 4 kW
06:00:40  readings: 2, 14 kW
too late: 7 kW of 06:00:06
late in all: 1
"""

from datetime import UTC, datetime, timedelta

import penstock as ps
from penstock import count, tumbling

READINGS = [  # in order of arrival: the second it was measured, and the kilowatts
    (3, 1.0),
    (14, 2.0),
    (9, 3.0),  # five seconds behind: in its window all the same
    (27, 4.0),
    (18, 5.0),  # nine seconds behind: still in time
    (41, 6.0),
    (6, 7.0),  # 35 seconds behind: late
    (44, 8.0),
]
start = datetime(2026, 3, 2, 6, tzinfo=UTC)
readings = [{"ts": start + timedelta(seconds=second), "kw": kw} for second, kw in READINGS]

app = ps.App("meters")
source = ps.sources.Rows(readings, ps.Schema(ts="timestamp", kw="float64"))
meters = app.source("meters", source, event_time="ts", lateness="10s")
sums = meters.window(tumbling("20s")).agg(readings=count(), kw=ps.sum("kw"))

in_time, too_late = ps.sinks.Memory(), ps.sinks.Memory()
app.sink("sums", sums, in_time)
app.sink("too_late", sums.late(), too_late)
summary = app.run(on=ps.Node())

for row in in_time.table().sort_by("window_start").to_pylist():
    print(f"{row['window_start']:%H:%M:%S}  readings: {row['readings']}, {row['kw']:g} kW")
for row in too_late.table().to_pylist():
    print(f"too late: {row['kw']:g} kW of {row['ts']:%H:%M:%S}")
print(f"late in all: {summary.metrics.late}")
