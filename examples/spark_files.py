"""CSV files in, Parquet out, on Spark: the run fails in the middle, and the next one goes on where it was.

With a checkpoint every row is in the Parquet files exactly once, whatever stopped the run. Spark runs inside
this process; ``ps.Spark("spark://host:7077", checkpoint=...)`` is the same on a cluster.

$ python examples/spark_files.py
the first run: sink of query 'warm' failed in batch 2: ConnectionError: nobody answers
the second run: 45 of 144 rows were left to read
01 March  harbour  24 hours, 4.9 degrees
01 March  hill     24 hours, 3.9 degrees
02 March  harbour  24 hours, 5.9 degrees
02 March  hill     24 hours, 4.9 degrees
03 March  harbour  24 hours, 6.9 degrees
03 March  hill     24 hours, 5.9 degrees
"""

import csv
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

import penstock as ps
from penstock import avg, col, count, tumbling

scratch = tempfile.TemporaryDirectory(prefix="penstock-example-")
folder = Path(scratch.name)
(folder / "in").mkdir()
for day in range(3):
    with (folder / "in" / f"day-{day}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["ts", "station", "celsius"])
        for hour in range(24):
            for station in ("harbour", "hill"):
                time = f"2026-03-0{day + 1}T{hour:02}:30:00"
                writer.writerow([time, station, 8 + day - abs(hour - 14) / 2 - (station == "hill")])

alarm_works = False


def alarm(rows):
    """Calls another system, which is down when the first warm hour comes."""
    if not alarm_works:
        raise ConnectionError("nobody answers")


def build():
    app = ps.App("weather")
    weather = app.source("weather", ps.sources.Csv(folder / "in"), event_time="ts")
    days = weather.key_by("station").window(tumbling("1d")).agg(hours=count(), celsius=avg("celsius"))
    app.sink("days", days, ps.sinks.Parquet(folder / "out"))
    app.sink("warm", weather.filter(col("celsius") > 9.5), ps.sinks.Callback(alarm))
    return app


spark = ps.Spark(checkpoint=folder / "checkpoint", batch_events=50)
try:
    build().run(on=spark)
except ps.RunError as error:
    print("the first run:", str(error).splitlines()[0])

alarm_works = True
summary = build().run(on=spark)
print(f"the second run: {summary.progress.rows_in} of 144 rows were left to read")

table = pq.read_table(folder / "out").sort_by([("window_start", "ascending"), ("station", "ascending")])
for row in table.to_pylist():
    print(
        f"{row['window_start']:%d %B}  {row['station']:7}  {row['hours']} hours, {row['celsius']:.1f} degrees"
    )
scratch.cleanup()
