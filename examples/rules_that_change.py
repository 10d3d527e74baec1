"""Rules that come and go while transfers flow: which ones held when each transfer was made?

A ``PatternSet`` can be changed from any thread while the app runs. A change holds from an event time on, so a
result says which rules held then, and not when a computer came to it.

$ python examples/rules_that_change.py
second 2: large: eve gives sam 9,000
second 2: to_sam_or_ann: eve gives sam 9,000
second 3: to_sam_or_ann: tom gives ann 50
second 8: sam_moves_on: sam gives abroad 4,000
second 9: sam_moves_on: sam gives abroad 4,500
"""

import penstock as ps
from penstock import col

SECOND = 1_000_000
TRANSFERS = [  # second, from, to, amount
    (1, "eve", "bank", 20),
    (2, "eve", "sam", 9_000),
    (3, "tom", "ann", 50),
    (8, "sam", "abroad", 4_000),
    (9, "sam", "abroad", 4_500),
    (12, "ann", "tom", 60),
]
transfers = [
    {"ts": second * SECOND, "giver": giver, "taker": taker, "amount": amount}
    for second, giver, taker, amount in TRANSFERS
]

app = ps.App("transfers")
schema = ps.Schema(ts="timestamp", giver="string", taker="string", amount="int64")
stream = app.source("transfers", ps.sources.Rows(transfers, schema), event_time="ts")

rules = ps.PatternSet({"giver": "string", "taker": "string", "amount": "int64"})
hits = stream.match_set(rules)


def rule(condition):
    transfer = ps.event("transfer", condition)
    return transfer, {name: transfer[name] for name in ("giver", "taker", "amount")}


rules.add("large", *rule(col("amount") > 8_000), within="1m")
rules.add("to_sam_or_ann", *rule(col("taker").is_in(["sam", "ann"])), within="1m")
rules.add("sam_moves_on", *rule(col("giver") == "sam"), within="1m", at=5 * SECOND)
rules.remove("to_sam_or_ann", at=4 * SECOND)

result = ps.sinks.Memory()
app.sink("hits", hits, result)
app.run(on=ps.Node())

for row in sorted(result.rows(), key=lambda row: (row["match_end"], row["pattern"])):
    second = row["match_end"] // SECOND
    print(f"second {second}: {row['pattern']}: {row['giver']} gives {row['taker']} {row['amount']:,}")
