from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from penstock.connectors.memory.generator import STRIPE, Stripes
from penstock.query.errors import QueryError, RunError
from penstock.query.types import Schema
from penstock.sources import Generator
from tests.connectors.drain import Drain, rows_of

SCHEMA = Schema(ts="timestamp", lane="string", speed="float64?")
LANES = ["left", "middle", "right"]


def fill(offset: int, n: int, columns: dict[str, NDArray[Any]], start: int) -> None:
    stop = start + n
    offsets = np.arange(offset, offset + n)
    columns["ts"][start:stop] = offsets * 10
    columns["lane"][start:stop] = offsets % 3
    columns["speed"][start:stop] = offsets / 2
    columns["speed?"][start:stop] = offsets % 4 == 1


def expected(count: int) -> list[dict[str, Any]]:
    return [
        {"ts": i * 10, "lane": LANES[i % 3], "speed": None if i % 4 == 1 else i / 2} for i in range(count)
    ]


@given(st.integers(0, 50), st.lists(st.integers(1, 20), min_size=1))
def test_events_depend_on_their_offset_only(limit: int, cuts: list[int]) -> None:
    assert rows_of(Generator(fill, SCHEMA, limit=limit, vocabulary={"lane": LANES}), cuts) == expected(limit)


def test_columns_that_nobody_reads_are_still_given_to_the_function() -> None:
    source = Generator(fill, SCHEMA, limit=10, vocabulary={"lane": LANES})
    rows = Drain(source, ["lane"]).to_end((3, 4))
    assert rows == [{"lane": row["lane"]} for row in expected(10)]


def test_a_layout_without_columns_still_counts_events() -> None:
    source = Generator(fill, SCHEMA, limit=10, vocabulary={"lane": LANES})
    drain = Drain(source, [])
    drain.to_end((4,))
    assert drain.reader.offset == 10


def test_nothing_is_read_before_it_is_due() -> None:
    drain = Drain(Generator(fill, SCHEMA, rate=[(1, 10), (1, 1000)], vocabulary={"lane": LANES}))
    reader = drain.reader
    assert drain.read(5) == 0
    assert reader.available(0) == 0
    assert reader.next_due_ns() == 100_000_000
    assert reader.available(550_000_000) == 5
    assert drain.read(3) == 3
    assert reader.created_ns() == 300_000_000
    assert drain.read(100) == 2
    assert reader.created_ns() == 500_000_000
    assert reader.available(1_010_000_000) == 15
    assert not reader.finished


def test_without_a_limit_it_never_ends() -> None:
    source = Generator(fill, SCHEMA, vocabulary={"lane": LANES})
    assert not source.bounded
    drain = Drain(source)
    assert drain.reader.available(0) > 10**9
    drain.read(100)
    assert not drain.reader.finished
    assert drain.rows == expected(100)


def test_a_string_column_needs_a_vocabulary() -> None:
    with pytest.raises(QueryError, match="string column 'lane' has no vocabulary"):
        Generator(fill, SCHEMA)


def test_an_index_outside_the_vocabulary_is_an_error_that_names_the_column() -> None:
    drain = Drain(Generator(fill, SCHEMA, vocabulary={"lane": LANES[:2]}))
    drain.reader.available(0)
    with pytest.raises(RunError, match="column 'lane' got 2, its vocabulary has 2"):
        drain.read(10)


@pytest.mark.parametrize("limit", [0, 1, STRIPE, STRIPE + 1, 3 * STRIPE - 5, 7 * STRIPE])
@pytest.mark.parametrize("partitions", [1, 2, 3])
def test_partitions_share_all_events_among_them(limit: int, partitions: int) -> None:
    parts = [Stripes(number, partitions) for number in range(partitions)]
    assert sum(part.count_below(limit) for part in parts) == limit
    looked_at = [
        (part, offset)
        for part in parts
        for offset in {0, 1, STRIPE - 1, STRIPE, part.count_below(limit) - 1}
        if 0 <= offset < part.count_below(limit)
    ]
    places = {part.place(offset)[0] for part, offset in looked_at}
    assert len(places) == len(looked_at)
    assert all(place < limit for place in places)


def test_a_generator_says_how_many_partitions_it_has_and_refuses_none() -> None:
    source = Generator(fill, SCHEMA, limit=3 * STRIPE, vocabulary={"lane": LANES}, partitions=2)
    assert source.partitions == 2
    with pytest.raises(QueryError, match="partitions must be positive"):
        Generator(fill, SCHEMA, vocabulary={"lane": LANES}, partitions=0)
