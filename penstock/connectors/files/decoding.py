"""Pieces of files decoded side by side and ahead of need, and handed out in their order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")
#: Decodes one piece by itself: neither the order nor the thread of such calls shows in what they return.
Piece = Callable[[], T]

_THREADS = max(1, (os.cpu_count() or 2) - 1)  # the reader's own thread decodes too
_AHEAD = _THREADS + 2


class DecodingThreads:
    """The threads of one reader, which begin when there is something to decode beside it."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    def submit(self, piece: Piece[T]) -> Future[T]:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="penstock-decode")
        return self._pool.submit(piece)

    def close(self) -> None:
        """What has not begun never will; waits for the rest."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


class Decoding(Generic[T]):
    """Results of pieces, in their order. At most a few are decoded and not yet taken."""

    def __init__(self, pieces: Iterator[Piece[T]], threads: DecodingThreads) -> None:
        self._pieces, self._threads = pieces, threads
        self._ahead: deque[_Slot[T]] = deque()

    def take(self) -> T | None:
        """The next result, None behind the last; raises what its piece raised.

        Whoever asks does not only wait: while the result is not there, it decodes what nobody has begun.
        """
        self._look_ahead()
        if not self._ahead:
            return None
        first = self._ahead[0]
        while not first.done:
            mine = next((slot for slot in self._ahead if slot.claim()), None)
            if mine is None:
                break
            mine.decode()
        result = self._ahead.popleft().result()
        self._look_ahead()
        return result

    def close(self) -> None:
        """Lets go of what was decoded, and of the file."""
        for slot in self._ahead:
            slot.claim()
        self._ahead.clear()
        self._pieces.close()  # type: ignore[attr-defined]  # they are generators

    def _look_ahead(self) -> None:
        while len(self._ahead) < _AHEAD and (piece := next(self._pieces, None)) is not None:
            self._ahead.append(_Slot(piece))
        if len(self._ahead) > 1:  # for one piece alone no thread need begin
            for slot in self._ahead:
                slot.offer(self._threads)


class _Slot(Generic[T]):
    """One piece: first nobody's, then of whoever began to decode it."""

    __slots__ = ("_future", "_mine", "_piece")

    def __init__(self, piece: Piece[T]) -> None:
        self._piece: Piece[T] = piece
        self._future: Future[T] | None = None
        self._mine: Future[T] | None = None  # decoded by the reader's own thread

    def offer(self, threads: DecodingThreads) -> None:
        """Lets the threads decode it, unless it was offered or claimed before."""
        if self._future is None and self._mine is None:
            self._future = threads.submit(self._piece)

    def claim(self) -> bool:
        """Takes it away from the threads; False if they have begun, or it was claimed before."""
        if self._mine is not None or (self._future is not None and not self._future.cancel()):
            return False
        self._mine = Future()
        return True

    def decode(self) -> None:
        """Here and now, after ``claim``."""
        assert self._mine is not None
        try:
            self._mine.set_result(self._piece())
        except Exception as error:
            self._mine.set_exception(error)

    @property
    def done(self) -> bool:
        future = self._mine or self._future
        return future is not None and future.done()

    def result(self) -> T:
        future = self._mine or self._future
        assert future is not None
        return future.result()
