"""Python's garbage collector, kept from stopping a run.

A full collection looks at every object of the process while it holds the interpreter lock: with the libraries
that are loaded that takes 60 to 170 ms, and no thread gets a turn meanwhile. What is there when a run begins
stays until it ends, so it need not be looked at: it is set aside, and a collection then takes a millisecond.
"""

from __future__ import annotations

import gc
from threading import Lock

_lock = Lock()
_runs = 0
_is_ours = False  # nobody had set anything aside before the first run did


def begin_run() -> None:
    """Sets aside all objects there are, until the last run has ended."""
    global _runs, _is_ours
    with _lock:
        if _runs == 0:
            _is_ours = gc.get_freeze_count() == 0
        if _is_ours:
            gc.freeze()
        _runs += 1


def end_run() -> None:
    """A run has ended; after the last one everything is as it was."""
    global _runs
    with _lock:
        _runs -= 1
        if _runs == 0 and _is_ours:
            gc.unfreeze()
