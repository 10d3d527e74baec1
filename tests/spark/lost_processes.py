"""Kills every Python process that a Spark in this process has started: daemon, workers and planners."""

from __future__ import annotations

import contextlib

import psutil
from pyspark import SparkContext


def kill_python(java: psutil.Process | None = None) -> int:
    """Kills those below this Java, or below the one of this process; how many there were."""
    gateway = SparkContext._gateway
    if java is None:
        assert gateway is not None
        java = psutil.Process(gateway.proc.pid)
    victims = []
    for process in java.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "pyspark" in " ".join(process.cmdline()) and process.name() != "java":
                process.kill()
                victims.append(process)
    return len(victims)
