"""Keyed operators in several tasks, whose partitions move while events flow: the rows of the reference."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import penstock as ps
from lab.workloads.shop.data import ShopSettings
from lab.workloads.shop.query import ledger
from lab.workloads.shop.source import EVENT_TIME, shop_source
from penstock.binding.catalogue import BINDINGS
from penstock.engine.keyed.migration import Exchange, Migration
from penstock.engine.seat.summary import NodeSummary
from penstock.query.errors import PenstockError
from penstock.routing.control import RoutingControl
from penstock.routing.route import Move, Route, moves_between
from penstock.scheduling.catalogue import POLICIES
from tests.engine.test_equivalence import check_run
from tests.graphs.graph_strategies import CATALOGUE, Drawn, few, random_graphs

PARTITIONS = 16


def moving(tasks: int, number: int) -> Callable[[Route], Route]:
    """Some partitions change their owners at every look."""
    choose = random.Random(number)

    def force(route: Route) -> Route:
        return tuple(choose.randrange(tasks) if choose.random() < 0.4 else owner for owner in route)

    return force


@st.composite
def parallel_nodes(draw: st.DrawFn) -> ps.Node:
    tasks = draw(st.integers(2, 4))
    return ps.Node(
        tasks=tasks,
        virtual_partitions=PARTITIONS,
        rebalance_every_s=0.0,
        force_route=moving(tasks, draw(st.integers(0, 2**16))),
        workers=draw(st.integers(1, 3)),
        binding=draw(st.sampled_from([None, *sorted(BINDINGS)])),
        rebind_every_s=0.001,
        scheduling=draw(st.sampled_from(sorted(POLICIES))),
        memory=draw(st.sampled_from(["blocks", "blocks", "queues"])),
        block_events=draw(st.sampled_from([4, 16, 64, 1024])),
        max_chunks=draw(st.integers(2, 4)),
        turn_blocks=draw(st.integers(1, 3)),
        source_batch=draw(st.one_of(st.none(), st.integers(1, 40))),
    )


#: Kernels are compiled for every graph, so the others are for the slow run.
_QUICK = {"aggregate", "deduplicate", "interval join", "late", "process"}


@pytest.mark.parametrize(
    "name", [name if name in _QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CATALOGUE]
)
def test_every_operator_gives_the_rows_of_the_reference_while_its_keys_move(name: str) -> None:
    @settings(max_examples=3)
    @given(few(name), parallel_nodes(), st.booleans())
    def check(one: Drawn, node: ps.Node, share: bool) -> None:
        check_run(one, node, share)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_random_graphs_give_the_rows_of_the_reference_while_keys_move(part: int) -> None:
    @seed(part)
    @settings(settings.get_profile("thorough"), max_examples=10)
    @given(random_graphs, parallel_nodes(), st.booleans())
    def check(one: Drawn, node: ps.Node, share: bool) -> None:
        check_run(one, node, share)

    check()


SHOP = ShopSettings(items=200, zipf=1.0, events_per_second=2_000, base_us=0)


def sealed(node: ps.Node, events: int = 8_000) -> tuple[list[tuple[int, int, int]], NodeSummary]:
    app, sink = ps.App("shop"), ps.sinks.Memory()
    shop = app.source("events", shop_source(SHOP, events), event_time=EVENT_TIME)
    app.sink("out", ledger(shop, rounds=1), sink)
    summary = app.run(on=node)
    return sorted((row["item_id"], row["number"], row["seal"]) for row in sink.rows()), summary


def test_keys_follow_the_load_and_the_metrics_say_so() -> None:
    eager = RoutingControl(chi=0.05, cooldown=0, least_gain=0.0)
    node = ps.Node(tasks=2, workers=2, block_events=64, rebalance=eager, rebalance_every_s=0.0)
    rows, summary = sealed(node)
    assert rows == sealed(ps.Node(workers=1))[0]
    told = summary.metrics.routing["ledger"]
    assert told.tasks == 2
    assert sum(told.rows) == 8_000
    assert told.observed == told.requested >= 1
    assert told.planned >= told.requested
    assert summary.metrics["ledger"].processed == 8_000


def test_a_key_that_no_routing_can_help_with_is_named(caplog: pytest.LogCaptureFixture) -> None:
    app, sink = ps.App("hot"), ps.sinks.Memory()
    rows = {"ts": list(range(6_000)), "k": [7 if number % 5 else number for number in range(6_000)]}
    source = ps.sources.Columns(rows, {"ts": "timestamp", "k": "int64"})
    first = app.source("numbers", source, event_time="ts").deduplicate("k", name="first")
    app.sink("out", first, sink)
    eager = RoutingControl(chi=0.1, cooldown=0)
    node = ps.Node(tasks=2, block_events=512, workers=1, rebalance=eager, rebalance_every_s=0.0)
    summary = app.run(on=node)
    assert len(sink.rows()) == 1_201
    assert summary.metrics.routing["first"].hot_keys[7] == pytest.approx(0.8, abs=0.05)
    assert caplog.text.count("step 'first': key 7 has 80% of the events") == 1
    assert "no routing can help" in caplog.text


def test_without_rebalancing_nothing_moves() -> None:
    _, summary = sealed(ps.Node(tasks=3, workers=1, rebalance=None), 2_000)
    told = summary.metrics.routing["ledger"]
    assert (told.planned, told.requested, told.observed) == (0, 0, 0)


def test_a_migration_says_who_gives_what_to_whom() -> None:
    moves = (Move(0, 0, 1), Move(2, 0, 2), Move(5, 1, 2))
    migration = Migration(1, moves, (1, 1, 2, 0, 0, 2))
    assert migration.given_by(0) == {1: [0], 2: [2]}
    assert migration.received_by(2) == {0: [2], 1: [5]}
    assert migration.given_by(2) == {}


def test_an_exchange_is_busy_until_every_receiver_has_taken_over() -> None:
    called: list[int] = []
    exchange = Exchange(3, called.append)
    exchange.begin(Migration(1, moves_between((0, 0, 1), (1, 2, 2)), (1, 2, 2)))
    assert exchange.is_busy
    exchange.send(1, 1, {})
    exchange.send(2, 1, {})
    assert called == [1, 2]
    assert (exchange.arrived(1, 1), exchange.arrived(2, 1)) == (1, 1)
    assert exchange.take(1, 1) == [{}]
    exchange.done(1)
    assert exchange.is_busy
    exchange.done(2)
    assert not exchange.is_busy
    assert exchange.observed == 3


def test_tasks_need_workers_that_operators_are_given_to() -> None:
    with pytest.raises(PenstockError, match="keys are shared by tasks only where operators are given to"):
        ps.Node(tasks=2, threads="per_operator")
    with pytest.raises(PenstockError, match="more tasks than virtual partitions"):
        ps.Node(tasks=65)
    with pytest.raises(PenstockError, match="rebalance must be a share"):
        ps.Node(rebalance="often")  # type: ignore[arg-type]
