"""The shop's applications: COMMCOUNT, Top_N (ms-stream 7.1), and a ledger whose steps cannot be merged."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.query.aggregates import count
from penstock.query.durations import Duration
from penstock.query.expr import col
from penstock.query.stream.stream import Stream
from penstock.query.types import Schema
from penstock.query.user_functions import Context, ProcessFunction
from penstock.query.windows import tumbling

LEDGER = Schema(item_id="int64", number="int64", seal="int64")


def commcount(events: Stream, window: Duration = "1s") -> Stream:
    """COMMCOUNT: how often each item was browsed."""
    browsed = events.filter(col("behaviour") == "pv")
    return browsed.key_by("item_id").window(tumbling(window)).agg(views=count())


def top_n(events: Stream, n: int = 10, parts: int = 16, window: Duration = "1s") -> Stream:
    """Top_N: the items with the most purchases: split → count per item → partial ranks → total rank."""
    bought = events.filter(col("behaviour") == "buy")
    counted = bought.key_by("item_id").window(tumbling(window)).agg(purchases=count())
    in_parts = counted.select("item_id", "purchases").key_by(part=col("item_id") % parts)
    partial = in_parts.window(tumbling(window)).top(n, by="purchases")
    return partial.select("item_id", "purchases").window(tumbling(window)).top(n, by="purchases")


@dataclass(frozen=True)
class Ledger(ProcessFunction):
    """Seals every event of an item with the seal before it: in order, and in one place for each item.

    ``rounds`` is the work of a seal. It is done outside of the interpreter's lock.
    """

    rounds: int = 50

    def on_event(self, event: dict[str, Any], context: Context) -> Iterator[dict[str, Any]]:
        state = context.state
        state["number"] += 1
        told = f"{state['seal']} {event['user_id']} {state['number']}".encode()
        digest = hashlib.pbkdf2_hmac("sha256", told, b"shop", self.rounds, 8)
        state["seal"] = int.from_bytes(digest, "little", signed=True)
        yield {"item_id": event["item_id"], "number": state["number"], "seal": state["seal"]}


def ledger(events: Stream, rounds: int = 50) -> Stream:
    """A heavy function per item that no partial result can replace: only one task may have an item."""
    state = {"number": "int64", "seal": "int64"}
    return events.key_by("item_id").process(Ledger(rounds), LEDGER, state, name="ledger")
