"""Ctrl-C and SIGTERM while a run is under way: noted, not raised.

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
    """Inside ``with``, the first ``patience`` signals are counted and the next ends the process at once.

    SIGTERM is left to whoever has a handler for it. Does nothing outside the main thread, where Python
    delivers no signals.
    """

    def __init__(self, patience: int = 1) -> None:
        self.count = 0
        self._patience = patience
        self._before: dict[signal.Signals, Any] = {}

    @property
    def noted(self) -> bool:
        """Whether somebody has asked for the end."""
        return self.count > 0

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is not threading.main_thread():
            return self
        self._before[signal.SIGINT] = signal.signal(signal.SIGINT, self._note)
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._before[signal.SIGTERM] = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.count >= self._patience:
            os._exit(128 + number)
        self.count += 1


@contextmanager
def handler_kept() -> Iterator[None]:
    """Whoever takes Ctrl-C inside ``with``, as a new Spark context does, has it no longer at the end."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGINT, before)
