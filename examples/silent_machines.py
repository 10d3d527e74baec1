"""Which machine has gone silent, and how long was it silent when it came back?

A process function: state and timers per machine, in event time. ``ttl`` forgets machines that were
scrapped, so that state does not grow for ever.

$ python examples/silent_machines.py
drill is silent (2 minutes)
lathe is silent (2 minutes)
lathe is silent (2 minutes)
lathe is back (5 minutes)
press is silent (2 minutes)
"""

from datetime import UTC, datetime, timedelta

import penstock as ps

MINUTE = 60_000_000  # times are microseconds in a process function
BEATS = {"drill": [0, 1, 2, 3, 4, 5, 6], "lathe": [0, 1, 2, 7, 8], "press": [0, 1]}
start = datetime(2026, 3, 2, 10, tzinfo=UTC)
beats = sorted(
    (
        {"ts": start + timedelta(minutes=minute), "machine": machine}
        for machine, minutes in BEATS.items()
        for minute in minutes
    ),
    key=lambda beat: beat["ts"],
)


class Silence(ps.ProcessFunction):
    """Tells when a machine was not heard for two minutes, and when it is heard again."""

    def on_event(self, event, context):
        last, is_silent = context.state["last"], context.state["is_silent"]
        context.delete_timer(last + 2 * MINUTE)
        context.set_timer(context.time + 2 * MINUTE)
        context.state.update(last=context.time, is_silent=False)
        if is_silent:
            yield {"machine": event["machine"], "news": "is back", "silent": context.time - last}

    def on_timer(self, time_us, context):
        context.state["is_silent"] = True
        yield {"machine": context.key[0], "news": "is silent", "silent": time_us - context.state["last"]}


app = ps.App("machines")
source = ps.sources.Rows(beats, ps.Schema(ts="timestamp", machine="string"))
machines = app.source("beats", source, event_time="ts")
news = machines.key_by("machine").process(
    Silence(),
    output={"machine": "string", "news": "string", "silent": "int64"},
    state={"last": "int64", "is_silent": "bool"},
    ttl="1d",
)
result = ps.sinks.Memory()
app.sink("news", news, result)
app.run(on=ps.Node())

for row in sorted(result.rows(), key=lambda row: (row["machine"], row["silent"])):
    print(f"{row['machine']} {row['news']} ({row['silent'] // MINUTE} minutes)")
