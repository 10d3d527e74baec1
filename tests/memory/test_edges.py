"""Outlets and edges: one writer, many readers, marks in their place, chunks recycled, backpressure at the
cap."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.memory.blocks import ChunkShape
from penstock.memory.coordinator import MemoryCoordinator
from penstock.memory.edges import Edge, Outlet, Watermark
from penstock.memory.layout import Layout
from penstock.query.types import DataType, Field

LAYOUT = Layout([Field("x", DataType.INT64)])


def outlet(*, block_events: int, blocks: int, limit: int, readers: int = 1) -> tuple[Outlet, list[Edge]]:
    memory = MemoryCoordinator(background=False)
    pool = memory.pool(ChunkShape(LAYOUT, block_events, blocks), limit=limit, readers=readers)
    made = Outlet(LAYOUT, pool)
    return made, [made.connect() for _ in range(readers)]


def write(out: Outlet, values: list[int]) -> int:
    """Writes as many of the values as there is room for."""
    done = 0
    while done < len(values):
        count = min(out.reserve(), len(values) - done)
        if count == 0:
            break
        out.columns[0][out.position : out.position + count] = values[done : done + count]
        out.commit(count)
        done += count
    return done


def read(edge: Edge, most: int = 1_000_000) -> list[int]:
    found: list[int] = []
    while len(found) < most and (readable := edge.readable()) is not None:
        columns, start, stop = readable
        stop = min(stop, start + most - len(found))
        found += columns[0][start:stop].tolist()
        edge.advance(stop - start)
    return found


def test_what_is_written_is_read_in_order_by_every_reader() -> None:
    out, (first, second) = outlet(block_events=4, blocks=2, limit=4, readers=2)
    write(out, list(range(11)))
    assert read(first) == list(range(11))
    assert read(second, 3) == [0, 1, 2]
    assert read(second) == list(range(3, 11))
    assert first.pending == second.pending == 0


def test_a_full_outlet_pushes_back_until_the_slowest_reader_has_left_a_chunk() -> None:
    out, (fast, slow) = outlet(block_events=2, blocks=2, limit=2, readers=2)
    assert write(out, list(range(100))) == 8  # two chunks of two blocks of two
    assert out.reserve() == 0
    assert not out.has_room
    read(fast)
    assert out.reserve() == 0  # the slow one still needs the first chunk
    assert read(slow, 4) == [0, 1, 2, 3]
    assert out.has_room
    assert write(out, [8, 9, 10, 11, 12]) == 4
    assert read(fast) == [8, 9, 10, 11]
    assert read(slow) == [4, 5, 6, 7, 8, 9, 10, 11]


def test_chunks_are_recycled_not_allocated_anew() -> None:
    out, (edge,) = outlet(block_events=2, blocks=2, limit=3)
    for start in range(0, 400, 4):
        assert write(out, list(range(start, start + 4))) == 4
        assert read(edge) == list(range(start, start + 4))
    assert out.pool.allocated <= 3


def test_a_reader_stops_at_a_mark_and_goes_on_behind_it() -> None:
    out, (edge,) = outlet(block_events=8, blocks=1, limit=2)
    write(out, [1, 2, 3])
    out.mark(Watermark(10))
    write(out, [4, 5])
    assert edge.next_mark() is None
    assert read(edge) == [1, 2, 3]
    assert edge.next_mark() == Watermark(10)
    edge.marks.popleft()
    assert read(edge) == [4, 5]


def test_a_block_too_small_for_what_is_wanted_is_closed_early() -> None:
    out, (edge,) = outlet(block_events=4, blocks=2, limit=2)
    write(out, [1, 2, 3])
    assert out.reserve(2) == 4
    write(out, [4])
    assert read(edge) == [1, 2, 3, 4]


def test_columns_of_blocks_start_on_cache_lines_and_do_not_overlap() -> None:
    layout = Layout(
        [Field("a", DataType.INT32, True), Field("b", DataType.FLOAT64), Field("c", DataType.BOOL)]
    )
    memory = MemoryCoordinator(background=False)
    pool = memory.pool(ChunkShape(layout, 5, 3), limit=2, readers=1)
    chunk = pool.take()
    assert chunk is not None
    arrays = [column for block in chunk.blocks for column in block.columns]
    assert [a.dtype for a in chunk.blocks[0].columns] == [np.int32, np.bool_, np.float64, np.bool_]
    spans = sorted((a.ctypes.data, a.ctypes.data + a.nbytes) for a in arrays)
    assert all(start % 64 == 0 for start, _ in spans)
    assert all(end <= following for (_, end), (following, _) in pairwise(spans))


@given(st.data())
def test_any_interleaving_of_writes_and_reads_keeps_every_event_once_and_in_order(
    data: st.DataObject,
) -> None:
    readers = data.draw(st.integers(1, 3))
    out, edges = outlet(
        block_events=data.draw(st.integers(1, 5)),
        blocks=data.draw(st.integers(1, 3)),
        limit=data.draw(st.integers(2, 3)),
        readers=readers,
    )
    seen: list[list[int]] = [[] for _ in edges]
    written = 0
    for _ in range(data.draw(st.integers(0, 40))):
        who = data.draw(st.integers(-1, readers - 1))
        count = data.draw(st.integers(1, 9))
        if who < 0:
            written += write(out, list(range(written, written + count)))
        else:
            seen[who] += read(edges[who], count)
    for edge, values in zip(edges, seen, strict=True):
        values += read(edge)
        assert values == list(range(written))


def test_memory_never_exceeds_its_cap() -> None:
    memory = MemoryCoordinator(background=False)
    shape = ChunkShape(LAYOUT, 8, 2)
    pool = memory.pool(shape, limit=3, readers=1)
    taken = [pool.take() for _ in range(10)]
    assert sum(chunk is not None for chunk in taken) == 3
    assert memory.allocated_bytes == 3 * shape.bytes == memory.cap_bytes


def test_the_next_chunk_is_ordered_when_the_last_free_one_is_taken() -> None:
    memory = MemoryCoordinator(background=False)
    pool = memory.pool(ChunkShape(LAYOUT, 8, 2), limit=4, readers=1)
    assert pool.allocated == 2
    pool.take()
    assert pool.allocated == 2
    pool.take()
    assert pool.allocated == 3  # made ahead of need


def test_a_background_allocator_delivers_and_ends_when_closed() -> None:
    memory = MemoryCoordinator()
    pool = memory.pool(ChunkShape(LAYOUT, 8, 2), limit=5, readers=1)
    taken = 0
    for _ in range(2):
        taken += pool.take() is not None
    memory.close()  # waits for what was ordered
    while pool.take() is not None:
        taken += 1
        memory.close()
    assert taken == 5


@pytest.mark.parametrize("capacity", [1, 7])
def test_layout_places_masks_behind_their_data(capacity: int) -> None:
    layout = Layout([Field("a", DataType.INT64, True), Field("b", DataType.STRING)], "a")
    assert (layout.data("a"), layout.nulls("a"), layout.data("b"), layout.nulls("b")) == (0, 1, 2, None)
    assert [len(column) for column in layout.allocate(capacity)] == [capacity] * 3
    assert layout.row_bytes == 8 + 1 + 4


def test_blocks_start_small_and_grow_while_the_writer_uses_memory_up() -> None:
    memory = MemoryCoordinator(background=False)
    pool = memory.pool(ChunkShape(LAYOUT, 65_536, 1), limit=3, readers=1)
    out = Outlet(LAYOUT, pool)
    edge = out.connect()
    sizes, written = [], 0
    for _ in range(200):
        written += write(out, list(range(written, written + 5_000)))
        sizes.append(out.columns[0].size)
        start = edge.consumed
        assert read(edge, 4_000) == list(range(start, edge.consumed))
    assert sizes[0] == 1_024
    assert sizes[-1] == 65_536
    assert pool.allocated <= 3
    assert memory.allocated_bytes <= memory.cap_bytes
    rest = edge.consumed
    assert read(edge) == list(range(rest, written))


def test_a_quiet_output_keeps_its_small_blocks() -> None:
    memory = MemoryCoordinator(background=False)
    pool = memory.pool(ChunkShape(LAYOUT, 65_536, 1), limit=4, readers=1)
    out = Outlet(LAYOUT, pool)
    edge = out.connect()
    for number in range(10_000):
        write(out, [number])
        assert read(edge) == [number]
    assert pool.wanted_events == 1_024
