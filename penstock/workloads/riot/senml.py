"""SenML: lines of a time and a JSON record become columns, and columns become records again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from penstock.query.stream import Stream
from penstock.workloads.riot.settings import OBSERVATIONS, UNITS

Columns = dict[str, NDArray[Any]]

_META = {
    "message": "int64",
    "taken_ms": "int64",
    "sensor": "string",
    "longitude": "float64",
    "latitude": "float64",
}
_NUMBERS = ("longitude", "latitude", *OBSERVATIONS)
_OBSERVED = np.array(OBSERVATIONS, object)
_FIELDS = np.array(("source", *OBSERVATIONS), object)


def parsed(lines: Stream, *, name: str = "parse") -> Stream:
    """One event per message, with a column per observation (PRED)."""
    return lines.batch(_wide, {**_META, **dict.fromkeys(OBSERVATIONS, "float64")}, name=name)


def projected(lines: Stream, *, name: str = "parse") -> Stream:
    """Five events per message, one per observation (STATS)."""
    output = {"message": "int64", "sensor": "string", "observation": "string", "value": "float64"}
    return lines.batch(_observations, output, name=name)


def fields(lines: Stream, *, name: str = "parse") -> Stream:
    """Six events per message: its source, in ``source``, and five observations, in ``value`` (ETL)."""
    output = {**_META, "observation": "string", "source": "string?", "value": "float64?"}
    return lines.batch(_with_source, output, name=name)


def encoded(annotated: Stream, *, name: str = "to_senml") -> Stream:
    """Annotated messages as SenML, the way they came in: ``payload`` is the record."""
    return annotated.batch(_records, {"message": "int64", "payload": "string"}, name=name)


def _wide(columns: Columns) -> Columns:
    taken_ms, sensors, numbers = _read(columns["line"])
    values = {name: numbers[:, place] for place, name in enumerate(_NUMBERS)}
    return {"message": columns["message"], "taken_ms": taken_ms, "sensor": sensors, **values}


def _observations(columns: Columns) -> Columns:
    _, sensors, numbers = _read(columns["line"])
    row = np.repeat(np.arange(len(sensors)), len(_OBSERVED))
    return {
        "_row": row,
        "message": columns["message"][row],
        "sensor": sensors[row],
        "observation": np.tile(_OBSERVED, len(sensors)),
        "value": numbers[:, 2:].ravel(),
    }


def _with_source(columns: Columns) -> Columns:
    taken_ms, sensors, numbers = _read(columns["line"])
    count = len(sensors)
    row = np.repeat(np.arange(count), len(_FIELDS))
    is_source = np.tile(_FIELDS == "source", count)
    values = np.ma.MaskedArray(np.zeros(len(row)), is_source)
    values[~is_source] = numbers[:, 2:].ravel()
    source = np.full(len(row), None, object)
    source[is_source] = sensors
    return {
        "_row": row,
        "message": columns["message"][row],
        "taken_ms": taken_ms[row],
        "sensor": sensors[row],
        "longitude": numbers[row, 0],
        "latitude": numbers[row, 1],
        "observation": np.tile(_FIELDS, count),
        "source": source,
        "value": values,
    }


def _read(lines: Iterable[str]) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float64]]:
    """The time, the sensor and the numbers (longitude, latitude, observations) of each line."""
    taken_ms: list[int] = []
    sensors: list[str] = []
    numbers: list[list[float]] = []
    for line in lines:
        moment, _, record = line.partition(",")
        try:
            entries = {entry["n"]: entry for entry in orjson.loads(record)["e"]}
            taken_ms.append(int(moment))
            sensors.append(entries["source"]["sv"])
            numbers.append([float(entries[name]["v"]) for name in _NUMBERS])
        except KeyError as missing:
            raise ValueError(f"a SenML record without {missing}") from None
    names = np.empty(len(sensors), object)
    names[:] = sensors
    return np.array(taken_ms, np.int64), names, np.array(numbers).reshape(len(sensors), len(_NUMBERS))


def _records(columns: Columns) -> Columns:
    texts = ("source", "location", "type")
    order = ("source", "longitude", "latitude", *OBSERVATIONS, "location", "type")
    units = {**UNITS, "longitude": "lon", "latitude": "lat", **dict.fromkeys(texts, "string")}
    heads = [(name, "sv" if name in texts else "v", units[name]) for name in order]
    rows = zip(*(columns[name].tolist() for name in order), strict=True)
    payloads = [
        orjson.dumps(
            {
                "e": [
                    {"n": name, "u": unit, key: value if key == "sv" else _number(value)}
                    for (name, key, unit), value in zip(heads, row, strict=True)
                ],
                "bt": taken_ms,
            }
        ).decode()
        for taken_ms, row in zip(columns["taken_ms"].tolist(), rows, strict=True)
    ]
    return {"message": columns["message"], "payload": np.array(payloads, object)}


def _number(value: float | None) -> str | None:
    """Numbers are text in these records, whole ones without a point."""
    return None if value is None else repr(value).removesuffix(".0")
