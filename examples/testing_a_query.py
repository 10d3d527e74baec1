"""How is a query tested, without a broker, without waiting and without a clock?

A ``Tape`` stands in the place of a source: the test says events and times, lets the run settle, looks at
results, and kills it.

$ python examples/testing_a_query.py
after the events of the first minute: []
after one of the second minute: [{'lane': 1, 'cars': 2}]
after a silent hour: [{'lane': 1, 'cars': 2}, {'lane': 2, 'cars': 1}]
after a kill and a second start: the same
"""

from datetime import UTC, datetime, timedelta

import penstock as ps
from penstock import count, tumbling
from penstock.testing import Tape, Trial

eight = datetime(2026, 3, 2, 8, tzinfo=UTC)


def counted(cars: ps.Stream) -> ps.Stream:
    """The query that is tested."""
    return cars.key_by("lane").window(tumbling("1m")).agg(cars=count()).select("lane", "cars")


tape, result = Tape({"ts": "timestamp", "lane": "int32"}), ps.sinks.Memory()
app = ps.App("traffic")
app.sink("counted", counted(app.source("cars", tape, event_time="ts")), result)

with Trial(app, on=ps.Node()) as trial:
    tape.add({"ts": eight + timedelta(seconds=second), "lane": 1} for second in (5, 50))
    trial.settle()
    print("after the events of the first minute:", result.rows())
    tape.add([{"ts": eight + timedelta(seconds=70), "lane": 2}])
    trial.settle()
    print("after one of the second minute:", result.rows())
    tape.watermark(eight + timedelta(hours=1))
    trial.settle()
    print("after a silent hour:", rows := result.rows())
    trial.restart()
    trial.settle()
    assert result.rows() == rows
    print("after a kill and a second start: the same")
