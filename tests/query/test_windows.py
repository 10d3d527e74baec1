"""Windows."""

from __future__ import annotations

from datetime import timedelta

from penstock.query.windows import Session, Sliding, session, sliding, tumbling
from tests.query.stream.streams import fails


def test_tumbling_is_sliding_by_its_size() -> None:
    window = tumbling("10s")
    assert window == Sliding(10_000_000, 10_000_000)
    assert window.is_tumbling
    assert window.pane_us == 10_000_000
    assert str(window) == "tumbling 10s"
    assert tumbling(timedelta(seconds=10)) == window


def test_panes_are_what_every_window_holds_whole() -> None:
    window = sliding("10s", every="4s")
    assert window.pane_us == 2_000_000
    assert not window.is_tumbling
    assert str(window) == "sliding 10s every 4s"


def test_sessions() -> None:
    assert session("30m") == Session(1_800_000_000)
    assert str(session("30m")) == "session 30m"


def test_a_window_of_no_length_is_refused() -> None:
    fails(lambda: tumbling("0s"), "window size must be positive", "got '0s'", "'10s'", step="tumbling")
    fails(lambda: tumbling("-1s"), "window size must be positive", step="tumbling")
    fails(lambda: sliding("0s", every="1s"), "window size must be positive", step="sliding")
    fails(lambda: sliding("1s", every="0s"), "window slide must be positive", step="sliding")
    fails(lambda: sliding("1s", every="2s"), "must not exceed its size", "slide '2s'", step="sliding")
    fails(lambda: session("0s"), "session gap must be positive", step="session")
    fails(
        lambda: tumbling("1d", tz="Europe/Atlantis"),
        "time zone that this machine",
        "Atlantis",
        step="tumbling",
    )
    fails(lambda: tumbling("soon"), "is not a length of time", step="tumbling")
