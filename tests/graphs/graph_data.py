"""Random rows for the sources of random graphs, made from a few drawn numbers.

A row is made from the seed and its place alone, so that fewer rows are a prefix of more rows and a failure
shrinks to few rows of plain data.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from penstock.connectors.memory.columns import Rows
from penstock.connectors.offsets import OffsetPositions
from penstock.connectors.reader import NodeSource, Positions, Reader, Resume
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.types import Schema
from tests.reference import Row

NAN, INF = float("nan"), float("inf")

CARS = Schema(
    ts="timestamp",
    id="int64",
    k="int32",
    g="string?",
    x="float64?",
    y="float64",
    n="int64?",
    w="float32?",
    f="bool?",
)
ADS = Schema(at="timestamp", id="int64", k="int32?", g="string", v="float64?", n="int64")


@dataclass(frozen=True)
class DataShape:
    """How a source's rows look; the rows follow from it and from nothing else."""

    schema: Schema
    rows: tuple[int, ...]  # per partition
    seed: int
    start_us: int
    lateness_us: int
    disorder: float  # share of events within the lateness behind
    late: float  # share of events further behind
    nulls: float
    odd_values: bool  # NaN, infinities, −0.0, the ends of the integers
    promises_order: bool = False

    def in_order(self) -> DataShape:
        """The same rows in order of event time, from a source that says so: none can be late."""
        return replace(self, disorder=0.0, late=0.0, promises_order=True)


def data_shapes(schema: Schema, start_us: int) -> st.SearchStrategy[DataShape]:
    """Sources of one to three partitions, from which up to 200 rows come."""
    lengths = st.integers(0, 60)
    return st.builds(
        DataShape,
        schema=st.just(schema),
        rows=st.lists(lengths, min_size=1, max_size=3).map(tuple),
        seed=st.integers(0, 2**16),
        start_us=st.just(start_us),
        lateness_us=st.sampled_from((0, 4, 25)),
        disorder=st.sampled_from((0.0, 0.4)),
        late=st.sampled_from((0.0, 0.1)),
        nulls=st.sampled_from((0.0, 0.25)),
        odd_values=st.booleans(),
    )


def make_rows(shape: DataShape) -> list[list[Row]]:
    """The rows of every partition."""
    return [_partition(shape, partition, count) for partition, count in enumerate(shape.rows)]


def _partition(shape: DataShape, partition: int, count: int) -> list[Row]:
    rows, now = [], shape.start_us
    time_name = shape.schema.names[0]
    for offset in range(count):
        rng = random.Random(f"{shape.seed}/{partition}/{offset}")
        now += rng.choice((0, 0, 1, 1, 2, 3, 3, 7, 7, 30 if rng.random() < 0.2 else 1))
        behind = rng.randint(0, shape.lateness_us) if rng.random() < shape.disorder else 0
        if rng.random() < shape.late:
            behind = shape.lateness_us + rng.randint(1, 40)
        row = {field.name: _value(shape, field.name, rng) for field in shape.schema}
        for field in shape.schema:
            if field.nullable and rng.random() < shape.nulls:
                row[field.name] = None
        rows.append({**row, time_name: now - behind, "id": partition * 1000 + offset})
    return rows


def _value(shape: DataShape, name: str, rng: random.Random) -> Any:
    odd = shape.odd_values and rng.random() < 0.15
    match name:
        case "k":
            return rng.randint(0, 3)
        case "g":
            return rng.choice(("a", "b", "Bä", "", "ab"))
        case "x" | "v":
            # eighths, so that sums are exact and no comparison behind them hangs on the last bit
            return rng.choice((NAN, -0.0, 1e12)) if odd else rng.choice((rng.randint(-64, 64) / 8, 1.5, 0.0))
        case "y":
            return rng.choice((NAN, INF, -INF)) if odd else rng.randint(-200, 200) / 4
        case "n":
            return rng.choice((2**63 - 1, -(2**63), 2**40)) if odd else rng.randint(-5, 5)
        case "w":
            return NAN if odd else float(np.float32(round(rng.uniform(-4, 4), 1)))
        case "f":
            return rng.random() < 0.5
    return 0


class Partitions(NodeSource):
    """Rows in memory, in partitions of any lengths."""

    def __init__(self, partitions: list[list[Row]], shape: DataShape) -> None:
        self._schema = shape.schema
        self._ordered = shape.promises_order
        self._partitions = [Rows(rows, shape.schema) for rows in partitions]

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def ordered(self) -> bool:
        return self._ordered

    @property
    def partitions(self) -> int:
        return len(self._partitions)

    def open(self, layout: Layout, strings: StringPool) -> list[Reader]:
        readers = []
        for number, rows in enumerate(self._partitions):
            (reader,) = rows.open(layout, strings)
            reader.partition = number
            readers.append(reader)
        return readers

    def positions(self, journal: str | None = None, start: Sequence[int] | None = None) -> Positions:
        totals = [total for rows in self._partitions for total in rows.positions().final or ()]
        return OffsetPositions(totals)

    def open_range(
        self,
        partition: int,
        resume: Resume,
        end: int,
        layout: Layout,
        strings: StringPool,
        hint: Any = None,
    ) -> Reader:
        reader = self._partitions[partition].open_range(0, resume, end, layout, strings, hint)
        reader.partition = partition
        return reader
