"""The route between batches: measured, planned, requested, observed; and results that do not notice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

import penstock as ps
from lab.workloads.shop.data import FIELDS, ShopEvents, ShopSettings
from lab.workloads.shop.query import commcount, ledger
from lab.workloads.shop.source import EVENT_TIME, shop_source
from penstock.query.errors import PenstockError
from penstock.routing.control import RoutingControl
from penstock.routing.route import partitions_of
from penstock.spark.batches.balancing import Balancing, observed
from penstock.spark.batches.reports import HotRows, PartitionRows, RoutedReport, StateReport, TaskReport
from penstock.spark.batches.stages import Stages, cut
from penstock.state.store import StateStore
from tests.reference import Row, run_reference

ROUTE = (0, 1, 0, 1)
EAGER = RoutingControl(chi=0.05, cooldown=0, smoothing=1.0, least_gain=0.0)


def _stages() -> Stages:
    app = ps.App("shop")
    events = app.source("events", shop_source(ShopSettings(), 10), event_time=EVENT_TIME)
    app.sink("out", ledger(events), ps.sinks.Memory())
    return cut(app.graph())


def _reports(rows: list[int], *cpu_ns: int, hot: tuple[HotRows, ...] = ()) -> list[TaskReport]:
    sent = PartitionRows.of(np.array(rows))
    sender = TaskReport(routed=RoutedReport({1: sent}, {0: sum(rows)}, hot))
    state = StateReport(held=PartitionRows.of(np.ones(4, np.int64)))
    tasks = [TaskReport(1, task, cpu_ns=spent, state=state) for task, spent in enumerate(cpu_ns)]
    return [sender, sender, *tasks]


def test_measurements_of_all_tasks_are_put_together() -> None:
    found = observed(_reports([10, 20, 30, 40], 500, 700), ROUTE, 2)
    assert found[1].rows == (20, 40, 60, 80)
    assert found[1].cpu_ns == (500.0, 700.0)
    assert found[1].state == (2.0, 2.0, 2.0, 2.0)


def test_planned_requested_and_observed_are_told_apart() -> None:
    balancing = Balancing(RoutingControl(cooldown=1), _stages())
    skewed = _reports([60, 10, 20, 10], 800, 200)
    route = balancing.after(skewed, ROUTE, 2, 2)
    assert route == ROUTE
    assert (balancing.told["planned"], balancing.told["requested"], balancing.told["observed"]) == (1, 0, 0)
    assert balancing.told["lit"] > 0.5
    route = balancing.after(skewed, route, 2, 2)
    assert route == (0, 1, 1, 1)
    assert (balancing.told["requested"], balancing.told["observed"]) == (1, 0)
    assert balancing.told["lit_expected"] < balancing.told["lit"]
    balancing.after(_reports([60, 10, 20, 10], 600, 400), route, 2, 2)
    assert balancing.told["observed"] == 1


def test_without_a_control_the_route_stays_but_imbalance_is_told() -> None:
    balancing = Balancing(None, _stages())
    assert balancing.after(_reports([60, 10, 20, 10], 800, 200), ROUTE, 2, 2) == ROUTE
    assert balancing.told["lit_by_stage"][1] > 0.5


def test_tasks_that_are_added_take_only_what_they_need() -> None:
    after = Balancing(EAGER, _stages()).after(_reports([1, 1, 1, 1], 100, 100), ROUTE, 2, 3)
    assert set(after) == {0, 1, 2}
    assert sum(one != other for one, other in zip(ROUTE, after, strict=True)) == 1


def test_a_key_that_no_routing_can_help_with_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    balancing = Balancing(EAGER, _stages())
    hot = (HotRows(0, ("17",), 80),)
    for _ in range(2):
        balancing.after(_reports([90, 5, 3, 2], 900, 100, hot=hot), ROUTE, 2, 2)
    assert "\n".join(caplog.messages).count("step 'ledger': key '17' has 80% of the events") == 1
    assert "no routing can help" in "\n".join(caplog.messages)
    assert balancing.told["hot_keys"] == [["ledger", "17", 0.8]]


def test_a_wrong_threshold_is_refused_at_once() -> None:
    with pytest.raises(PenstockError, match="chi must be a share above 0"):
        ps.Spark(rebalance=0.0)
    with pytest.raises(PenstockError, match="rebalance must be a share, or None"):
        ps.Spark(rebalance="often")  # type: ignore[arg-type]
    assert ps.Spark(rebalance=None).control is None


# -- on Spark ------------------------------------------------------------------------------------------------

SHOP = ShopSettings(items=300, zipf=1.1, events_per_second=1_000, moves_every_s=3.0, base_us=0)
EVENTS = 9_000


def _app(source: ps.sources.Generator | None = None) -> tuple[ps.App, dict[str, ps.sinks.Memory]]:
    app = ps.App("shop")
    events = app.source("events", source or shop_source(SHOP, EVENTS), event_time=EVENT_TIME)
    queries = {"seals": ledger(events, rounds=1), "views": commcount(events)}
    sinks = {name: ps.sinks.Memory() for name in queries}
    for name, stream in queries.items():
        app.sink(name, stream, sinks[name])
    return app, sinks


def _expected() -> Mapping[str, list[Row]]:
    columns: dict[str, Any] = {
        name: np.zeros(EVENTS, np.int32 if kind == "string" else np.int64) for name, kind in FIELDS
    }
    ShopEvents(SHOP).fill(0, EVENTS, columns, 0)
    words = np.array(["pv", "buy", "cart", "fav"])
    columns["behaviour"] = words[columns["behaviour"]]
    names = [name for name, _ in FIELDS]
    rows = [
        dict(zip(names, values, strict=True))
        for values in zip(*(columns[name].tolist() for name in names), strict=True)
    ]
    return run_reference(_app()[0].graph(), {"events": [rows]})


def test_keys_follow_the_load_and_results_do_not_notice(spark: SparkSession, tmp_path: Path) -> None:
    app, sinks = _app()
    runtime = ps.Spark(
        tasks=2,
        batch_events=1_500,
        rebalance=EAGER,
        checkpoint=tmp_path / "checkpoint",
        progress=tmp_path / "progress.jsonl",
    )
    run = runtime.start(app.graph(), app.name)
    assert run.wait(300.0)
    assert run.finish().complete
    batches = sorted(run.batches, key=lambda batch: batch.batch_id)
    requested = [batch.routing.get("requested", 0) for batch in batches]
    assert sum(requested) >= 1
    # what was requested after a batch is what the next one was observed to run with
    assert [batch.routing["observed"] for batch in batches[1:]] == requested[:-1]
    for name, rows in _expected().items():
        found = sinks[name].rows()
        assert sorted(map(repr, found)) == sorted(map(repr, rows)), name
    _check_owners(tmp_path / "checkpoint" / "state")


def _check_owners(folder: Path) -> None:
    """In every version that is kept each partition has one owner, and all state is somebody's."""
    store = StateStore(folder)
    for version in store.versions():
        manifest = store.load(version)
        routing = manifest.progress["routing"]
        everything = store.read(manifest, None, range(len(routing)))
        owned = [store.read(manifest, None, partitions_of(routing, task)) for task in range(2)]
        for operator, tables in everything.items():
            for name, table in tables.items():
                parts = [part[operator][name].num_rows for part in owned if name in part.get(operator, {})]
                assert sum(parts) == table.num_rows
