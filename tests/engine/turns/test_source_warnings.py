"""What times give away: another unit than microseconds, and order that was promised and is not there."""

from __future__ import annotations

import logging

import pytest

import penstock as ps
from penstock.engine.turns.source import suspected_unit

SECOND = 1_767_225_600  # 2026-01-01


def told(times: list[int], caplog: pytest.LogCaptureFixture, **promise: bool) -> list[str]:
    caplog.set_level(logging.WARNING, "penstock")
    app = ps.App("times")
    source = ps.sources.Columns({"ts": times}, {"ts": "timestamp"}, **promise)
    app.sink("out", app.source("cars", source, event_time="ts"), ps.sinks.Discard())
    app.run(on=ps.Node(workers=1, block_events=4))
    return caplog.messages


@pytest.mark.parametrize(
    ("time", "unit"),
    [
        (SECOND, "seconds"),
        (SECOND * 1_000, "milliseconds"),
        (SECOND * 1_000_000, None),
        (SECOND * 1_000_000_000, "nanoseconds"),
        (0, None),
        (5_000_000, None),
        (-SECOND, None),
    ],
)
def test_the_unit_that_a_time_gives_away(time: int, unit: str | None) -> None:
    assert suspected_unit(time) == unit


def test_times_in_milliseconds_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    (message,) = told([1_000 * (SECOND + n) for n in range(10)], caplog)
    assert message.startswith(
        "source 'cars': event times look like milliseconds: 1767225600000 is taken for "
    )
    assert "which is 1970-01-21" in message


def test_broken_order_is_told_once_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    (message,) = told([1, 2, 3, 4, 5, 6, 4, 7, 5], caplog, ordered=True)
    assert message.startswith(
        "source 'cars' promises order and breaks it: event 6 of partition 0 lies before"
    )


def test_order_that_is_there_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    assert told([1, 1, 2, 3, 5, 8], caplog, ordered=True) == []
