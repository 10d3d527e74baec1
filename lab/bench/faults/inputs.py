"""What the laboratory's app reads: small files of cars and of advertisements, the same in every format."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

CARS = {"ts": "timestamp", "id": "int64", "k": "int32", "g": "string", "x": "float64?"}
ADS = {"at": "timestamp", "k": "int32", "v": "float64"}
TICKS = {"at": "timestamp", "k": "int32", "n": "int64"}

#: The formats in which cars can be read.
FORMATS = ("csv", "jsonl", "parquet")

FILES = 24
CARS_PER_FILE, ADS_PER_FILE, TICK_COUNT = 50, 15, 1_000
_BEGIN_US = 1_000_000
_ARROW: dict[str, pa.DataType] = {
    "timestamp": pa.timestamp("us", "UTC"),
    "int64": pa.int64(),
    "int32": pa.int32(),
    "string": pa.string(),
    "float64": pa.float64(),
    "float64?": pa.float64(),
}

Row = dict[str, Any]


def write_inputs(folder: Path, cars_as: str) -> None:
    """Writes ``cars`` and ``ads`` below the folder; their content is always the same."""
    cars, ads = rows()
    for number in range(FILES):
        some = cars[number * CARS_PER_FILE : (number + 1) * CARS_PER_FILE]
        _write(folder / "cars" / f"{number:03}.{cars_as}", some, CARS)
        some = ads[number * ADS_PER_FILE : (number + 1) * ADS_PER_FILE]
        _write(folder / "ads" / f"{number:03}.parquet", some, ADS)


def rows() -> tuple[list[Row], list[Row]]:
    """Cars, of which some come out of order and some late; ads over the same time."""
    choose = random.Random(7)
    cars: list[Row] = []
    now = _BEGIN_US
    for number in range(FILES * CARS_PER_FILE):
        now += choose.choice((0, 1, 1, 2, 5))
        behind = choose.choice((0, 0, 0, 3, 9, 60 if choose.random() < 0.1 else 0))
        x = None if choose.random() < 0.1 else choose.randint(-40, 40) / 8
        keys = {"k": choose.randrange(40), "g": choose.choice(("a", "b", "Bä", "c"))}
        cars.append({"ts": now - behind, "id": number, **keys, "x": x})
    count = FILES * ADS_PER_FILE
    span = now - _BEGIN_US
    ads = [
        {"at": _BEGIN_US + number * span // count, "k": choose.randrange(40), "v": number / 4}
        for number in range(count)
    ]
    return cars, ads


def ticks(offset: int, count: int, columns: dict[str, NDArray[Any]], start: int) -> None:
    """Fills events of the generator; they depend on their offsets alone."""
    numbers = np.arange(offset, offset + count)
    columns["at"][start : start + count] = _BEGIN_US + numbers * 3
    columns["k"][start : start + count] = numbers * 7 % 8
    columns["n"][start : start + count] = numbers


def _write(path: Path, rows: list[Row], schema: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    match path.suffix:
        case ".csv":
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, list(schema), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
        case ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        case _:
            columns = {
                name: pa.array([row[name] for row in rows], _ARROW[kind]) for name, kind in schema.items()
            }
            pq.write_table(pa.table(columns), path)
