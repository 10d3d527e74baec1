"""Prices come as text in several spellings: convert them with plain Python, and set aside what cannot be.

A function that fails ends the run, unless its step says ``on_error="set_aside"``: then the event goes to
``.failed()`` with the error, and all others go on. ``batch`` gets many events at once as numpy columns.

$ python examples/bad_values.py
offer 0: 14.88 with tax
offer 1: 1545.81 with tax
offer 2: 117.81 with tax
offer 4: 8.63 with tax
offer 3: ValueError: could not convert string to float: 'ask us'
offer 5: ValueError: could not convert string to float: ''
"""

import numpy as np

import penstock as ps

TEXTS = ["12.50", "1.299,00", "99", "ask us", "7,25", ""]
offers = [{"ts": number, "offer": number, "text": text} for number, text in enumerate(TEXTS)]


def parse(event):
    """German or English spelling, by which sign comes last."""
    text = event["text"]
    if text.rfind(",") > text.rfind("."):
        text = text.replace(".", "").replace(",", ".")
    return [{"offer": event["offer"], "price": float(text)}]


def with_tax(columns):
    return {"offer": columns["offer"], "gross": np.round(columns["price"] * 1.19, 2)}


app = ps.App("offers")
schema = ps.Schema(ts="timestamp", offer="int64", text="string")
texts = app.source("offers", ps.sources.Rows(offers, schema), event_time="ts")
prices = texts.flat_map(
    parse, output={"offer": "int64", "price": "float64"}, on_error="set_aside", name="parse"
)
gross = prices.batch(with_tax, output={"offer": "int64", "gross": "float64"})

good, bad = ps.sinks.Memory(), ps.sinks.Memory()
app.sink("gross", gross, good)
app.sink("failed", prices.failed(), bad)
app.run(on=ps.Node())

for row in sorted(good.rows(), key=lambda row: row["offer"]):
    print(f"offer {row['offer']}: {row['gross']:.2f} with tax")
for row in sorted(bad.rows(), key=lambda row: row["offer"]):
    print(f"offer {row['offer']}: {row['error']}")
