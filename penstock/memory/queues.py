"""Queues of freshly allocated batches: what block memory is compared with.

Every batch is allocated when its first event is written and given up when its last reader has left it. A
reader sees a batch when it is handed over: when it is full, or when the turn that wrote it ends. Readers of
one output share its batches, as they share blocks. Kernels, edges and marks are the same as with blocks.
"""

from __future__ import annotations

from threading import Lock

from penstock.memory.blocks import Block, Chunk, ChunkShape
from penstock.memory.coordinator import ChunkPool, MemoryCoordinator
from penstock.memory.edges import Mark, Outlet
from penstock.memory.layout import Layout


class BatchPool(ChunkPool):
    """Makes a batch whenever one is asked for, up to ``limit`` that are not yet read."""

    __slots__ = ("_account", "_count")

    def __init__(self, coordinator: MemoryCoordinator, shape: ChunkShape, limit: int, readers: int) -> None:
        super().__init__(coordinator, shape, limit, readers)
        self._account = coordinator
        self._count = Lock()

    def take(self) -> Chunk | None:
        with self._count:
            if self.allocated == self.limit:
                return None
            self.allocated += 1
        chunk = Chunk(self.shape, touch=False)
        chunk.reset(self.readers)
        self._account.count(chunk.bytes)
        return chunk

    def give_back(self, chunk: Chunk) -> None:
        chunk.reset(0)  # no batch may hold on to the one behind it
        chunk.release()
        self._account.count(-chunk.bytes)
        with self._count:
            self.allocated -= 1
        if self.on_free is not None:
            self.on_free()

    @property
    def has_free(self) -> bool:
        return self.allocated < self.limit

    @property
    def blocks_in_use(self) -> int:
        return self.allocated


class QueueOutlet(Outlet):
    """Writes into a fresh batch and hands it over; a batch that was handed over is not written to again."""

    __slots__ = ("_unsent",)

    def __init__(self, layout: Layout, pool: BatchPool) -> None:
        super().__init__(layout, pool)
        self._unsent = 0

    def commit(self, count: int) -> None:
        if count:
            self.position += count
            self._unsent += count

    def hand_over(self) -> None:
        """Lets the readers see what was written since the last time."""
        block = self._block
        if self._unsent and block is not None:
            block.written = self.position
            self.written += self._unsent
            self._unsent = 0
            self.position = block.capacity  # the next event begins another batch

    def mark(self, mark: Mark) -> None:
        self.hand_over()
        super().mark(mark)

    def _next_block(self) -> Block | None:
        self.hand_over()
        return super()._next_block()
