"""An app with a detector whose degree follows the arrivals, to be killed at the points of ``crash_app``."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from tests.cep.selections.detection_cases import TAGS, Rising, Row, app_of
from tests.spark import crash_app

assert crash_app.POINTS
#: Events a second, one stretch after the other: 20 ms each, a load of 1, then of 6, then of 1 again.
RATES = (50.0, 300.0, 50.0)
STRETCH, MOST, BATCH_EVENTS = 240, 8, 60


class Watched(Rising):
    """It is here, so that workers import this module, and with it the points to die at."""


@cache
def rows() -> list[Row]:
    """Exponential times between arrivals, at a rate that changes twice."""
    choose = np.random.default_rng(6)
    between = np.concatenate([choose.exponential(1.0 / rate, STRETCH) for rate in RATES])
    return [
        {"ts": ts, "kind": n % 2, "tag": TAGS[n % 2], "key": n % 3, "value": n % 5}
        for n, ts in enumerate(np.cumsum(between * 1e6).astype(int).tolist())
    ]


def control() -> ps.detection.DegreeControl:
    """Queueing theory on slices of 60 arrivals."""
    profile = ps.detection.measure_profile("rising", [50.0], lambda rate: np.full(20, 0.02))
    planner = ps.detection.QueueingPlanner(profile)
    return ps.detection.DegreeControl(planner, ps.detection.Slicing(arrivals=60))


def build(sink: Any = None) -> tuple[ps.App, Any]:
    degree = ps.Degree(1, most=MOST, control=control)
    return app_of(rows(), "sequence", degree, sink=sink, detector=Watched)


def main(folder: str, tasks: str) -> None:
    root = Path(folder)
    app, _ = build(ps.sinks.Parquet(root / "out"))
    runtime = crash_app.runtime(root, tasks, BATCH_EVENTS)
    summary = runtime.run(
        app.graph(), app.name, on_progress=lambda batch: print(json.dumps(dict(batch.degrees)), flush=True)
    )
    print(f"complete: {summary.complete}", flush=True)
