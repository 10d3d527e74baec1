"""The memory coordinator: chunks are made by a background thread before they are needed, and capped.

enjima 3.1: an output starts with two chunks; whoever takes the last free one asks for the next in the same
breath, so it is ready before it is needed. At the cap nothing is allocated: the operator is backpressured
until a reader frees a chunk. Blocks start small and grow with the load, so that memory follows need.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread

from penstock.memory.blocks import Chunk, ChunkShape

#: Events of the first blocks of an output; a quiet one, such as a window's, never needs more.
_FIRST_EVENTS = 1024
_GROWTH = 4


class ChunkPool:
    """The chunks of one output. ``take`` is called by its one writer, ``give_back`` by any reader.

    ``shape`` is what chunks grow to. When the writer uses up the last free chunk at the cap, the next ones
    are made larger, and smaller ones that come back are given up for them. ``requested`` counts chunks that
    exist or are on order and never exceeds ``limit``.
    """

    __slots__ = (
        "_coordinator",
        "_free",
        "_lock",
        "allocated",
        "limit",
        "on_free",
        "readers",
        "requested",
        "shape",
        "wanted_events",
    )

    def __init__(self, coordinator: MemoryCoordinator, shape: ChunkShape, limit: int, readers: int) -> None:
        self._coordinator = coordinator
        self._free: deque[Chunk] = deque()
        self._lock = Lock()
        self.shape = shape
        self.limit = limit
        self.readers = readers
        self.allocated = 0
        self.requested = 0
        self.wanted_events = min(shape.block_events, max(_FIRST_EVENTS, shape.least_events))
        self.on_free: Callable[[], None] | None = None

    def take(self) -> Chunk | None:
        """An empty chunk, or None at the cap or while the next is being made."""
        try:
            chunk = self._free.pop()  # the one freed last: its memory is still in the cache
        except IndexError:
            chunk = None
        if not self._free:
            self._order()
        if chunk is not None:
            chunk.reset(self.readers)
        return chunk

    def give_back(self, chunk: Chunk) -> None:
        """Recycles a chunk that every reader has finished, or gives up one that has become too small."""
        if chunk.events < self.wanted_events:
            with self._lock:
                self.allocated -= 1
            chunk.reset(0)  # no block may hold on to the one behind it
            chunk.release()
            self._coordinator.replace(self, chunk)
            return
        self._free.append(chunk)
        if self.on_free is not None:
            self.on_free()

    def add(self, chunk: Chunk) -> None:
        """Hands over a new chunk; called by the allocator."""
        with self._lock:
            self.allocated += 1
        self._free.append(chunk)
        if self.on_free is not None:
            self.on_free()

    def release(self) -> None:
        """Gives up the free chunks; nobody takes one any more."""
        while self._free:
            self._free.pop().release()

    def next_shape(self) -> ChunkShape:
        """The shape of the next chunk to be made."""
        return self.shape.with_events(self.wanted_events)

    def _order(self) -> None:
        """Orders one more chunk; at the cap, larger ones from now on."""
        with self._lock:
            if self.requested == self.limit:
                self.wanted_events = min(self.shape.block_events, self.wanted_events * _GROWTH)
                return
            self.requested += 1
        self._coordinator.request(self)

    @property
    def has_free(self) -> bool:
        return bool(self._free)

    @property
    def blocks_in_use(self) -> int:
        return (self.allocated - len(self._free)) * self.shape.blocks


class MemoryCoordinator:
    """Owns every chunk of a run and the thread that allocates them.

    With ``background=False`` chunks are made at once, by the caller: for tests that must be deterministic.
    """

    def __init__(self, *, background: bool = True) -> None:
        self._background = background
        self._requests: SimpleQueue[ChunkPool | None] = SimpleQueue()
        self._lock = Lock()
        self._pools: list[ChunkPool] = []
        self._thread: Thread | None = None
        self.allocated_bytes = 0

    def pool(self, shape: ChunkShape, *, limit: int, readers: int, initial: int = 2) -> ChunkPool:
        """A pool for one output, with its first chunks already made."""
        pool = ChunkPool(self, shape, limit, readers)
        self._pools.append(pool)
        for _ in range(min(initial, limit)):
            pool.requested += 1
            self._allocate(pool)
        return pool

    def add_pool(self, pool: ChunkPool) -> None:
        """A pool that was made elsewhere and counts what it allocates itself."""
        self._pools.append(pool)

    def count(self, allocated_bytes: int) -> None:
        """Counts memory that a pool has allocated, or given up if negative."""
        with self._lock:
            self.allocated_bytes += allocated_bytes

    @property
    def cap_bytes(self) -> int:
        """What all chunks together can come to."""
        return sum(pool.limit * pool.shape.bytes for pool in self._pools)

    def request(self, pool: ChunkPool) -> None:
        """Orders one more chunk for ``pool``."""
        if self._background:
            if self._thread is None:
                self._start()
            self._requests.put(pool)
        else:
            self._allocate(pool)

    def replace(self, pool: ChunkPool, chunk: Chunk) -> None:
        """Gives a chunk up and orders one of the size that the pool wants by now."""
        with self._lock:
            self.allocated_bytes -= chunk.bytes
        self.request(pool)

    def close(self) -> None:
        """Stops the allocator. Blocks already handed out stay valid."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._requests.put(None)
            thread.join()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._serve, name="penstock-allocator", daemon=True)
                self._thread.start()

    def _serve(self) -> None:
        while (pool := self._requests.get()) is not None:
            self._allocate(pool)

    def _allocate(self, pool: ChunkPool) -> None:
        chunk = Chunk(pool.next_shape())
        with self._lock:
            self.allocated_bytes += chunk.bytes
        pool.add(chunk)
