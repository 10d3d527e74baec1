"""How much memory the driver's Java gets: a share of the machine's, where the user has not said otherwise."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from penstock.spark.session.defaults import DRIVER_MEMORY, set_elsewhere

MAX_RESULT_SIZE = "spark.driver.maxResultSize"

_MIB = 1 << 20
#: Of the machine's memory: the rest is for Python, which does the work, and for the cache of files.
_SHARE = 4
_LEAST_BYTES = 1 << 30  # what Spark itself would take
_MOST_BYTES = 8 << 30  # only reports and small results pass through it, so more buys nothing
#: Of the driver's memory: what Spark collects is there several times, as it came and as it goes to Python.
_RESULT_SHARE = 4
_UNITS = {"": _MIB, "k": 1 << 10, "m": _MIB, "g": 1 << 30, "t": 1 << 40}
#: Files that say how much memory a container may have, by the version of control groups.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The driver's memory, and how much of results it collects before it gives up with an error of its own
    rather than for want of memory. What the user has set anywhere stays."""
    known = {**set_elsewhere(), **settings}
    chosen: dict[str, str] = {}
    if DRIVER_MEMORY not in known:
        chosen[DRIVER_MEMORY] = f"{driver_bytes(machine_bytes()) // _MIB}m"
    if MAX_RESULT_SIZE not in known:
        total = size_bytes(known.get(DRIVER_MEMORY) or chosen[DRIVER_MEMORY]) or _LEAST_BYTES
        chosen[MAX_RESULT_SIZE] = f"{max(total // _RESULT_SHARE, _MIB) // _MIB}m"
    return chosen


def driver_bytes(machine: int) -> int:
    """The driver's share of a machine with so much memory.

    >>> [driver_bytes(gib << 30) >> 20 for gib in (2, 16, 24, 256)]
    [1024, 4096, 6144, 8192]
    """
    return min(max(machine // _SHARE, _LEAST_BYTES), _MOST_BYTES)


def size_bytes(text: str) -> int | None:
    """A size as Spark writes it, in bytes; None if it is none. Without a unit it is in MiB.

    >>> size_bytes("512m"), size_bytes("2g"), size_bytes("100"), size_bytes("much")
    (536870912, 2147483648, 104857600, None)
    """
    found = re.fullmatch(r"\s*(\d+)\s*([kmgt]?)b?\s*", text.lower())
    return None if found is None else int(found[1]) * _UNITS[found[2]]


def machine_bytes() -> int:
    """The memory of this machine, or of the container that this process is in."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for name in _LIMITS:
        try:
            text = Path(name).read_text().strip()
        except OSError:
            continue
        if text.isdecimal() and int(text) > 0:
            found.append(int(text))
    return min(found)
