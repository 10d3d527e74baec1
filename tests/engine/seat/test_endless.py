"""Deduplication for ever tells how large it becomes, on a node."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.operators.run import endless

_KEYS = 40_000


def fill(offset: int, n: int, columns: dict[str, Any], start: int) -> None:
    columns["ts"][start : start + n] = np.arange(offset, offset + n)


def app(within: str | None = None) -> ps.App:
    app = ps.App("endless")
    source = ps.sources.Generator(fill, {"ts": "timestamp"}, limit=_KEYS)
    ids = app.source("events", source, event_time="ts").with_columns(id=ps.col("ts").cast("int64"))
    app.sink("once", ids.deduplicate("id", within=within, name="ids"), ps.sinks.Discard())
    return app


def told(text: str) -> list[int]:
    """The numbers of keys that users were told of."""
    counts = re.findall(r"step 'ids' remembers ([\d,]+) keys for ever", text)
    return [int(count.replace(",", "")) for count in counts]


@pytest.mark.parametrize("tasks", [1, 3])
def test_deduplication_for_ever_is_told_at_each_doubling(
    tasks: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(endless, "FIRST_BYTES", 100_000)
    app().run(on=ps.Node(workers=2, tasks=tasks))
    keys = told(caplog.text)
    assert 3 <= len(keys) <= 6
    assert keys == sorted(keys)
    assert keys[-1] > _KEYS / 4


def test_deduplication_that_forgets_is_not_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(endless, "FIRST_BYTES", 1)
    app(within="1s").run(on=ps.Node())
    assert told(caplog.text) == []
