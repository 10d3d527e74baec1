"""Python's garbage collector, kept from stopping a run.

A full collection looks at every object of the process while it holds the interpreter lock: with the libraries
that are loaded that takes 60 to 170 ms, and no thread gets a turn meanwhile. What is there when a run begins
stays until it ends, so it need not be looked at: it is set aside, and a collection then takes a millisecond.
"""

from __future__ import annotations

import gc
from threading import Lock

#: What runs that ended have left for the collector, in bytes and in number, before the next one begins with a
#: full collection: their objects have references in circles, and nothing else would take them.
_MOST_BYTES = 256 << 20
_MOST_RUNS = 100

_lock = Lock()
_runs = 0
_is_ours = False  # nobody had set anything aside before the first run did
_left_bytes = 0
_left_runs = 0


def begin_run() -> None:
    """Sets aside all objects there are, until the last run has ended."""
    global _runs, _is_ours, _left_bytes, _left_runs
    with _lock:
        if _runs == 0:
            if _left_bytes > _MOST_BYTES or _left_runs > _MOST_RUNS:
                _left_bytes = _left_runs = 0
                gc.collect()
            _is_ours = gc.get_freeze_count() == 0
        if _is_ours:
            gc.freeze()
        _runs += 1


def end_run(left_bytes: int = 0) -> None:
    """A run has ended, with so much in memory; after the last one everything is as it was."""
    global _runs, _left_bytes, _left_runs
    with _lock:
        _runs -= 1
        _left_bytes += left_bytes
        _left_runs += 1
        if _runs == 0 and _is_ours:
            gc.unfreeze()
