"""SenML: lines of a time and a JSON record become columns, and columns become records again.

A line that cannot be read is left out, as a source leaves out bad records; ``unreadable`` says which and why.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from lab.workloads.riot.settings import OBSERVATIONS, UNITS
from penstock.query.stream.stream import Stream

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
_LATEST_MS = 2**63 - 1


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


def unreadable(lines: Stream, *, name: str = "unreadable") -> Stream:
    """The lines that the others leave out, each with the reason. It parses them once more."""
    return lines.batch(_reasons, {"message": "int64", "record": "string", "reason": "string"}, name=name)


def encoded(annotated: Stream, *, name: str = "to_senml") -> Stream:
    """Annotated messages as SenML, the way they came in: ``payload`` is the record."""
    return annotated.batch(_records, {"message": "int64", "payload": "string"}, name=name)


class _Parsed(NamedTuple):
    """The lines that could be read."""

    rows: NDArray[np.int64]  # which of those given
    taken_ms: NDArray[np.int64]
    sensors: NDArray[Any]
    numbers: NDArray[np.float64]  # longitude, latitude, observations


def _wide(columns: Columns) -> Columns:
    read = _read(columns["line"])
    values = {name: read.numbers[:, place] for place, name in enumerate(_NUMBERS)}
    return {
        "_row": read.rows,
        "message": columns["message"][read.rows],
        "taken_ms": read.taken_ms,
        "sensor": read.sensors,
        **values,
    }


def _observations(columns: Columns) -> Columns:
    read = _read(columns["line"])
    part = np.repeat(np.arange(len(read.rows)), len(_OBSERVED))
    row = read.rows[part]
    return {
        "_row": row,
        "message": columns["message"][row],
        "sensor": read.sensors[part],
        "observation": np.tile(_OBSERVED, len(read.rows)),
        "value": read.numbers[:, 2:].ravel(),
    }


def _with_source(columns: Columns) -> Columns:
    read = _read(columns["line"])
    count = len(read.rows)
    part = np.repeat(np.arange(count), len(_FIELDS))
    row = read.rows[part]
    is_source = np.tile(_FIELDS == "source", count)
    values = np.ma.MaskedArray(np.zeros(len(row)), is_source)
    values[~is_source] = read.numbers[:, 2:].ravel()
    source = np.full(len(row), None, object)
    source[is_source] = read.sensors
    return {
        "_row": row,
        "message": columns["message"][row],
        "taken_ms": read.taken_ms[part],
        "sensor": read.sensors[part],
        "longitude": read.numbers[part, 0],
        "latitude": read.numbers[part, 1],
        "observation": np.tile(_FIELDS, count),
        "source": source,
        "value": values,
    }


def _reasons(columns: Columns) -> Columns:
    places: list[int] = []
    reasons: list[str] = []
    for place, line in enumerate(columns["line"]):
        try:
            _record(line)
        except ValueError as reason:
            places.append(place)
            reasons.append(str(reason))
    rows = np.array(places, np.int64)
    return {
        "_row": rows,
        "message": columns["message"][rows],
        "record": columns["line"][rows],
        "reason": _texts(reasons),
    }


def _read(lines: Iterable[str]) -> _Parsed:
    rows: list[int] = []
    taken_ms: list[int] = []
    sensors: list[str] = []
    numbers: list[list[float]] = []
    for row, line in enumerate(lines):
        try:
            moment, sensor, values = _record(line)
        except ValueError:
            continue
        rows.append(row)
        taken_ms.append(moment)
        sensors.append(sensor)
        numbers.append(values)
    return _Parsed(
        np.array(rows, np.int64),
        np.array(taken_ms, np.int64),
        _texts(sensors),
        np.array(numbers, np.float64).reshape(len(rows), len(_NUMBERS)),
    )


def _record(line: str) -> tuple[int, str, list[float]]:
    """The time, the sensor and the numbers of a line; ``ValueError`` says why it has none."""
    moment, _, record = line.partition(",")
    try:
        taken_ms = int(moment)
    except ValueError:
        raise ValueError(f"no time before the record: {moment[:40]!r}") from None
    if not -_LATEST_MS <= taken_ms <= _LATEST_MS:
        raise ValueError(f"a time beyond 64 bits: {moment[:40]!r}")
    try:
        entries = {entry["n"]: entry for entry in orjson.loads(record)["e"]}
        sensor = entries["source"]["sv"]
        numbers = [float(entries[name]["v"]) for name in _NUMBERS]
    except orjson.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error}") from None
    except KeyError as missing:
        raise ValueError(f"a record without {missing}") from None
    except TypeError:  # a list where an object should be, or null where a number should be
        raise ValueError("no SenML record: it has other parts") from None
    except ValueError as error:
        raise ValueError(f"no number: {error}") from None
    if not isinstance(sensor, str):
        raise ValueError(f"the source is no text: {sensor!r}")
    if not math.isfinite(sum(numbers)):
        raise ValueError("a number that is not finite")
    return taken_ms, sensor, numbers


def _texts(texts: list[str]) -> NDArray[Any]:
    column = np.empty(len(texts), object)
    column[:] = texts
    return column


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
