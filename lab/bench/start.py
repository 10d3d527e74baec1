"""How long 150 queries take until their first event, with an empty kernel cache and with a filled one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

from lab.bench.measuring.report import Options, Report, progress
from penstock.query.errors import PenstockError

QUERIES = 150
_PROGRAM = """
import json, time
began = time.perf_counter()
from penstock.demo import traffic_app
from penstock.engine.node import Node
from penstock.kernels import cache
from penstock.workloads.traffic.settings import TrafficSettings
from penstock.workloads.traffic.source import Traffic
app = traffic_app({queries}, Traffic(TrafficSettings(cars=20_000), seconds=0.04))
summary = Node(workers=2).run(app.graph())
print(json.dumps({{"seconds": time.perf_counter() - began, "compiled": cache.counts.compiled,
                  "loaded": cache.counts.loaded, "operators": len(summary.metrics.operators)}}))
"""


def run(options: Options) -> Report:
    """Fresh processes; the whole time from the first import to the end of one frame of traffic."""
    with tempfile.TemporaryDirectory(prefix="penstock-start-") as folder:
        progress(f"start: {QUERIES} queries, cold")
        cold = _start(folder)
        progress(f"start: {QUERIES} queries, warm")
        warm = _start(folder)
    return Report(
        name="start",
        settings={"queries": QUERIES},
        figures={
            "cold_s": cold["seconds"],
            "warm_s": warm["seconds"],
            "kernels_compiled_cold": cold["compiled"],
            "kernels_compiled_warm": warm["compiled"],
            "kernels_loaded_warm": warm["loaded"],
            "operators": warm["operators"],
        },
        ratios={"cold_over_warm": cold["seconds"] / warm["seconds"]},
    )


def _start(folder: str) -> dict[str, float]:
    environment = {**os.environ, "PENSTOCK_CACHE": folder, "NUMBA_CACHE_DIR": os.path.join(folder, "numba")}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(queries=QUERIES)],
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise PenstockError(f"the measured process failed: {done.stderr.strip().splitlines()[-1]}")
    result: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return result
