"""What is wrong with a detector is said when it is written, and explain shows what there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from penstock.cep.selections.detection_graph import for_many_tasks, for_one_process
from penstock.query.errors import QueryError
from penstock.query.graph import Input, Port

SCHEMA = ps.Schema(ts="timestamp", kind="int32", name="string", value="float64?")
OUTPUT = {"first": (0, "value")}


class Rises:
    def detect(self, columns: Any, starts: Any, stops: Any) -> Any: ...


def windows() -> ps.detection.TupleWindows:
    return ps.detection.TupleWindows(5, 2)


def pairs(**options: Any) -> Callable[[], Any]:
    one_of = ps.detection.one_of
    return lambda: ps.detection.Sequence(one_of("kind", 0), one_of("kind", 1), **options)


def stream(app: ps.App | None = None) -> ps.Stream:
    source = ps.sources.Columns({name: [] for name in SCHEMA.names}, SCHEMA)
    return (app or ps.App("detect")).source("events", source, event_time="ts")


def test_a_match_has_a_number_a_time_and_the_columns_asked_for() -> None:
    found = stream().detect(pairs(by="kind"), Rises, {"from": (0, "value"), "who": (1, "name")}, degree=3)
    expected = "Schema(sequence: int64, closed_at: timestamp, from: float64?, who: string)"
    assert repr(found.schema) == expected
    assert found.time_column == "closed_at"


@pytest.mark.parametrize(
    ("selections", "detector", "output", "options", "said"),
    [
        (windows(), Rises, OUTPUT, {}, "selections must be a function .*every run"),
        (Rises, Rises, OUTPUT, {}, "what selections makes lacks 'cut': step 'detect' got a Rises"),
        (windows, Rises(), OUTPUT, {}, "detector must be a function"),
        (windows, windows, OUTPUT, {}, "lacks 'detect'"),
        (
            pairs(by="nme"),
            Rises,
            OUTPUT,
            {},
            "unknown column 'nme': step 'detect' in selections; there are ts",
        ),
        (pairs(by="name"), Rises, OUTPUT, {}, "whole numbers.*name: string.*would fit: ts, kind"),
        (pairs(by="value"), Rises, OUTPUT, {}, "never null"),
        (windows, Rises, {"a": (0, "vale")}, {}, "unknown column 'vale': step 'detect' in output column 'a'"),
        (windows, Rises, {"a": "value"}, {}, "number of an event in the match.*'a' got 'value'"),
        (windows, Rises, {"a": (-1, "value")}, {}, "number of an event"),
        (windows, Rises, ["value"], {}, "output must be a dict"),
        (windows, Rises, {"sequence": (0, "value")}, {}, "column 'sequence' is there twice"),
        (windows, Rises, OUTPUT, {"degree": 0}, "start is a whole number from 1"),
        (windows, Rises, OUTPUT, {"degree": 2.0}, "degree is a whole number or a Degree"),
        (windows, Rises, OUTPUT, {"degree": ps.Degree(most=2, control=Rises)}, "lacks 'observe'"),
        (windows, Rises, OUTPUT, {"assignment": "any"}, "choose one of round_robin, fewest_open"),
    ],
)
def test_what_is_wrong_is_said_when_it_is_written(
    selections: Any, detector: Any, output: Any, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(QueryError, match=said):
        stream().detect(selections, detector, output, **options)


def test_keys_are_refused() -> None:
    with pytest.raises(QueryError, match=r"not by key.*keyed by kind; leave key_by out"):
        stream().key_by("kind").detect(windows, Rises, OUTPUT)


def app_with_late() -> ps.App:
    app = ps.App("detect")
    found = stream(app).detect(windows, Rises, OUTPUT, degree=ps.Degree(2, 3), name="rises")
    app.sink("found", found, ps.sinks.Memory())
    app.sink("late", found.late(), ps.sinks.Memory())
    return app


def test_explain_tells_the_degree_and_how_it_is_parallel() -> None:
    told = app_with_late().explain()
    assert "rises: detect" in told
    assert "Rises in selections of" in told
    assert "parallel by selection, degree 2 of 3" in told


def test_a_detector_is_one_operator_for_each_place_in_one_process_and_three_steps_in_tasks() -> None:
    graph = app_with_late().graph()
    assert len(graph) == 4
    alone = for_one_process(graph)
    instances = [f"rises.instance{place}" for place in range(3)]
    assert [node.id for node in alone][1:-2] == ["rises.splitter", *instances, "rises"]
    tasks = for_many_tasks(graph)
    assert [node.id for node in tasks][1:-2] == ["rises.splitter", "rises.instances", "rises"]
    for expanded in (alone, tasks):
        assert expanded["late"].inputs == (Input("rises.splitter", Port.LATE),)
        assert expanded["found"].inputs == (Input("rises"),)


def test_the_degree_is_no_part_of_what_a_step_is_known_by() -> None:
    def ids(degree: int) -> list[str]:
        app = ps.App("detect")
        app.sink("found", stream(app).detect(windows, Rises, OUTPUT, degree=degree), ps.sinks.Memory())
        return [node.id for node in app.graph()]

    assert ids(1) == ids(4)
