"""Is somebody trying out a stolen card: several tiny payments, then a very large one, and no refund between?

An event pattern by card, with a condition on what was bound before.

$ python examples/fraud_pattern.py
12:02:15 card 107: 3 tiny payments, then 907.00
12:04:25 card 133: 2 tiny payments, then 933.00
"""

import random
from datetime import UTC, datetime, timedelta

import penstock as ps
from penstock import col

chance = random.Random(3)
start = datetime(2026, 3, 2, 12, tzinfo=UTC)
payments = [
    {
        "ts": start + timedelta(seconds=2 * number),
        "card": chance.randrange(1, 40),
        "kind": "payment",
        "amount": chance.uniform(10, 150),
    }
    for number in range(500)
]
for card, kinds in ((7, "tttL"), (21, "ttrL"), (33, "ttL"), (12, "tL")):  # tiny, refund, large
    amounts = {"t": 1.0 + card / 100, "r": 1.0, "L": 900.0 + card}
    begin = start + timedelta(seconds=100 + 5 * card)
    payments += [
        {
            "ts": begin + timedelta(milliseconds=300 * number),
            "card": 100 + card,
            "kind": "refund" if kind == "r" else "payment",
            "amount": amounts[kind],
        }
        for number, kind in enumerate(kinds)
    ]
payments.sort(key=lambda payment: payment["ts"])

app = ps.App("cards")
schema = ps.Schema(ts="timestamp", card="int64", kind="string", amount="float64")
events = app.source("payments", ps.sources.Rows(payments, schema), event_time="ts")

paid = col("kind") == "payment"
tiny = ps.event("tiny", paid & (col("amount") < 2))
refund = ps.event("refund", col("kind") == "refund")
large = ps.event("large", paid & (col("amount") > 100 * tiny.avg("amount")))

alarms = events.key_by("card").match(
    tiny.at_least(2) >> ~refund >> large,
    {"tries": tiny.count(), "amount": large["amount"]},
    within="10m",
    after_match="past_last",
)
result = ps.sinks.Memory()
app.sink("alarms", alarms, result)
app.run(on=ps.Node())

for alarm in result.table().sort_by("match_end").to_pylist():
    print(
        f"{alarm['match_end']:%H:%M:%S} card {alarm['card']}: "
        f"{alarm['tries']} tiny payments, then {alarm['amount']:.2f}"
    )
