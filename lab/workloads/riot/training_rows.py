"""Training data in a table on disk, read by ranges of rows, and the timer that asks for them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.workloads.riot.chance import uniform
from lab.workloads.riot.data import readings
from lab.workloads.riot.prediction import INTERCEPT, WEIGHTS
from lab.workloads.riot.settings import OBSERVATIONS, RiotSettings
from penstock.connectors.memory.generator import Generator
from penstock.connectors.pacing import Rate
from penstock.query.errors import RunError
from penstock.query.stream.stream import Stream

TIMER_FIELDS: tuple[tuple[str, str], ...] = (
    ("ts", "timestamp"),
    ("message", "int64"),
    ("first_row", "int64"),
    ("last_row", "int64"),
)
_STEP = 100  # rows between the starts of two ranges
_NOISE = 3.0  # of air quality, around what the regression of PRED says


def training_rows(settings: RiotSettings) -> NDArray[np.float64]:
    """All rows of training data, a column per observation. Air quality follows the other observations."""
    places = np.arange(settings.table_rows)
    rows = np.stack(
        [readings(name, uniform(settings.seed, f"training {name}", places)) for name in OBSERVATIONS], axis=1
    )
    expected = np.full(len(rows), INTERCEPT)
    for name, weight in WEIGHTS.items():
        expected += weight * rows[:, OBSERVATIONS.index(name)]
    noise = sum(uniform(settings.seed, f"noise {part}", places) for part in range(12)) - 6.0
    rows[:, -1] = np.round(expected + _NOISE * noise, 1)
    return rows


def write_training_table(path: str | Path, settings: RiotSettings) -> Path:
    """Writes the rows into a new SQLite table; returns its path."""
    path = Path(path)
    path.unlink(missing_ok=True)
    columns = ", ".join(f"{name} REAL NOT NULL" for name in OBSERVATIONS)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE training (row INTEGER PRIMARY KEY, {columns})")
        rows = enumerate(training_rows(settings).tolist())
        connection.executemany(
            f"INSERT INTO training VALUES (?{', ?' * len(OBSERVATIONS)})",
            ([row, *values] for row, values in rows),
        )
    return path


class RowsReader:
    """Reads ranges of rows as text, a line each; every instance has a connection of its own."""

    def __init__(self, path: str | Path) -> None:
        self._path = str(path)
        self._connection: sqlite3.Connection | None = None

    def __call__(self, columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        ranges = zip(columns["first_row"].tolist(), columns["last_row"].tolist(), strict=True)
        texts = np.array([self.read(first, last) for first, last in ranges], object)
        return {"message": columns["message"], "last_row": columns["last_row"], "rows": texts}

    def read(self, first: int, last: int) -> str:
        """The rows from ``first`` to ``last``, both included."""
        query = f"SELECT {', '.join(OBSERVATIONS)} FROM training WHERE row BETWEEN ? AND ? ORDER BY row"
        found = self._opened().execute(query, (first, last)).fetchall()
        if not found:
            raise ValueError(f"no training rows from {first} to {last} in '{self._path}'")
        return "\n".join([",".join(map(repr, row)) for row in found])

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                # One turn at a time, though on any thread.
                self._connection = sqlite3.connect(
                    f"file:{self._path}?mode=ro", uri=True, check_same_thread=False
                )
            except sqlite3.OperationalError as error:
                raise RunError(
                    f"cannot read training rows from '{self._path}': {error}; write_training_table makes them"
                ) from None
        return self._connection

    def __getstate__(self) -> dict[str, Any]:
        return {"_path": self._path, "_connection": None}


def rows_read(ranges: Stream, path: str | Path, *, name: str = "read") -> Stream:
    """Each range of row numbers with the rows of the table, as lines of text."""
    output = {"message": "int64", "last_row": "int64", "rows": "string"}
    return ranges.batch(RowsReader(path), output, name=name)


class Ranges:
    """The endless sequence of row ranges that a timer asks for: each 100 rows further, round and round."""

    def __init__(self, settings: RiotSettings) -> None:
        self._settings = settings

    def fill(self, offset: int, n: int, columns: dict[str, NDArray[Any]], start: int) -> None:
        """Writes the ranges [offset, offset + n) into ``columns`` from ``start`` on."""
        settings, numbers = self._settings, np.arange(offset, offset + n)
        stop = start + n
        starts = settings.table_rows - settings.range_rows + 1
        first = numbers * _STEP % starts if starts > _STEP else numbers % starts
        columns["ts"][start:stop] = (
            settings.base_ms * 1_000 + numbers * 1_000_000 // settings.events_per_second
        )
        columns["message"][start:stop] = numbers
        columns["first_row"][start:stop] = first
        columns["last_row"][start:stop] = first + settings.range_rows - 1


def timer(settings: RiotSettings, limit: int | None = None, rate: Rate | None = None) -> Generator:
    """Row ranges for TRAIN; ``rate`` is in trainings per second."""
    return Generator(Ranges(settings).fill, dict(TIMER_FIELDS), limit=limit, rate=rate)
