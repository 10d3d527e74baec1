"""Where does a share fall and recover? The question as SQL, for those who know it.

``MATCH_RECOGNIZE`` of the SQL standard is read into the same patterns that Python writes with ``>>``.

$ python examples/sql_match_recognize.py
ACME 15:00 to 15:05: 50 fell to 41 and rose to 52
BOLT 15:02 to 15:06: 22 fell to 17 and rose to 24
ACME 15:07 to 15:10: 55 fell to 53 and rose to 58
"""

from datetime import UTC, datetime, timedelta

import penstock as ps

PRICES = {
    "ACME": [50, 47, 44, 41, 45, 52, 51, 55, 54, 53, 58],
    "BOLT": [20, 21, 22, 19, 17, 18, 24, 24, 24, 23, 26],
}
start = datetime(2026, 3, 2, 15, tzinfo=UTC)
ticks = [
    {"ts": start + timedelta(minutes=minute), "symbol": symbol, "price": price}
    for minute in range(11)
    for symbol, prices in PRICES.items()
    for price in [prices[minute]]
]

app = ps.App("shares")
schema = ps.Schema(ts="timestamp", symbol="string", price="int64")
shares = app.source("ticks", ps.sources.Rows(ticks, schema), event_time="ts")

dips = shares.match_recognize("""
    MATCH_RECOGNIZE (
        PARTITION BY symbol ORDER BY ts
        MEASURES TOP.price AS before, MIN(DOWN.price) AS lowest, UP.price AS after
        ONE ROW PER MATCH
        AFTER MATCH SKIP PAST LAST ROW
        PATTERN (TOP DOWN{2,} UP+) WITHIN INTERVAL '1' HOUR
        DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price)
    )""")
result = ps.sinks.Memory()
app.sink("dips", dips, result)
app.run(on=ps.Node())

for dip in result.table().sort_by([("match_start", "ascending"), ("symbol", "ascending")]).to_pylist():
    print(
        f"{dip['symbol']} {dip['match_start']:%H:%M} to {dip['match_end']:%H:%M}: "
        f"{dip['before']} fell to {dip['lowest']} and rose to {dip['after']}"
    )
