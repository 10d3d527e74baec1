"""Between two doors of a kiln: where does the temperature jump? A detector of one's own, in parallel.

The splitter cuts the stream from each "open" to the next "close" and gives each piece whole to one of
``degree`` instances; matches come out in one order, with consecutive numbers, whatever the degree.

$ python examples/rising_temperature.py
0: 07:00:23 from 900 to 921 degrees
1: 07:01:17 from 901 to 918 degrees
2: 07:02:50 from 896 to 915 degrees
instances: 4
"""

import random
from datetime import UTC, datetime, timedelta

import numpy as np

import penstock as ps
from penstock.detection import Matches, Sequence, one_of

chance = random.Random(8)
start = datetime(2026, 3, 2, 7, tzinfo=UTC)
kinds = ["open" if n % 50 == 10 else "close" if n % 50 == 30 else "reading" for n in range(200)]
readings = [
    {
        "ts": start + timedelta(seconds=number),
        "kind": kind,
        "degrees": 900.0 + chance.gauss(0, 2) + (15.0 if number in (23, 77, 78, 145, 170) else 0.0),
    }
    for number, kind in enumerate(kinds)
]


class Jumps:
    """Neighbouring readings of a selection that are more than ten degrees apart."""

    def detect(self, columns, starts, stops):
        degrees = columns["degrees"]
        rows = [
            (selection, row, row + 1)
            for selection, (first, stop) in enumerate(zip(starts, stops, strict=True))
            for row in range(first, stop - 1)
            if degrees[row + 1] - degrees[row] > 10
        ]
        found = np.array(rows, np.int64).reshape(-1, 3)
        return Matches(found[:, 0], found[:, 1:])  # the selection, and the rows of each match


app = ps.App("kiln")
schema = ps.Schema(ts="timestamp", kind="string", degrees="float64")
kiln = app.source("kiln", ps.sources.Rows(readings, schema), event_time="ts")
jumps = kiln.detect(
    lambda: Sequence(one_of("kind", "open"), one_of("kind", "close")),
    Jumps,
    {"before": (0, "degrees"), "after": (1, "degrees"), "at": (1, "ts")},
    degree=4,
    name="find_jumps",
)
result = ps.sinks.Memory()
app.sink("jumps", jumps, result)
summary = app.run(on=ps.Node())

for row in result.table().to_pylist():
    print(f"{row['sequence']}: {row['at']:%H:%M:%S} from {row['before']:.0f} to {row['after']:.0f} degrees")
print(f"instances: {summary.metrics.degrees['find_jumps'].observed}")
