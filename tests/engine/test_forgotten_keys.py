"""Keys come and go for ever: with a ttl a node's memory stays as it was after the first of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

_AT_ONCE = 5_000  # keys that are remembered at a time


class Visits(ps.ProcessFunction):
    """Remembers each key and asks for a timer that never comes; measures every now and then."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.resident_bytes: list[int] = []

    def on_event(self, event: dict[str, Any], context: ps.Context) -> list[dict[str, Any]]:
        context.state["n"] += 1
        context.set_timer(event["ts"] + 10**9)
        if event["ts"] % self.every:
            return []
        self.resident_bytes.append(_resident_bytes())
        return [{"n": context.state["n"]}]


def run(keys: int, ttl: str | None) -> tuple[list[dict[str, Any]], int]:
    """The rows, and how much larger the process was in the second half of the run than in the first."""

    def fill(offset: int, n: int, columns: dict[str, Any], start: int) -> None:
        columns["ts"][start : start + n] = np.arange(offset, offset + n)

    function, sink = Visits(keys // 20), ps.sinks.Memory()
    app = ps.App("visits")
    visits = app.source(
        "visits", ps.sources.Generator(fill, {"ts": "timestamp"}, limit=keys), event_time="ts"
    )
    counted = visits.key_by(key=ps.col("ts")).process(function, {"n": "int64"}, {"n": "int64"}, ttl=ttl)
    app.sink("counted", counted, sink)
    app.run(on=ps.Node(workers=1))
    return sink.rows(), max(function.resident_bytes[10:]) - max(function.resident_bytes[:10])


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_ten_million_keys_with_a_ttl_leave_memory_flat() -> None:
    rows, grown = run(10_000_000, f"{_AT_ONCE}us")
    assert rows == [{"n": 1}] * 20
    assert grown < 64 << 20  # without a ttl it is more than 600 bytes a key: 3 GB in the second half


def test_keys_with_a_ttl_come_and_go_on_a_node() -> None:
    rows, _ = run(20_000, f"{_AT_ONCE}us")
    assert rows == [{"n": 1}] * 20
