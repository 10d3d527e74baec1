"""The parts of a detector by themselves: late events, the merger's numbers, and detectors that go wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.cep.selections.detecting import found_schema
from penstock.cep.selections.instances import Matches
from penstock.cep.selections.merger_operator import MergerOperator
from penstock.cep.selections.selections import EventBatch
from penstock.cep.selections.shared_detection import MergerPart
from penstock.cep.selections.shipped_detection import (
    AT,
    ShippedSplitterPart,
    ShippingSplitter,
    shipped_schema,
)
from penstock.cep.selections.splitter_rows import RowPredicates
from penstock.memory.layout import ORDER
from penstock.query.errors import PenstockError, RunError
from penstock.query.steps import DetectSpec
from penstock.query.types import Schema
from tests.cep.selections.detection_cases import OUTPUT, SCHEMA, make_rows
from tests.harness import Harness, layout

DETECTED = Schema.of({"sequence": "int64", "closed_at": "timestamp", "who": "string?"})


def merger(**options: Any) -> Harness:
    spec: Any = MergerPart()
    found = layout(found_schema(DETECTED), "closed_at")
    return Harness(MergerOperator, spec, [found], layout(DETECTED, "closed_at", [ORDER]), **options)


def found(closed_at: int, number: int, who: str | None) -> dict[str, Any]:
    return {"closed_at": closed_at, "$closer": closed_at, "$number": number, "$rank": 0, "who": who}


def test_the_merger_goes_on_counting_where_it_was_taken_out() -> None:
    first = merger()
    first.feed([found(5, 1, "b"), found(3, 2, "c"), found(3, 0, "a"), found(9, 3, "d")])
    first.watermark(6)
    assert [(row["sequence"], row["who"]) for row in first.rows()] == [(0, "a"), (1, "c"), (2, "b")]
    tables = first.operator.export_state()
    second = merger()
    second.operator.import_state(tables, 6)
    second.feed([found(7, 4, None)])
    second.end()
    assert [(row["sequence"], row[ORDER], row["who"]) for row in second.rows()] == [(3, 3, None), (4, 4, "d")]
    second.operator.reset()
    assert second.operator.export_state() == {}
    second.operator.import_state(tables, 6)
    with pytest.raises(PenstockError, match="state was given twice"):
        second.operator.import_state(tables, 6)


def test_late_events_come_out_of_their_own_output() -> None:
    rows = make_rows([(1, 0, n % 3, 0, n) for n in range(20)])
    rows.append({**rows[0], "value": 77})  # far behind
    app = ps.App("late")
    columns = {name: [row[name] for row in rows] for name in SCHEMA.names}
    events = app.source("events", ps.sources.Columns(columns, SCHEMA), event_time="ts")
    detected = events.detect(lambda: ps.detection.TupleWindows(5, 2), Nothing, {"a": (0, "value")}, name="d")
    late = ps.sinks.Memory()
    app.sink("late", detected.late(), late)  # nobody reads the matches
    summary = ps.Node(workers=1).run(app.graph())
    assert [row["value"] for row in late.rows()] == [77]
    assert summary.metrics["d.splitter"].late == 1


class Nothing:
    def detect(self, columns: Any, starts: Any, stops: Any) -> Matches:
        return Matches(np.zeros(0, np.int64), np.zeros((0, 1), np.int64))


@pytest.mark.parametrize(
    ("of", "positions", "said"),
    [
        ([0], [[0]], r"gave places of shape \(1, 1\) for 1 matches.*has 2 columns"),
        ([9999], [[0, 1]], "gave a match of selection 9999; there are"),
        ([0], [[0, 9999]], r"gave places \[0, 9999\]; its selection is the places 0 to 4"),
    ],
)
def test_a_detector_that_tells_of_what_it_has_not_seen_is_told_so(
    of: list[int], positions: list[list[int]], said: str
) -> None:
    class Wrong:
        def detect(self, columns: Any, starts: Any, stops: Any) -> Matches:
            return Matches(np.array(of), np.array(positions))

    app = ps.App("wrong")
    rows = make_rows([(1, 0, 0, 0, n) for n in range(20)])
    source = ps.sources.Columns({name: [row[name] for row in rows] for name in SCHEMA.names}, SCHEMA)
    events = app.source("events", source, event_time="ts", lateness="3us")
    app.sink(
        "out",
        events.detect(lambda: ps.detection.TupleWindows(5, 2), Wrong, OUTPUT, name="w"),
        ps.sinks.Memory(),
    )
    with pytest.raises(RunError, match=f"step 'w': .*Wrong.detect {said}"):
        ps.Node(workers=1).run(app.graph())


def test_predicates_of_rows_keep_what_comes_back_as_it_was_and_refuse_the_rest() -> None:
    def starts(event: dict[str, Any], state: dict[str, Any]) -> bool:
        state["kept"] = event["value"]
        return True

    for value, fits in (
        (None, True),
        ("text", True),
        ([1, {"a": 2.5}], True),
        ((1, 2), False),
        ({1: 2}, False),
    ):
        predicates = RowPredicates(starts, lambda selection, event, state: False)
        column = np.empty(1, object)
        column[0] = value
        predicates.cut(EventBatch(0, np.array([3]), {"value": column}))
        if fits:
            again = RowPredicates(starts, lambda selection, event, state: False)
            again.restore(predicates.export())
            assert again._open == predicates._open
            assert again._state == {"kept": value}
        else:
            with pytest.raises(PenstockError, match=r"cannot be kept.*dicts with texts as keys"):
                predicates.export()


EVENTS = layout({"ts": "timestamp", "kind": "int64"}, "ts", [ORDER])


def splitter(degree: ps.Degree) -> Harness:
    def windows() -> ps.detection.TupleWindows:
        return ps.detection.TupleWindows(6, 1)

    spec: Any = ShippedSplitterPart(DetectSpec(windows, Nothing, (), degree, "round_robin"))
    output = layout(shipped_schema(EVENTS.visible), AT)
    return Harness(ShippingSplitter, spec, [EVENTS], output)


def selections(harness: Harness) -> list[tuple[int, ...]]:
    """(number, start, stop, position of the closer) of what was sent, whoever got it."""
    names = ("$number", "$start", "$stop", "$position")
    found = [tuple(row[name] for name in names) for row in harness.rows() if row["$number"] >= 0]
    return sorted(found)


@pytest.mark.parametrize(
    ("before", "after", "observed"),
    [
        (ps.Degree(5), ps.Degree(2), 2),
        (ps.Degree(1), ps.Degree(4), 4),
        (ps.Degree(4), ps.Degree(1, 4, ((3, 3), (100, 2))), 3),
        (ps.Degree(2, 4, ((5, 4),)), ps.Degree(2, 4, ((5, 4),)), 4),
    ],
)
def test_a_checkpoint_goes_on_with_the_degree_that_the_app_has_by_then(
    before: ps.Degree, after: ps.Degree, observed: int
) -> None:
    events = [{"ts": n, "kind": n, ORDER: n} for n in range(60)]
    whole, first, second = splitter(ps.Degree(1)), splitter(before), splitter(after)
    whole.feed(events)
    whole.end()
    first.feed(events[:30])
    first.watermark(25)
    second.operator.import_state(first.operator.export_state(), 25)
    second.feed(events[30:])
    second.watermark(50)
    told = second.operator.degree
    assert told is not None
    assert (told.requested, told.observed, told.most) == (observed, observed, after.most)
    second.end()
    assert sorted(selections(first) + selections(second)) == selections(whole)


def test_a_control_goes_on_where_it_was_taken_out() -> None:
    profile = ps.detection.measure_profile("d", [50.0, 400.0], lambda rate: np.full(20, 0.0001 * rate))
    between = np.random.default_rng(3).exponential(np.linspace(0.02, 0.004, 1500))
    times = np.cumsum(between * 1e6).astype(np.int64)
    batches = [EventBatch(n, times[n : n + 70]) for n in range(0, 1500, 70)]

    def control() -> ps.detection.DegreeControl:
        planner = ps.detection.QueueingPlanner(profile)
        return ps.detection.DegreeControl(planner, ps.detection.Slicing(slength_s=3.0, sfreq_s=1.0))

    whole, part = control(), control()
    degrees = []
    for batch in batches:
        wanted, state = whole.observe(batch), part.export()
        part = control()
        part.restore(state)
        assert part.observe(batch) == wanted
        degrees.append(wanted)
    assert len({degree for degree in degrees if degree is not None}) > 2
