"""Says what is being compiled when that takes long: whoever waits for a first row wants to know for what."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Timer

logger = logging.getLogger(__name__)

#: After so much compiling in this process it is said.
PATIENCE_S = 1.0

#: Called with a kernel's name right before it is compiled, never for one that is on disk already.
on_compile: Callable[[str], None] | None = None


class Notice:
    """Says once, after ``patience_s`` of compiling, what is being compiled."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._lock = Lock()
        self.times_s: dict[str, float] = {}  # by name: several shapes of one kernel together
        self._is_said = False

    @contextmanager
    def compiling(self, name: str) -> Iterator[None]:
        """While a function is compiled."""
        timer = Timer(max(0.0, self._patience_s - self.spent_s), self._say, (name,))
        timer.daemon = True
        if not self._is_said:
            timer.start()
        began = time.perf_counter()
        try:
            yield
        finally:
            timer.cancel()
            self.times_s[name] = self.times_s.get(name, 0.0) + time.perf_counter() - began

    @property
    def spent_s(self) -> float:
        """How long this process has compiled."""
        return sum(self.times_s.values())

    def _say(self, name: str) -> None:
        with self._lock:
            if self._is_said:
                return
            self._is_said = True
        logger.warning(
            "compiling %s for queries that have not run here before; what is compiled is kept for the next "
            "start, and 'penstock warm' does it beforehand",
            ", ".join(f"'{one}'" for one in [*self.times_s, name]),
        )


#: Of this process.
notice = Notice()


@contextmanager
def compiling(name: str) -> Iterator[None]:
    """While a kernel is compiled in this process."""
    if on_compile is not None:
        on_compile(name)
    with notice.compiling(name):
        yield
