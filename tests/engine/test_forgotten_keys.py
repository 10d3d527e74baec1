"""Keys come and go for ever: a node that may forget them keeps the memory that it had after the first."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.query.stream.stream import Stream

_AT_ONCE = "5000us"  # a key a microsecond: so many are remembered at a time
_MEASURED = 20  # times in a run
#: How many keys the slow tests have; at 10,000,000 they take some minutes.
_KEYS = int(os.environ.get("PENSTOCK_FORGOTTEN_KEYS", "1000000"))


class Visits(ps.ProcessFunction):
    """Remembers each key and asks for a timer that never comes."""

    def on_event(self, event: dict[str, Any], context: ps.Context) -> list[dict[str, Any]]:
        context.state["n"] += 1
        context.set_timer(event["ts"] + 10**9)
        return [{"n": context.state["n"]}]


def process(events: Stream, forgotten_after: str | None) -> Stream:
    return events.key_by("id").process(Visits(), {"n": "int64"}, {"n": "int64"}, ttl=forgotten_after)


def deduplicate(events: Stream, forgotten_after: str | None) -> Stream:
    return events.deduplicate("id", within=forgotten_after).select("ts", n=1)


Step = Callable[[Stream, str | None], Stream]


def run(step: Step, keys: int, forgotten_after: str | None) -> tuple[int, int]:
    """How many keys were new, and by how many bytes the process was larger in the second half of the run than
    in the first."""
    resident_bytes: list[int] = []

    def fill(offset: int, n: int, columns: dict[str, Any], start: int) -> None:
        columns["ts"][start : start + n] = np.arange(offset, offset + n)
        while offset + n > len(resident_bytes) * keys // _MEASURED:
            resident_bytes.append(_resident_bytes())

    app, sink = ps.App("keys"), ps.sinks.Memory()
    source = ps.sources.Generator(fill, {"ts": "timestamp"}, limit=keys)
    events = app.source("events", source, event_time="ts").with_columns(id=ps.col("ts").cast("int64"))
    new = step(events, forgotten_after).filter(ps.col("n") == 1)
    app.sink("new", new.window(ps.tumbling("1h")).agg(new=ps.count()), sink)
    app.run(on=ps.Node(workers=1))
    half = len(resident_bytes) // 2
    grown = max(resident_bytes[half:]) - max(resident_bytes[:half])
    return sum(row["new"] for row in sink.rows()), grown


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "most_grown"),
    # Kept for ever, keys of a process function take 900 bytes each, those of a deduplication 32.
    [(process, 64 << 20), (deduplicate, 10 << 20)],
)
def test_a_million_keys_that_may_be_forgotten_leave_memory_flat(step: Step, most_grown: int) -> None:
    new, grown = run(step, _KEYS, _AT_ONCE)
    assert new == _KEYS
    assert grown < most_grown


@pytest.mark.parametrize("step", [process, deduplicate])
def test_keys_that_may_be_forgotten_come_and_go(step: Step) -> None:
    assert run(step, 20_000, _AT_ONCE)[0] == 20_000
