"""SenML in and out, the range and Bloom filters, and the join, on lines written by hand."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from lab.workloads.riot import senml
from lab.workloads.riot.bloom import KnownSensors, known_only, unknown_blanked
from lab.workloads.riot.cleaning import annotated, joined, range_filtered
from lab.workloads.riot.data import FIELDS
from lab.workloads.riot.prediction import classified, predicted
from lab.workloads.riot.settings import OBSERVATIONS, UNITS
from penstock.query.stream.stream import Stream

Row = dict[str, Any]


def line(sensor: str, *readings: float, ms: int = 5) -> str:
    numbers = dict(zip(("longitude", "latitude", *OBSERVATIONS), (6.25, -46.5, *readings), strict=True))
    units = {"longitude": "lon", "latitude": "lat", **UNITS}
    entries: list[Row] = [{"u": "string", "n": "source", "sv": sensor}]
    entries += [{"v": f"{value:g}", "u": units[name], "n": name} for name, value in numbers.items()]
    return f"{ms},{json.dumps({'e': entries, 'bt': ms}, separators=(',', ':'))}"


def results(build: Callable[[Stream], Stream], *lines: str) -> list[Row]:
    """What the lines become, as the messages 0, 1, 2 …, a millisecond apart."""
    rows = [{"ts": 1_000 * number, "message": number, "line": text} for number, text in enumerate(lines)]
    app, sink = ps.App("riot"), ps.sinks.Memory()
    source = app.source("lines", ps.sources.Rows(rows, ps.Schema.of(dict(FIELDS))), event_time="ts")
    app.sink("out", build(source), sink)
    app.run(on=ps.Node(workers=1))
    return sink.rows()


def test_a_line_becomes_one_event_with_a_column_per_observation() -> None:
    assert results(senml.parsed, line("s", 8, 53.7, 0, 411.02, 140, ms=77)) == [
        {
            "message": 0,
            "taken_ms": 77,
            "sensor": "s",
            "longitude": 6.25,
            "latitude": -46.5,
            "temperature": 8.0,
            "humidity": 53.7,
            "light": 0.0,
            "dust": 411.02,
            "airquality_raw": 140.0,
        }
    ]


def test_a_line_becomes_five_observations() -> None:
    made = results(senml.projected, line("s", 1, 2, 3, 4, 5), line("t", 6, 7, 8, 9, 10))
    assert made[3] == {"message": 0, "sensor": "s", "observation": "dust", "value": 4.0}
    assert [row["value"] for row in made] == [float(value) for value in range(1, 11)]
    assert [row["observation"] for row in made] == [*OBSERVATIONS, *OBSERVATIONS]
    assert [row["sensor"] for row in made] == ["s"] * 5 + ["t"] * 5


def test_a_line_becomes_its_source_and_five_observations() -> None:
    made = results(senml.fields, line("s", 1, 2, 3, 4, 5, ms=9))
    assert [(row["observation"], row["source"], row["value"]) for row in made] == [
        ("source", "s", None),
        ("temperature", None, 1.0),
        ("humidity", None, 2.0),
        ("light", None, 3.0),
        ("dust", None, 4.0),
        ("airquality_raw", None, 5.0),
    ]
    assert {
        (row["message"], row["taken_ms"], row["sensor"], row["longitude"], row["latitude"]) for row in made
    } == {(0, 9, "s", 6.25, -46.5)}


FINE = line("s", 1, 2, 3, 4, 5)
BROKEN = {
    "a record without 'humidity'": FINE.replace("humidity", "hum"),
    "a record without 'e'": '5,{"bt":5}',
    "no JSON: ": FINE[:-1],
    "no time before the record: 'soon'": FINE.replace("5,", "soon,", 1),
    "a time beyond 64 bits: ": f"{2**63},{FINE.partition(',')[2]}",
    "no number: could not convert string to float: 'warm'": FINE.replace('"v":"1"', '"v":"warm"'),
    "no SenML record: it has other parts": FINE.replace('"v":"1"', '"v":null'),
    "a number that is not finite": FINE.replace('"v":"1"', '"v":"nan"'),
    "the source is no text: 7": FINE.replace('"sv":"s"', '"sv":7'),
}


@pytest.mark.parametrize("parse", [senml.parsed, senml.projected, senml.fields])
@pytest.mark.parametrize("broken", BROKEN.values(), ids=range(len(BROKEN)))
def test_a_line_that_is_no_senml_is_left_out_and_those_around_it_are_not(
    parse: Callable[[Stream], Stream], broken: str
) -> None:
    after = line("t", 6, 7, 8, 9, 10)
    fine = {row["message"]: row for row in results(parse, FINE, FINE, after)}
    made = results(parse, FINE, broken, after)
    assert {row["message"]: row for row in made} == {0: fine[0], 2: fine[2]}
    assert [row["sensor"] for row in made] == ["s"] * (len(made) // 2) + ["t"] * (len(made) // 2)


def test_lines_without_any_senml_become_nothing() -> None:
    for parse in (senml.parsed, senml.projected, senml.fields):
        assert results(parse, *BROKEN.values()) == []


def test_lines_that_are_left_out_come_aside_with_the_reason() -> None:
    made = results(senml.unreadable, FINE, *BROKEN.values(), FINE)
    assert [row["message"] for row in made] == list(range(1, len(BROKEN) + 1))
    assert [row["record"] for row in made] == list(BROKEN.values())
    for row, reason in zip(made, BROKEN, strict=True):
        assert row["reason"].startswith(reason)


@pytest.mark.parametrize(
    ("observation", "low", "high"),
    [
        ("temperature", 0.7, 35.1),
        ("humidity", 20.3, 69.1),
        ("light", 0, 5153),
        ("dust", 83.36, 3322.67),
        ("airquality_raw", 12, 49),
    ],
)
def test_values_out_of_range_become_null_and_the_limits_do_not(
    observation: str, low: float, high: float
) -> None:
    readings = [low - 0.01, low, high, high + 0.01]
    fine = {"temperature": 20, "humidity": 50, "light": 1, "dust": 100, "airquality_raw": 20}
    lines = [line("s", *(fine | {observation: value}).values()) for value in readings]
    made = results(lambda source: range_filtered(senml.fields(source)), *lines)
    assert [row["value"] for row in made if row["observation"] == observation] == [None, low, high, None]
    others = [row["value"] for row in made if row["observation"] not in (observation, "source")]
    assert None not in others
    assert [row["source"] for row in made if row["observation"] == "source"] == ["s"] * 4


def test_the_bloom_filter_drops_observations_of_unknown_sensors() -> None:
    known = KnownSensors(["s"])
    lines = [line("s", 1, 2, 3, 4, 5), line("stranger", 1, 2, 3, 4, 5)]
    made = results(lambda source: known_only(senml.projected(source), known), *lines)
    assert [(row["message"], row["value"]) for row in made] == [(0, float(value)) for value in range(1, 6)]


def test_the_bloom_filter_of_etl_blanks_the_source_and_nothing_else() -> None:
    known = KnownSensors(["s"])
    lines = [line("s", 1, 2, 3, 4, 5), line("stranger", 1, 2, 3, 4, 5)]
    plain = results(senml.fields, *lines)
    made = results(lambda source: unknown_blanked(senml.fields(source), known), *lines)
    assert [row["source"] for row in made if row["observation"] == "source"] == ["s", None]
    assert [row | {"source": None} for row in made] == [row | {"source": None} for row in plain]


def test_the_bloom_filter_knows_all_it_was_given_and_few_others_in_any_process() -> None:
    known = KnownSensors(f"sensor {i}" for i in range(2_000))
    assert all(f"sensor {i}" in known for i in range(2_000))
    others = [f"other {i}" in known for i in range(20_000)]
    assert sum(others) < 60  # 0.1 % are expected
    again = pickle.loads(pickle.dumps(known))
    assert [f"other {i}" in again for i in range(20_000)] == others


def test_the_parts_of_a_message_are_joined_and_annotated() -> None:
    metadata = {"sensor": ["s"], "location": ["park"], "type": ["solar"]}

    def build(source: Stream) -> Stream:
        fields = unknown_blanked(range_filtered(senml.fields(source)), KnownSensors(["s"]))
        return annotated(joined(fields), metadata).drop("window_start", "window_end")

    made = results(build, line("s", 20, 99, 3, 400, 15, ms=8), line("stranger", 20, 30, 3, 400, 15))
    assert made == [
        {
            "message": 0,
            "taken_ms": 8,
            "longitude": 6.25,
            "latitude": -46.5,
            "source": "s",
            "temperature": 20.0,
            "humidity": None,
            "light": 3.0,
            "dust": 400.0,
            "airquality_raw": 15.0,
            "location": "park",
            "type": "solar",
        }
    ]


def test_annotated_messages_are_senml_again() -> None:
    metadata = {"sensor": ["s"], "location": ["park"], "type": ["solar"]}

    def build(source: Stream) -> Stream:
        return senml.encoded(annotated(joined(range_filtered(senml.fields(source))), metadata))

    (made,) = results(build, line("s", 20.5, 99, 3, 400, 15, ms=8))
    record = json.loads(made["payload"])
    assert record["bt"] == 8
    assert record["e"] == [
        {"n": "source", "u": "string", "sv": "s"},
        {"n": "longitude", "u": "lon", "v": "6.25"},
        {"n": "latitude", "u": "lat", "v": "-46.5"},
        {"n": "temperature", "u": "far", "v": "20.5"},
        {"n": "humidity", "u": "per", "v": None},
        {"n": "light", "u": "per", "v": "3"},
        {"n": "dust", "u": "per", "v": "400"},
        {"n": "airquality_raw", "u": "per", "v": "15"},
        {"n": "location", "u": "string", "sv": "park"},
        {"n": "type", "u": "string", "sv": "solar"},
    ]


def test_the_decision_tree_has_limits_at_22_and_29() -> None:
    airs = [0, 22, 22.5, 29, 29.5, 900]
    lines = [line("s", 1, 2, 3, 4, air) for air in airs]
    made = results(lambda source: classified(senml.parsed(source)), *lines)
    assert [row["value"] for row in made] == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
    assert made[0] == {"message": 0, "sensor": "s", "analysis": "DTC", "value": 0.0}


def test_the_linear_regression_weighs_temperature_humidity_and_dust() -> None:
    # −0.51068968 · 10 + 0.15503454 · 50 − 0.0043941074 · 1000 + 37.442739
    (made,) = results(lambda source: predicted(senml.parsed(source)), line("s", 10, 50, 77, 1000, 30))
    assert made["prediction"] == pytest.approx(-5.1068968 + 7.751727 - 4.3941074 + 37.442739)
    assert (made["airquality_raw"], made["average"]) == (30.0, None)
