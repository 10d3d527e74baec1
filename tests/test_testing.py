"""Trials of a user's own queries: what is said is worked in, times pass as said, a killed run goes on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import penstock as ps
from penstock import count, tumbling
from penstock.query.errors import QueryError, RunError
from penstock.testing import Tape, Trial

SECOND = 1_000_000
CARS = {"ts": "timestamp", "lane": "int32", "driver": "string?"}


class Traffic:
    """Cars by lane and minute, and those that came too late."""

    def __init__(self, lateness: str = "0s") -> None:
        self.cars, self.counts, self.late = Tape(CARS), ps.sinks.Memory(), ps.sinks.Memory()
        self.app = ps.App("traffic")
        cars = self.app.source("cars", self.cars, event_time="ts", lateness=lateness)
        counts = cars.key_by("lane").window(tumbling("1m")).agg(cars=count(), drivers=ps.count("driver"))
        self.app.sink("counts", counts, self.counts)
        self.app.sink("late", counts.late(), self.late)

    @property
    def counted(self) -> list[tuple[int, int]]:
        return sorted((row["lane"], row["cars"]) for row in self.counts.rows())


def car(second: int, lane: int = 1, **more: Any) -> dict[str, Any]:
    return {"ts": second * SECOND, "lane": lane, **more}


@pytest.fixture(params=[1, 2])
def node(request: pytest.FixtureRequest) -> ps.Node:
    return ps.Node(workers=request.param)


def test_a_window_gives_its_result_when_time_has_passed_it(node: ps.Node) -> None:
    traffic = Traffic()
    with Trial(traffic.app, on=node) as trial:
        traffic.cars.add([car(5), car(9, driver="Ada"), car(20, lane=2)])
        trial.settle()
        assert traffic.counted == []
        traffic.cars.watermark(60 * SECOND)
        trial.settle()
        assert traffic.counted == [(1, 2), (2, 1)]
        assert [row["drivers"] for row in traffic.counts.rows() if row["lane"] == 1] == [1]


def test_what_comes_behind_a_watermark_is_late_whatever_the_lateness(node: ps.Node) -> None:
    traffic = Traffic(lateness="10s")
    with Trial(traffic.app, on=node) as trial:
        traffic.cars.add([car(30), car(25)])
        traffic.cars.watermark(datetime(1970, 1, 1, 0, 1, tzinfo=UTC))
        traffic.cars.add([car(59), car(61)])
        summary = trial.finish()
    assert summary.complete
    assert traffic.counted == [(1, 1), (1, 2)]
    assert [row["ts"] for row in traffic.late.rows()] == [59 * SECOND]


def test_a_killed_run_gives_the_same_when_it_is_started_again(node: ps.Node) -> None:
    traffic = Traffic()
    with Trial(traffic.app, on=node) as trial:
        traffic.cars.add(car(second) for second in range(50, 70))
        trial.settle()
        assert traffic.counted == [(1, 10)]
        trial.restart()
        traffic.cars.add([car(71, lane=2)])
        trial.finish()
    assert traffic.counted == [(1, 10), (1, 10), (2, 1)]


def test_two_sources_settle_together(node: ps.Node) -> None:
    traffic, tolls = Traffic(), Tape({"ts": "timestamp", "lane": "int32", "driver": "string?"})
    app, both = ps.App("union"), ps.sinks.Memory()
    cars = app.source("cars", traffic.cars, event_time="ts")
    stream = cars.union(app.source("tolls", tolls, event_time="ts"))
    app.sink("both", stream.window(tumbling("1m")).agg(n=count()), both)
    with Trial(app, on=node) as trial:
        traffic.cars.add([car(1), car(61)])
        trial.settle()
        assert both.rows() == []  # the other source has said nothing of time
        tolls.watermark(61 * SECOND)
        trial.settle()
        assert [row["n"] for row in both.rows()] == [1]


def test_what_fails_is_raised_where_it_is_waited_for(node: ps.Node) -> None:
    cars, app = Tape(CARS), ps.App("fails")
    stream = app.source("cars", cars, event_time="ts")
    out = stream.flat_map(lambda event: [{"x": 1 // event["lane"]}], output={"x": "int64"})
    app.sink("out", out, ps.sinks.Discard())
    with Trial(app, on=node) as trial:
        cars.add([car(1, lane=0)])
        with pytest.raises(RunError, match="ZeroDivisionError"):
            trial.settle()


def test_mistakes_of_a_test_are_told() -> None:
    traffic = Traffic()
    with pytest.raises(QueryError, match="unknown column 'line'; columns are ts, lane, driver"):
        traffic.cars.add([{"ts": 1, "line": 2}])
    with pytest.raises(QueryError, match="column 'lane' does not fit: got None"):
        traffic.cars.add([{"ts": 1}])
    trial = Trial(traffic.app, on=ps.Node(workers=1))
    with pytest.raises(RunError, match="nothing runs: start the trial first"):
        trial.settle()
    traffic.cars.end()
    with pytest.raises(QueryError, match="the tape has ended"):
        traffic.cars.add([car(1)])
    with pytest.raises(QueryError, match="a trial leads a node without a checkpoint"):
        Trial(traffic.app, on=ps.Node(checkpoint="state"))
    app = ps.App("endless")
    road = app.source("road", ps.sources.Traffic(), event_time="ts")
    app.sink("out", road, ps.sinks.Discard())
    with pytest.raises(QueryError, match="source 'road' never settles"):
        Trial(app)
