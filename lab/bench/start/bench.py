"""How long queries take to start, by processor time: bare, with nothing compiled; cold, with what the package
brings; warm, with a filled cache. And what is compiled meanwhile.

Where bytecode is not kept, Python compiles all modules anew in each process, which is not what is measured:
a first start, which is not counted, writes it.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.bench.measuring.report import Options, Report, progress
from penstock.compiled.ahead import OFF_VARIABLE, ahead_folder
from penstock.compiled.folder import VARIABLE
from penstock.query.errors import PenstockError

QUERIES = 150
#: App → what it is.
APPS = {
    "window": "one window query over ten rows",
    "five": "five unlike queries over ten rows",
    "auction": "28 queries after NEXMark's over ten rows",
    "traffic": f"{QUERIES} traffic queries over one frame",
}


@dataclass(frozen=True)
class Start:
    """One start of an app, in a process of its own."""

    processor_s: float
    wall_s: float
    compiled: dict[str, float]  # ms by kernel, the slowest first
    loaded: int
    rows: int


def run(options: Options) -> Report:
    """Every app three times, in fresh processes, from the first import to the end of the input."""
    figures: dict[str, Any] = {"made_ahead": ahead_folder() is not None}
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="penstock-start-") as folder:
        bytecode = {"PYTHONPYCACHEPREFIX": os.path.join(folder, "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}
        for name, what in APPS.items():
            cache = os.path.join(folder, name)
            starts: dict[str, Start] = {}
            if name == "window":
                started(name, f"{cache}-first", bytecode)
            for state in ("bare", "cold", "warm"):
                progress(f"start: {what}, {state}")
                ahead = {OFF_VARIABLE: "1"} if state == "bare" else {}
                kept = f"{cache}-{state}" if state == "bare" else cache
                starts[state] = started(name, kept, {**bytecode, **ahead})
            if len({start.rows for start in starts.values()}) != 1:
                raise PenstockError(f"the app '{name}' gave other rows when it was started again")
            figures[name] = _figures(starts)
            ratios[f"{name}_cold_over_warm"] = starts["cold"].processor_s / starts["warm"].processor_s
    return Report(name="start", settings={"apps": APPS}, figures=figures, ratios=ratios)


def started(app: str, cache: str, environment: dict[str, str]) -> Start:
    """Starts an app of ``lab.bench.start.measured`` and waits for its end."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "lab.bench.start.measured", app],
        env={
            **os.environ,
            **environment,
            VARIABLE: cache,
            "NUMBA_CACHE_DIR": os.path.join(cache, "numba"),
        },
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
    )
    wall_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise PenstockError(f"the measured process failed: {done.stderr.strip().splitlines()[-1]}")
    said = json.loads(done.stdout.strip().splitlines()[-1])
    return Start(
        processor_s=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        wall_s=wall_s,
        compiled=said["compiled"],
        loaded=said["loaded"],
        rows=said["rows"],
    )


def _figures(starts: dict[str, Start]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for state, start in starts.items():
        figures[f"{state}_processor_s"] = start.processor_s
        figures[f"{state}_wall_s"] = start.wall_s
        figures[f"{state}_compiled"] = len(start.compiled)
        figures[f"{state}_loaded"] = start.loaded
    figures["cold_ms_by_kernel"] = starts["cold"].compiled
    return figures
