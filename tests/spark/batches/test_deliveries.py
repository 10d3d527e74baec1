"""Runs on Spark go on with the output that they delivered, or are refused with what has become of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.checkpoints.folders import Checkpoint
from penstock.checkpoints.groups import folder_of
from penstock.connectors.deliveries import delivery_of
from penstock.query.errors import RunError
from penstock.state.manifest import Manifest
from penstock.state.store import StateStore
from tests.reference import Row

_PATIENCE_S = 300.0
_ROWS: list[Row] = [{"ts": number * 1_000, "lane": number % 5, "cars": number} for number in range(200)]
_TYPES = {"ts": "timestamp", "lane": "int64", "cars": "int64"}


def build(out: Path, *, counts: str = "counts", **settings: Any) -> ps.App:
    """Filtered rows as CSV and JSON lines, counts per window as Parquet."""
    app = ps.App("deliveries")
    lanes = app.source("lanes", ps.sources.Rows(_ROWS, _TYPES), event_time="ts")
    counted = lanes.key_by("lane").window(ps.tumbling("20ms")).agg(n=ps.count(), name="per_lane")
    app.sink("even", lanes.filter(ps.col("cars") % 2 == 0), ps.sinks.Csv(out / "even.csv", **settings))
    app.sink("odd", lanes.filter(ps.col("cars") % 2 == 1), ps.sinks.JsonLines(out / "odd.jsonl", **settings))
    app.sink(counts, counted, ps.sinks.Parquet(out / counts, **settings))
    return app


def start(runtime: ps.Spark, app: ps.App, last_batch: int) -> None:
    """Runs until this batch has counted."""
    run = runtime.start(app.graph(), app.name, last_batch=last_batch)
    assert run.wait(_PATIENCE_S)
    run.finish()


def newest(checkpoint: Path | str) -> Manifest:
    manifest = StateStore(f"{checkpoint}/state").latest()
    assert manifest is not None
    return manifest


def verify(manifest: Manifest) -> dict[str, str | None]:
    """By query, what is wrong with what it has delivered."""
    found = {}
    for query, plain in manifest.deliveries.items():
        delivery = delivery_of(plain)
        assert delivery is not None
        found[query] = delivery.verify(2**40)  # nothing is there of a batch that did not count
    return found


def written(out: Path) -> dict[str, list[Any]]:
    """All rows, by query, in an order that does not matter."""
    return {
        "even": sorted((out / "even.csv").read_text().splitlines()),
        "odd": sorted((out / "odd.jsonl").read_text().splitlines()),
        "counts": counts(out / "counts"),
    }


def counts(folder: Path) -> list[Any]:
    return sorted(tuple(row.values()) for row in pq.read_table(folder).to_pylist())


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    build(folder).run(on=ps.Spark(checkpoint=folder / "checkpoint", batch_events=40))
    found = written(folder)
    assert [len(found[query]) for query in ("even", "odd", "counts")] == [101, 100, 50]
    return found


def _cut(out: Path) -> None:
    path = out / "even.csv"
    path.write_bytes(path.read_bytes()[:-3])


def _replaced(out: Path) -> None:
    path = out / "odd.jsonl"
    path.write_bytes(b"{}\n" * path.stat().st_size)


def _one_missing(out: Path) -> None:
    min((out / "counts").glob("batch-*.parquet")).unlink()


def _one_changed(out: Path) -> None:
    file = min((out / "counts").glob("batch-*.parquet"))
    file.write_bytes(file.read_bytes() + b"x")


def _folder_moved(out: Path) -> None:
    (out / "counts").rename(out / "moved")


DAMAGES: list[tuple[Callable[[Path], object], str]] = [
    (_cut, r"^sink of query 'even' cannot be opened: cannot go on with '.*even.csv': it has .* bytes, and "),
    (lambda out: (out / "even.csv").unlink(), r"even.csv': it is not there, and .* bytes of it had been"),
    (_replaced, r"odd.jsonl': it is another file or was changed"),
    (_one_missing, r"query 'counts' .* batch-\d+.parquet is missing; bring it back as it was"),
    (_one_changed, r"query 'counts' .* batch-\d+.parquet has .* bytes, which is not what was delivered"),
    (lambda out: shutil.rmtree(out / "counts"), r"/counts': it is no folder, and \d+ files? had been"),
    (_folder_moved, r"/counts': it is no folder, and \d+ files? had been"),
]


def test_a_run_whose_output_is_gone_is_refused_and_goes_on_when_it_is_back(
    undisturbed: dict[str, list[Any]], tmp_path: Path
) -> None:
    out, copy = tmp_path / "out", tmp_path / "copy"
    runtime = ps.Spark(checkpoint=tmp_path / "checkpoint", batch_events=40)
    start(runtime, build(out), 2)
    assert verify(newest(tmp_path / "checkpoint")) == {"even": None, "odd": None, "counts": None}
    shutil.copytree(out, copy)
    for damage, told in DAMAGES:
        damage(out)
        damaged = sorted(out.rglob("*"))
        for settings in ({}, {"overwrite": True}):
            with pytest.raises(RunError, match=told) as refused:
                runtime.start(build(out, **settings).graph(), "deliveries")
            assert "overwrite" not in str(refused.value)
        assert sorted(out.rglob("*")) == damaged
        shutil.rmtree(out)
        # What people copy: all that can be seen.
        shutil.copytree(copy, out, ignore=shutil.ignore_patterns(".*"))
    with pytest.raises(RunError, match=rf"has delivered .* bytes into '{out}/even.csv'; give that path"):
        runtime.start(build(tmp_path / "elsewhere").graph(), "deliveries")
    assert not (tmp_path / "elsewhere").exists()
    summary = build(out, overwrite=True).run(on=runtime)
    assert summary.complete
    assert written(out) == undisturbed
    assert verify(newest(tmp_path / "checkpoint")) == {"even": None, "odd": None, "counts": None}


@pytest.mark.slow
def test_a_sink_with_another_name_begins_anew_and_the_state_goes_on(
    undisturbed: dict[str, list[Any]], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    runtime = ps.Spark(checkpoint=tmp_path / "checkpoint", batch_events=40)
    start(runtime, build(out), 2)
    shutil.rmtree(out / "counts")
    summary = build(out, counts="further").run(on=runtime)
    assert not summary.changes
    further = set(counts(out / "further"))
    assert 0 < len(further) < len(undisturbed["counts"])
    assert further < set(undisturbed["counts"])  # windows that were open are counted whole
    deliveries = newest(tmp_path / "checkpoint").deliveries
    assert set(deliveries) == {"even", "odd", "counts", "further"}  # it may come again
    with pytest.raises(RunError, match=r"query 'counts' .* it is no folder"):
        build(out).run(on=runtime)


@pytest.mark.slow
def test_every_group_keeps_what_its_own_queries_have_delivered(
    undisturbed: dict[str, list[Any]], tmp_path: Path
) -> None:
    out, checkpoint = tmp_path / "out", Checkpoint.at(tmp_path / "checkpoint")
    start(ps.Spark(checkpoint=checkpoint.root, batch_events=40), build(out), 2)
    runtime = ps.Spark(checkpoint=checkpoint.root, batch_events=40, groups=[["even"], ["odd", "counts"]])
    assert build(out).run(on=runtime).complete
    found = [newest(folder_of(checkpoint, group)) for group in (0, 1)]
    assert [set(manifest.deliveries) for manifest in found] == [{"even"}, {"odd", "counts"}]
    assert [set(verify(manifest).values()) for manifest in found] == [{None}, {None}]
    assert written(out) == undisturbed


def test_a_new_run_that_fails_before_its_first_batch_is_started_anew(
    undisturbed: dict[str, list[Any]], tmp_path: Path
) -> None:
    """With the first manifest alone, which knows nothing of the sinks, and with empty output."""
    out = tmp_path / "out"
    runtime = ps.Spark(checkpoint=tmp_path / "checkpoint", batch_events=40)
    for fails_at in ("begin_writers", "deliveries"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(f"penstock.spark.batches.opening.{fails_at}", _fails)
            with pytest.raises(RunError, match="no power"):
                runtime.start(build(out).graph(), "deliveries")
        assert newest(tmp_path / "checkpoint").deliveries == {}
    assert build(out).run(on=runtime).complete
    assert written(out) == undisturbed


def _fails(*args: Any) -> Any:
    raise RunError("no power")
