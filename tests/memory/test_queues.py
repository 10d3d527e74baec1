"""Queues of fresh batches: seen when handed over, shared by readers, given up when read, never too many."""

from __future__ import annotations

import numpy as np

from penstock.memory.blocks import ChunkShape
from penstock.memory.coordinator import MemoryCoordinator
from penstock.memory.edges import Edge, Watermark
from penstock.memory.layout import Layout
from penstock.memory.queues import BatchPool, QueueOutlet
from penstock.query.types import DataType, Field

LAYOUT = Layout([Field("x", DataType.INT64)])


def outlet(size: int = 4, limit: int = 3, readers: int = 1) -> QueueOutlet:
    memory = MemoryCoordinator(background=False)
    made = QueueOutlet(LAYOUT, BatchPool(memory, ChunkShape(LAYOUT, size, 1), limit, readers))
    for _ in range(readers):
        made.connect()
    return made


def write(out: QueueOutlet, *values: int) -> int:
    """Writes as many as there is room for; returns how many."""
    done = 0
    while done < len(values) and (room := min(out.reserve(), len(values) - done)):
        out.columns[0][out.position : out.position + room] = values[done : done + room]
        out.commit(room)
        done += room
    return done


def read(edge: Edge) -> list[int]:
    found: list[int] = []
    while (readable := edge.readable()) is not None:
        columns, start, stop = readable
        found += columns[0][start:stop].tolist()
        edge.advance(stop - start)
    return found


def test_a_batch_is_seen_when_the_turn_hands_it_over() -> None:
    out = outlet()
    write(out, 1, 2)
    assert (read(out.edges[0]), out.written) == ([], 0)
    out.hand_over()
    assert (read(out.edges[0]), out.written) == ([1, 2], 2)


def test_a_full_batch_is_handed_over_when_the_next_begins() -> None:
    out = outlet(size=2)
    write(out, 1, 2, 3)
    assert read(out.edges[0]) == [1, 2]


def test_what_follows_a_hand_over_goes_into_a_fresh_batch() -> None:
    out = outlet(size=4)
    write(out, 1)
    first = out.columns[0]
    out.hand_over()
    write(out, 2)
    out.hand_over()
    assert not np.shares_memory(first, out.columns[0])
    assert read(out.edges[0]) == [1, 2]


def test_a_mark_stands_behind_all_that_was_written_before_it() -> None:
    out = outlet()
    write(out, 1, 2)
    out.mark(Watermark(7))
    write(out, 3)
    out.hand_over()
    edge = out.edges[0]
    assert read(edge) == [1, 2]
    assert edge.next_mark() == Watermark(7)
    edge.pass_mark()
    assert read(edge) == [3]


def test_at_the_limit_the_writer_waits_until_every_reader_has_left_a_batch() -> None:
    out, freed = outlet(size=1, limit=2, readers=2), []
    out.pool.on_free = lambda: freed.append(True)
    assert write(out, 1, 2, 3) == 2
    assert not out.has_room
    out.hand_over()
    assert read(out.edges[0]) == [1, 2]
    assert not out.has_room
    assert read(out.edges[1]) == [1, 2]
    assert (freed, out.has_room) == ([True], True)
    assert write(out, 3) == 1


def test_memory_is_counted_while_it_is_in_use() -> None:
    out = outlet(size=1, limit=4)
    memory = out.pool._coordinator
    write(out, 1, 2, 3)
    out.hand_over()
    assert memory.allocated_bytes == 3 * out.pool.shape.bytes
    read(out.edges[0])
    assert memory.allocated_bytes == out.pool.shape.bytes  # the last one stays until another follows
