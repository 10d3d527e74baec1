"""Blocks and chunks: fixed-capacity columns in one contiguous, aligned, touched allocation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from penstock.compiled.fixed import fixed
from penstock.memory.layout import Columns, Layout

_PAGE = 4096
_LINE = 64  # bytes of a cache line: no two columns share one, so writers and readers never contend for it


class Block:
    """Columns of at most ``capacity`` events, filled by one writer and read in order by every edge.

    Invariants: ``written`` only grows until the chunk is recycled, and events below it never change;
    ``next`` is set once, by the writer, after its last change of ``written``.
    """

    __slots__ = ("capacity", "chunk", "columns", "is_last", "next", "written")

    def __init__(self, columns: Columns, capacity: int, chunk: Chunk, is_last: bool) -> None:
        self.columns = columns
        self.capacity = capacity
        self.chunk = chunk
        self.is_last = is_last
        self.written = 0
        self.next: Block | None = None


class Chunk:
    """Several blocks in one allocation: the unit that is allocated ahead of need, capped and recycled."""

    __slots__ = ("_lock", "_memory", "blocks", "bytes", "events", "unread")

    def __init__(self, shape: ChunkShape, *, touch: bool = True) -> None:
        layout, events = shape.layout, shape.block_events
        memory = np.empty(shape.bytes + _LINE, np.uint8)
        if touch:
            _touch(memory)  # here, by the allocator, so that no worker takes the page faults
        offset = -memory.ctypes.data % _LINE
        self._memory = memory
        self.bytes = shape.bytes
        self.events = events  # per block
        self._lock = Lock()
        self.unread = 0  # edges that have not yet read it to its end
        self.blocks: list[Block] = []
        for index in range(shape.blocks):
            columns = []
            for dtype in layout.dtypes:
                size = events * dtype.itemsize
                columns.append(memory[offset : offset + size].view(dtype))
                offset += _aligned(size)
            self.blocks.append(Block(tuple(columns), events, self, index == shape.blocks - 1))

    def reset(self, readers: int) -> None:
        """Makes it empty again, for a new life with that many readers."""
        for block in self.blocks:
            block.written = 0
            block.next = None
        self.unread = readers

    def release(self) -> None:
        """Lets go of its blocks, which hold on to it: it is not used again, and whoever still has one of its
        columns keeps the memory."""
        self.blocks.clear()

    def finished_by_reader(self) -> bool:
        """Notes that one edge has read it to its end; True for the last one, who must recycle it."""
        with self._lock:
            self.unread -= 1
            return self.unread == 0


@dataclass(frozen=True)
class ChunkShape:
    """The layout and sizes that all chunks of one output share."""

    layout: Layout
    block_events: int
    blocks: int
    least_events: int = 1  # what one input event can become must fit into a block

    @property
    def bytes(self) -> int:
        per_block = sum(_aligned(self.block_events * dtype.itemsize) for dtype in self.layout.dtypes)
        return per_block * self.blocks

    def with_events(self, block_events: int) -> ChunkShape:
        """The same with blocks of another capacity."""
        return replace(self, block_events=block_events)


@fixed("void(uint8[::1])")
def _touch(memory: NDArray[np.uint8]) -> None:
    # Compiled, because it must not hold the interpreter lock for the milliseconds that page faults take.
    for place in range(0, memory.size, _PAGE):
        memory[place] = 0


def _aligned(size: int) -> int:
    return (size + _LINE - 1) // _LINE * _LINE
