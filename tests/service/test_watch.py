"""What is told of a run: each change once, progress once in a while, totals when they are asked for."""

from __future__ import annotations

import logging

import pytest

from penstock.metrics.watch import Phase, Totals, Watch


class Clock:
    """Time as the test says."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_every_change_of_state_is_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "penstock")
    clock = Clock()
    watch = Watch("cars", "Node", clock=clock)
    assert watch.standing.state is Phase.STARTING
    watch.starting(2, 7)
    clock.now_s = 1.5
    watch.ready()
    assert watch.standing.state is Phase.READY
    watch.stopping()
    assert watch.standing.state is Phase.STOPPING
    watch.ended("stopped after 2.0 s")
    assert watch.standing.state is Phase.ENDED
    assert caplog.messages == [
        "run 'cars' starts on Node: 2 queries, 7 operators",
        "run 'cars' is ready after 1.5 s",
        "run 'cars' was asked to stop: what is on its way is still processed",
        "run 'cars' has ended: stopped after 2.0 s",
    ]


def test_progress_is_told_once_in_a_while_and_asked_for_at_any_time(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "penstock")
    clock = Clock()
    watch = Watch("cars", "Node", progress_every_s=10, clock=clock)
    for _ in range(25):
        clock.now_s += 1
        watch.progress(lambda: Totals(read=100 * int(clock.now_s), written=3))
    assert watch.standing.totals.read == 2500
    assert caplog.messages == [
        "run 'cars' 1,000 events read, 3 rows written, 0 waiting",
        "run 'cars' 2,000 events read, 3 rows written, 0 waiting",
    ]


def test_a_failure_is_an_error_and_stays(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch("cars", "Node")
    watch.failed(ValueError("no such lane"))
    assert (watch.standing.state, watch.standing.error) == (Phase.FAILED, "no such lane")
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("ERROR", "run 'cars' has failed: no such lane")
    ]
