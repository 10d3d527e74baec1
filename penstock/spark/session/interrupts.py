"""Ctrl-C while a run is under way: noted, not raised.

PySpark's own handler cancels all jobs, the batch at hand among them, and raises in the middle of a call to
the JVM, whose answer the next call would then take for its own.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """Inside ``with``, the first Ctrl-C is noted and the second ends the process at once. Does nothing
    outside the main thread, where Python delivers no signals."""

    def __init__(self) -> None:
        self.noted = False
        self._before: Any = None
        self._is_main = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Interrupts:
        if self._is_main:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_main:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.noted:
            os._exit(128 + number)
        self.noted = True


@contextmanager
def handler_kept() -> Iterator[None]:
    """Whoever takes Ctrl-C inside ``with``, as a new Spark context does, has it no longer at the end."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGINT, before)
