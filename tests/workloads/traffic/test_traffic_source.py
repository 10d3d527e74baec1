"""The traffic source: what it does beside making events."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.workloads.traffic.settings import TrafficSettings
from penstock.workloads.traffic.simulation import TrafficSimulation


def rows_of(source: ps.sources.Traffic) -> list[dict[str, object]]:
    app, sink = ps.App("traffic"), ps.sinks.Memory()
    app.sink("out", app.source("cars", source, event_time="ts"), sink)
    app.run(on=ps.Node(workers=1))
    return sink.rows()


@pytest.mark.parametrize(("seconds", "expected"), [(0.2, 1), (0.04, 0)])  # five frames; one only
def test_a_warm_up_moves_the_cars_once_and_changes_nothing(
    seconds: float, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = TrafficSettings(cars=50, roads=2)
    steps, step = [], TrafficSimulation._step
    monkeypatch.setattr(TrafficSimulation, "_step", lambda self: (steps.append(1), step(self)))
    warm = ps.sources.Traffic(settings, seconds=seconds)
    warm.warm_up()
    assert len(steps) == expected
    assert rows_of(warm) == rows_of(ps.sources.Traffic(settings, seconds=seconds))
