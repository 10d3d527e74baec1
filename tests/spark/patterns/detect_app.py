"""An app with a detector whose degree changes, to be killed at the points of ``crash_app``."""

from __future__ import annotations

import random
from pathlib import Path

import penstock as ps
from tests.cep.selections.detection_cases import Rising, Row, app_of, make_rows
from tests.spark import crash_app

EVENTS, BATCH_EVENTS = 400, 40
DEGREE = ps.Degree(1, 4, ((60, 4), (150, 2), (230, 4), (300, 3)))


def rows() -> list[Row]:
    """Events out of order, by no more than the lateness."""
    choose = random.Random(11)
    return make_rows(
        [
            (
                choose.randint(0, 3),
                choose.randint(-3, 0),
                choose.randrange(3),
                choose.randrange(3),
                choose.randrange(9),
            )
            for _ in range(EVENTS)
        ]
    )


class Watched(Rising):
    """It is here, so that workers import this module, and with it the points to die at."""


def main(folder: str, family: str, tasks: str) -> None:
    root = Path(folder)
    app, _ = app_of(rows(), family, DEGREE, sink=ps.sinks.Parquet(root / "out"), detector=Watched)
    runtime = crash_app.runtime(root, tasks, BATCH_EVENTS)
    summary = runtime.run(app.graph(), app.name, on_progress=lambda batch: print(batch.degrees, flush=True))
    print(f"complete: {summary.complete}, {summary.degrees['matches']}", flush=True)
