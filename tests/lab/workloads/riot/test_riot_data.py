"""The messages: the shape of the public sample, its shares of values out of range, reproducible by offset."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.workloads.riot.chance import uniform
from lab.workloads.riot.data import Messages, readings, source
from lab.workloads.riot.sensors import City
from lab.workloads.riot.settings import OBSERVATIONS, RANGES, RiotSettings
from tests.connectors.drain import rows_of

NAMES = ["source", "longitude", "latitude", *OBSERVATIONS]


def record(line: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line.split(",", 1)[1])
    return found


@given(st.integers(0, 10**9), st.integers(0, 40), st.integers(0, 40), st.integers(0, 2**32))
def test_lines_do_not_depend_on_how_reads_are_cut(offset: int, n: int, more: int, seed: int) -> None:
    messages = Messages(RiotSettings(seed=seed, sensors=50))
    whole = messages.lines(offset, n + more)
    assert messages.lines(offset, n) + messages.lines(offset + n, more) == whole


def test_a_line_is_a_time_and_a_senml_record_of_eight_fields() -> None:
    line = Messages(RiotSettings(events_per_second=4)).lines(10, 1)[0]
    assert line.startswith("1422748802500,{")
    found = record(line)
    assert found["bt"] == 1_422_748_802_500
    assert [entry["n"] for entry in found["e"]] == NAMES
    assert [entry["u"] for entry in found["e"]] == ["string", "lon", "lat", "far", "per", "per", "per", "per"]
    assert all(isinstance(entry["v"], str) for entry in found["e"][1:])


def test_lines_have_the_length_of_the_sample() -> None:
    lengths = [len(line) for line in Messages(RiotSettings()).lines(0, 2_000)]
    assert 378 <= np.mean(lengths) <= 384
    assert min(lengths) >= 365
    assert max(lengths) <= 397


@pytest.mark.parametrize(
    ("observation", "share"),
    [("temperature", 73), ("humidity", 158), ("light", 8), ("dust", 99), ("airquality_raw", 83)],
)
def test_as_many_values_are_out_of_range_as_in_the_sample(observation: str, share: int) -> None:
    low, high = RANGES[observation]
    values = readings(observation, (np.arange(100_000) + 0.5) / 100_000)
    out_of_range = np.count_nonzero((values < low) | (values > high))
    assert 1_000 * out_of_range / len(values) == pytest.approx(share, abs=3)


def test_values_are_rounded_as_sensors_do() -> None:
    assert readings("temperature", np.array([0.5, 0.97]))[0] == 24.0
    assert all(round(value, 1) == value for value in readings("humidity", np.linspace(0, 1, 100)))
    assert all(value == int(value) for value in readings("airquality_raw", np.linspace(0, 1, 100)))


def test_the_trace_starts_again_while_time_and_numbers_go_on() -> None:
    settings = RiotSettings(trace=5, events_per_second=2, base_ms=1_000)
    rows = rows_of(source(settings, limit=7))
    assert [row["message"] for row in rows] == list(range(7))
    assert [row["ts"] for row in rows] == [1_000_000 + 500_000 * message for message in range(7)]
    assert [row["line"] for row in rows[5:]] == [row["line"] for row in rows[:2]]
    assert len({row["line"] for row in rows}) == 5


def test_sensors_have_distinct_names_and_the_metadata_knows_a_part_of_them() -> None:
    city = City(RiotSettings())
    assert len(set(city.names)) == 2_162
    assert {len(name) for name in city.names} == {26, 27}
    metadata = city.metadata()
    assert 0.93 < len(metadata["sensor"]) / 2_162 < 0.97
    assert set(metadata["sensor"]) < set(city.names)
    assert len(metadata["location"]) == len(metadata["type"]) == len(metadata["sensor"])


def test_every_sensor_sends_about_as_often() -> None:
    lines = Messages(RiotSettings(sensors=4)).lines(0, 4_000)
    counts = np.unique([record(line)["e"][0]["sv"] for line in lines], return_counts=True)[1]
    assert counts.size == 4
    assert counts.min() > 900


def test_chance_is_uniform_and_differs_by_seed_and_purpose() -> None:
    places = np.arange(100_000)
    chances = uniform(3, "temperature", places)
    assert np.histogram(chances, 10, (0, 1))[0] == pytest.approx(10_000, rel=0.05)
    for other in (uniform(4, "temperature", places), uniform(3, "humidity", places)):
        assert abs(np.corrcoef(chances, other)[0, 1]) < 0.02


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sensors": 0}, "sensors must be positive: riot got 0"),
        ({"known_share": 1.5}, "known_share must be a share: riot got 1.5"),
        ({"range_rows": 50, "table_rows": 10}, "a training cannot have more rows than there are"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RiotSettings(**settings)
