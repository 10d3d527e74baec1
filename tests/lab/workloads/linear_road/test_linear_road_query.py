"""Tolls and accidents: worked by hand on a few cars, and compared with the reference on generated ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from lab.workloads.linear_road.data import FIELDS, LinearRoadEvents, LinearRoadSettings
from lab.workloads.linear_road.query import tolls
from penstock.app import App
from penstock.connectors.memory.columns import Rows
from penstock.connectors.memory.generator import Generator
from penstock.connectors.memory.sink import Memory
from penstock.engine.node import Node
from penstock.query.types import Schema
from tests.reference import Row, run_reference

SCHEMA = Schema.of(dict(FIELDS))


def report(second: int, vid: int, speed: int, place: tuple[int, int, int], lane: int = 2, **more: int) -> Row:
    """A position report from the middle of the segment (xway, dir, seg), if ``pos`` says nothing else."""
    xway, direction, seg = place
    row = dict.fromkeys(SCHEMA.names, -1) | {
        "ts": second * 1_000_000,
        "type": 0,
        "time_s": second,
        "vid": vid,
    }
    row |= {
        "speed": speed,
        "xway": xway,
        "lane": lane,
        "dir": direction,
        "seg": seg,
        "pos": seg * 5280 + 2640,
    }
    return row | more


def crowd(
    cars: int, speed: int, place: tuple[int, int, int], minute: int = 0, first: int = 1000
) -> list[Row]:
    """So many cars at one place in one minute, each reporting once."""
    return [report(60 * minute + car % 60, first + car, speed, place) for car in range(cars)]


def run(rows: Iterable[Row], workers: int = 2) -> dict[tuple[int, int, int, int], tuple[Any, ...]]:
    """(minute, xway, dir, seg) → (mean speed, cars, accident, toll)."""
    app, sink = App("road"), Memory()
    ordered = sorted(rows, key=lambda row: row["time_s"])
    app.sink("tolls", tolls(app.source("road", Rows(ordered, SCHEMA), event_time="ts")), sink)
    app.run(on=Node(workers=workers))
    return {
        (row["window_end"] // 60_000_000 - 1, row["xway"], row["dir"], row["seg"]): (
            row["speed"],
            row["cars"],
            row["accident"],
            row["toll"],
        )
        for row in sink.rows()
    }


def test_the_query_has_ten_operators() -> None:
    app = App("road")
    app.sink("tolls", tolls(app.source("road", Rows([], SCHEMA), event_time="ts")), Memory())
    kinds = sorted(node.kind for node in app.graph())
    nested = ["nested"] * 3
    assert kinds == ["filter", "filter", "group_join", "join", *nested, "select", "sink", "source"]


def test_a_toll_is_due_where_it_is_slow_and_full() -> None:
    found = run(
        [
            *crowd(53, 39, (0, 0, 10)),
            *crowd(50, 39, (0, 0, 20)),  # not full
            *crowd(60, 40, (0, 1, 10)),  # not slow
            *crowd(51, 10, (1, 0, 10), minute=1),
        ]
    )
    assert found == {
        (0, 0, 0, 10): (39.0, 53, False, 2 * 3 * 3),
        (0, 0, 0, 20): (39.0, 50, False, 0),
        (0, 0, 1, 10): (40.0, 60, False, 0),
        (1, 1, 0, 10): (10.0, 51, False, 2),
    }


def test_a_car_counts_once_however_often_it_reports() -> None:
    rows = [report(0, 1, 10, (0, 0, 5)), report(30, 1, 30, (0, 0, 5)), report(31, 2, 60, (0, 0, 5))]
    # the mean over cars is (20 + 60) / 2; over reports it would be 33.3
    assert run(rows) == {(0, 0, 0, 5): (40.0, 2, False, 0)}


def test_requests_are_no_reports() -> None:
    assert run([report(0, 1, 10, (0, 0, 5)), report(1, 9, -1, (0, 0, 5), type=2)]) == {
        (0, 0, 0, 5): (10.0, 1, False, 0)
    }


def stopped(vids: Iterable[int], place: tuple[int, int, int], times: int = 4, **more: int) -> list[Row]:
    """Cars that stand still for so many reports, from second 0 on."""
    return [report(30 * time + vid % 30, vid, 0, place, **more) for time in range(times) for vid in vids]


@pytest.mark.parametrize(("direction", "near"), [(0, range(46, 51)), (1, range(50, 55))])
def test_there_is_no_toll_up_to_four_segments_before_an_accident(direction: int, near: range) -> None:
    accident = stopped((1, 2), (0, direction, 50))
    crowds = [row for seg in range(44, 57) for row in crowd(60, 20, (0, direction, seg), 1, first=100 * seg)]
    other_way = crowd(60, 20, (0, 1 - direction, 50), 1, first=90_000)
    other_road = crowd(60, 20, (1, direction, 50), 1, first=91_000)
    found = run([*accident, *crowds, *other_way, *other_road])
    # The accident is known when the window [0 s, 120 s) closes: in the minute that ends then.
    free = {key[3] for key, (_, _, is_near, _) in found.items() if key[0] == 1 and is_near}
    assert free == set(near)
    for (minute, xway, way, seg), (_, cars, _, toll) in found.items():
        if minute == 1 and cars >= 60:
            is_free = (xway, way) == (0, direction) and seg in near
            assert toll == (0 if is_free else 2 * (cars - 50) ** 2)


@pytest.mark.parametrize(
    "rows",
    [
        stopped((1,), (0, 0, 50)),  # one car
        stopped((1, 2), (0, 0, 50), times=3),  # not long enough
        stopped((1,), (0, 0, 50)) + stopped((2,), (0, 0, 50), pos=50 * 5280),  # not at one position
        stopped((1,), (0, 0, 50)) + stopped((2,), (0, 0, 50), lane=1),  # nor in one lane
        stopped((1, 2), (0, 0, 50), lane=4),  # on the exit ramp
        [row | {"speed": 1} for row in stopped((1, 2), (0, 0, 50))],  # they move
        stopped((1,), (0, 0, 50)) + stopped((2,), (0, 1, 50)),  # not in one direction
    ],
)
def test_these_are_no_accidents(rows: list[Row]) -> None:
    found = run([*rows, *crowd(60, 20, (0, 0, 50), 1)])
    assert not any(is_near for _, _, is_near, _ in found.values())
    assert found[1, 0, 0, 50][3] > 0


def test_an_accident_ends_when_the_cars_move_on() -> None:
    # Four reports each, at 0 s, 30 s, 60 s and 90 s: only the window [0 s, 120 s) has all four.
    rows = stopped((1, 2), (0, 0, 50))
    minutes = [
        row for minute in range(4) for row in crowd(60, 20, (0, 0, 50), minute, first=1000 * minute + 1000)
    ]
    found = run([*rows, *minutes])
    assert [found[minute, 0, 0, 50][2] for minute in range(4)] == [False, True, False, False]


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_generated_traffic_gives_the_rows_of_the_reference(workers: int) -> None:
    events = LinearRoadEvents(LinearRoadSettings(cars=40, expressways=2, accident_share=0.2))
    count = 3_000
    columns = {name: np.zeros(count, np.int64) for name, _ in FIELDS}
    events.fill(0, count, columns, 0)
    listed = {name: column.tolist() for name, column in columns.items()}
    rows = [dict(zip(listed, values, strict=True)) for values in zip(*listed.values(), strict=True)]
    app, sink = App("road"), Memory()
    source = Generator(events.fill, SCHEMA, limit=count)
    app.sink("tolls", tolls(app.source("road", source, event_time="ts")), sink)
    expected = run_reference(app.graph(), {"road": [rows]})["tolls"]
    app.run(on=Node(workers=workers))

    def ordered(found: list[Row]) -> list[list[tuple[str, Any]]]:
        return sorted(sorted(row.items()) for row in found)

    assert ordered(sink.rows()) == ordered(expected)
    assert sum(row["accident"] for row in expected) > 10
