"""Outlets and edges: one writer's stream of blocks, and each reader's place in it.

Every edge of an outlet reads the same blocks with a cursor of its own; a chunk is recycled when the last
edge has left it. So an event that 150 queries read is written once.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from penstock.memory.blocks import Block
from penstock.memory.coordinator import ChunkPool
from penstock.memory.layout import Columns, Layout

#: No event can be later: the watermark of a stream that has ended.
END_OF_TIME = (1 << 63) - 1
START_OF_TIME = -(1 << 63)


@dataclass(frozen=True, slots=True)
class Watermark:
    """In-band: every event behind it has an event time of at least ``time_us``."""

    time_us: int


@dataclass(frozen=True, slots=True)
class LatencyMarker:
    """In-band: a made-up event that passes every operator at once and is timed at the sinks."""

    created_ns: int  # when the event would have come into being
    sent_ns: int  # when the last operator passed it on


@dataclass(frozen=True, slots=True)
class End:
    """In-band: nothing follows. With ``complete`` the input is whole and all windows close; else the run
    was stopped."""

    complete: bool


@dataclass(frozen=True, slots=True)
class Control:
    """In-band: something that the reading operator is told between two events."""

    content: Any


@dataclass(frozen=True, slots=True)
class Epoch:
    """In-band: what stands before it belongs to this epoch, what follows to the next."""

    number: int
    watermark_us: int  # the writer's, so that all who read it are cut at the same time


Mark = Watermark | LatencyMarker | End | Control | Epoch


class Edge:
    """One reader's place in an outlet's stream. Only the reading operator's turn touches the cursor."""

    __slots__ = ("_block", "_position", "consumed", "marks", "outlet", "passed", "watermark")

    def __init__(self, outlet: Outlet) -> None:
        self.outlet = outlet
        self._block: Block | None = None
        self._position = 0
        self.consumed = 0  # events read so far
        self.passed = 0  # marks acted on so far
        self.marks: deque[tuple[int, Mark]] = deque()  # (events before it, mark), in order
        self.watermark = START_OF_TIME

    @property
    def layout(self) -> Layout:
        return self.outlet.layout

    @property
    def pending(self) -> int:
        """Events written and not yet read. May lag behind the writer, never ahead of it."""
        return self.outlet.written - self.consumed

    def readable(self) -> tuple[Columns, int, int] | None:
        """The columns with the next events and their range [start, stop), up to the next mark; None if
        there are none.

        The range never spans two blocks and never passes a mark.
        """
        while True:
            block = self._block
            if block is None:
                block = self.outlet.first
                if block is None:
                    return None
                self._block = block
            stop = block.written
            if stop == self._position:
                following = block.next
                if following is None:
                    return None
                if block.written == self._position:  # read after ``next``, so final
                    self._leave(block, following)
                    continue
                stop = block.written
            if self.marks:
                until_mark = self.marks[0][0] - self.consumed
                if until_mark <= 0:
                    return None
                stop = min(stop, self._position + until_mark)
            return block.columns, self._position, stop

    def advance(self, count: int) -> None:
        """Marks ``count`` more events as read."""
        self._position += count
        self.consumed += count
        block = self._block
        if block is not None and block.next is not None and self._position == block.written:
            self._leave(block, block.next)

    def next_mark(self) -> Mark | None:
        """The mark that stands right at the cursor, if any; ``pass_mark`` when it is handled."""
        if self.marks and self.marks[0][0] <= self.consumed:
            return self.marks[0][1]
        return None

    def pass_mark(self) -> None:
        """The mark at the cursor has been acted on."""
        self.marks.popleft()
        self.passed += 1

    def _leave(self, block: Block, following: Block) -> None:
        self._block, self._position = following, 0
        if block.is_last and block.chunk.finished_by_reader():
            self.outlet.pool.give_back(block.chunk)


class Outlet:
    """Where an operator writes. ``reserve`` finds room, kernels write straight into ``columns``, ``commit``
    publishes."""

    __slots__ = (
        "_block",
        "_next_index",
        "_starved",
        "carries_watermarks",
        "columns",
        "edges",
        "first",
        "layout",
        "marked",
        "pool",
        "position",
        "written",
    )

    def __init__(self, layout: Layout, pool: ChunkPool) -> None:
        self.layout = layout
        self.pool = pool
        self.edges: list[Edge] = []
        self.first: Block | None = None
        self._block: Block | None = None
        self._next_index = 0  # of the block that follows in the current chunk
        self._starved = False
        self.columns: Columns = ()
        self.position = 0  # where in ``columns`` the next event goes
        self.written = 0  # events published since the start
        self.marked = 0  # marks put behind them
        self.carries_watermarks = True  # False: none of its readers acts on them

    def connect(self) -> Edge:
        """A new reader. All readers must be there before the first event."""
        edge = Edge(self)
        self.edges.append(edge)
        return edge

    def reserve(self, wanted: int = 1) -> int:
        """Room for at least ``wanted`` events in the current block, else 0: backpressure.

        A block whose rest is too small for ``wanted`` is closed early and the next one opened.
        """
        block = self._block
        if block is not None:
            free = block.capacity - self.position
            if free >= wanted:
                return free
        following = self._next_block()
        self._starved = following is None
        return 0 if following is None else following.capacity

    def commit(self, count: int) -> None:
        """Publishes ``count`` events that were written at ``position``."""
        if count:
            self.position += count
            self.written += count
            self._block.written = self.position  # type: ignore[union-attr]

    @property
    def has_room(self) -> bool:
        """False if the last ``reserve`` failed and would fail again: it fails only for want of a chunk."""
        return not self._starved or self.pool.has_free

    def mark(self, mark: Mark) -> None:
        """Puts a mark behind all events written so far."""
        if not self.carries_watermarks and isinstance(mark, Watermark):
            return
        position = self.written
        self.marked += 1
        for edge in self.edges:
            edge.marks.append((position, mark))

    def release(self) -> None:
        """Gives up all memory after the last turn. Columns that someone has kept stay valid."""
        self.pool.release()
        for block in (self.first, self._block, *(edge._block for edge in self.edges)):
            while block is not None:
                block.chunk.release()
                block.next, block = None, block.next
        self.first = self._block = None
        self.columns = ()
        for edge in self.edges:
            edge._block = None

    def _next_block(self) -> Block | None:
        block = self._block
        if block is None or block.is_last:
            chunk = self.pool.take()
            if chunk is None:
                return None
            following = chunk.blocks[0]
            self._next_index = 1
        else:
            following = block.chunk.blocks[self._next_index]
            self._next_index += 1
        self._block, self.columns, self.position = following, following.columns, 0
        if block is None:
            self.first = following
        else:
            block.next = following
        return following
