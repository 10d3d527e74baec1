"""Of two runs in one checkpoint one goes on, and the other ends with one sentence, having changed nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.metrics.batches import BatchProgress
from penstock.spark.batches import opening
from penstock.state.errors import StateError
from penstock.state.store import StateStore
from tests.spark.checkpoint.test_resume import check, expected_of, lanes, stopped_after, written

_OTHER = "process 7 on elsewhere (started 2026-11-19 00:00:00 UTC)"


def take_over(checkpoint: Path) -> None:
    """What another run does first, whom no lock has kept out."""
    store = StateStore(checkpoint / "state")
    latest = store.latest()
    assert latest is not None
    store.commit(latest.taken_over("other", _OTHER))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_whose_checkpoint_is_taken_over_ends_and_its_batch_does_not_count(
    spark: SparkSession, tmp_path: Path
) -> None:
    runtime = ps.Spark(checkpoint=tmp_path / "checkpoint", batch_events=60)

    def after_batch(batch: BatchProgress) -> None:
        if batch.batch_id == 1:
            take_over(tmp_path / "checkpoint")

    app = lanes(tmp_path / "out")
    with pytest.raises(StateError, match=r"^another run has taken over the checkpoint: '") as raised:
        runtime.run(app.graph(), app.name, on_progress=after_batch)
    assert _OTHER in str(raised.value)
    latest = StateStore(tmp_path / "checkpoint" / "state").latest()
    assert latest is not None
    assert (latest.run_id, latest.fence) == ("other", 2)
    assert latest.batches <= 3  # the next batch may have been on its way when the other came
    assert lanes(tmp_path / "out").run(on=runtime).complete
    check(written(tmp_path / "out"), expected_of(lanes(None)))


def test_of_two_that_start_at_once_the_loser_has_touched_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = tmp_path / "checkpoint"
    runtime = ps.Spark(checkpoint=f"file://{checkpoint}", batch_events=60)
    stopped_after(runtime, lanes(tmp_path / "out"), 1)
    before = contents(tmp_path / "out")

    def beaten(*arguments: Any) -> Any:
        opened = open_writers(*arguments)
        take_over(checkpoint)  # both have read the same version, the other is quicker
        return opened

    open_writers = opening.open_writers
    with monkeypatch.context() as patched:
        patched.setattr(opening, "open_writers", beaten)
        with pytest.raises(StateError, match=r"^another run has taken over the checkpoint: '"):
            lanes(tmp_path / "out").run(on=runtime)
    assert contents(tmp_path / "out") == before
    assert lanes(tmp_path / "out").run(on=runtime).complete
    check(written(tmp_path / "out"), expected_of(lanes(None)))
