"""What an app and a checkpoint have in common, told by step and line before anything runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.checkpoints.folders import Checkpoint, resume
from penstock.cli import main
from penstock.service.upgrade import graph_of
from penstock.spark.batches.preparation import prepare
from penstock.state.store import StateStore

_V = 4

APP = """
import penstock as ps
from penstock import col, count, tumbling
app = ps.App("cars")
data = {"ts": [1, 2], "lane": [1, 2]}
cars = app.source("cars", ps.sources.Columns(data, {"ts": "timestamp", "lane": "int64"}), event_time="ts")
"""
PER_LANE = """
per_lane = cars.key_by("lane").window(tumbling("SIZE")).agg(n=count(), name="per_lane")
app.sink("out", per_lane, ps.sinks.Discard())
"""
FIRST = """
app.sink("first", cars.deduplicate("lane", name="first_cars"), ps.sinks.Discard())
"""


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Of an app with both steps, each with three rows of state."""
    folder = tmp_path / "state"
    file = tmp_path / "before.py"
    file.write_text(APP + PER_LANE.replace("SIZE", "1m") + FIRST)
    prepared = prepare(graph_of(file), str(tmp_path), None)
    store = StateStore(Checkpoint.at(folder).state)
    first, _, is_new = resume(store, prepared.stages, prepared.finals(), (0,) * _V, "run")
    assert is_new
    table = pa.table({"$hash": np.arange(3), "key": np.arange(3)})
    rows = {name: {"rows": table} for name in first.operators}
    entry = store.write(1, 0, 0, "run", rows, _V).entry
    assert entry is not None
    from dataclasses import replace

    store.commit(replace(first, version=1, files=(entry,), batches=1))
    return folder


def diff(tmp_path: Path, checkpoint: Path, text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    file = tmp_path / "app.py"
    file.write_text(text)
    code = main(["checkpoint", "diff", str(file), str(checkpoint)])
    return code, capsys.readouterr().out


def test_the_same_app_goes_on(tmp_path: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = APP + PER_LANE.replace("SIZE", "1m") + FIRST + "app.run()\nprint('this line is not reached')\n"
    code, told = diff(tmp_path, checkpoint, app, capsys)
    assert code == 0
    place = f"(written at {tmp_path / 'app.py'}:"
    assert f"goes on: 'per_lane' with 3 rows of state {place}8)" in told
    assert f"goes on: 'first_cars' with 3 rows of state {place}11)" in told
    assert "not reached" not in told


def test_a_changed_step_and_one_that_is_gone_are_told(
    tmp_path: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = diff(tmp_path, checkpoint, APP + PER_LANE.replace("SIZE", "5m"), capsys)
    assert code == 1
    assert "starts without state: 'per_lane': " in told
    assert "is dropped: the state of 'first_cars', 3 rows: no step of the app says the same" in told


def test_nothing_is_changed(tmp_path: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in checkpoint.rglob("*"))
    diff(tmp_path, checkpoint, APP + PER_LANE.replace("SIZE", "5m"), capsys)
    assert sorted((path, path.stat().st_mtime_ns) for path in checkpoint.rglob("*")) == before


def test_what_cannot_be_compared_is_told(
    tmp_path: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["checkpoint", "diff", str(tmp_path / "nowhere.py"), str(checkpoint)]) == 2
    assert "there is no file" in capsys.readouterr().err
    (tmp_path / "app.py").write_text("app = None\n")
    assert main(["checkpoint", "diff", str(tmp_path / "app.py"), str(checkpoint)]) == 2
    assert "runs no app" in capsys.readouterr().err
