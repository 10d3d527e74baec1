"""What keyed operators cost on this machine, for the simulation of 16 tasks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lab.sim.routing import RowCosts
from lab.workloads.shop.data import ShopSettings
from lab.workloads.shop.query import commcount, ledger, top_n
from lab.workloads.shop.source import EVENT_TIME, shop_source
from penstock.app import App
from penstock.cep.catalogue import operator_for
from penstock.connectors.memory.discard import Discard
from penstock.engine.node import Node
from penstock.memory.edges import START_OF_TIME
from penstock.memory.strings import StringPool
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.plan import plan
from penstock.query.graph import Graph
from penstock.query.steps import WindowAggregateSpec
from penstock.query.stream.stream import Stream


@dataclass(frozen=True)
class SkewCosts:
    """In ns: an event of the ledger; one that is counted; a partial count that is merged; a count that is
    ranked; a key's state that is written, or read."""

    ledger_ns: float
    count_ns: float
    merge_ns: float
    rank_ns: float
    moved_ns: float

    @property
    def ledger(self) -> RowCosts:
        return RowCosts(self.ledger_ns, moved_ns=self.moved_ns)

    @property
    def commcount(self) -> RowCosts:
        return RowCosts(self.count_ns, self.merge_ns, moved_ns=self.moved_ns)

    @property
    def top_n(self) -> RowCosts:
        """Whatever the grouping, every item's count is ranked."""
        return RowCosts(self.count_ns, self.merge_ns, self.rank_ns, self.moved_ns)


def shop_graph(build: Callable[[Stream], Stream], settings: ShopSettings, events: int) -> Graph:
    """A query over so many events of the shop, whose results nobody keeps."""
    app = App("skew")
    stream = app.source("events", shop_source(settings, events), event_time=EVENT_TIME)
    app.sink("out", build(stream), Discard())
    return app.graph()


def measure_costs(rounds: int, repetitions: int = 3) -> SkewCosts:
    """The least of several runs each; ``rounds`` is the work of the ledger."""
    settings = ShopSettings(zipf=0.5, events_per_second=200_000)
    heavy = shop_graph(lambda events: ledger(events, rounds), settings, 20_000)
    counting = shop_graph(commcount, settings, 1_000_000)
    ranking = shop_graph(top_n, settings, 1_000_000)
    merge_ns, moved_ns = _state_costs(counting, repetitions)
    return SkewCosts(
        ledger_ns=_cost_ns(heavy, "process", repetitions),
        count_ns=_cost_ns(counting, "agg", repetitions),
        merge_ns=merge_ns,
        rank_ns=_cost_ns(ranking, "top", repetitions),
        moved_ns=moved_ns,
    )


def _cost_ns(graph: Graph, kind: str, repetitions: int) -> float:
    """An event of the operators of a kind, at best."""
    found: list[float] = []
    for _ in range(repetitions + 1):  # the first one compiles
        metrics = Node(workers=1).run(graph).metrics
        timed = [operator for operator in metrics.operators if operator.kind == kind]
        found.append(sum(one.busy_ns for one in timed) / max(1, sum(one.processed for one in timed)))
    return min(found[1:])


def _state_costs(graph: Graph, repetitions: int) -> tuple[float, float]:
    """A group of the count: merged into a state that has it, and written and read, on average."""
    layouts = plan(graph)
    node = next(node for node in graph.nodes if isinstance(node.spec, WindowAggregateSpec))
    strings = StringPool()
    build = Build(node, layouts.inputs(node), layouts.outputs(node), strings)
    groups = 20_000
    merges: list[float] = []
    moves: list[float] = []
    for _ in range(repetitions + 1):
        one, other = _filled(build, groups), _filled(build, groups)
        began_ns = time.perf_counter_ns()
        tables = one.export_state()
        exported_ns = time.perf_counter_ns()
        other.merge_state(tables)
        merged_ns = time.perf_counter_ns()
        one.reset()
        reset_ns = time.perf_counter_ns()
        one.import_state(tables, START_OF_TIME)
        imported_ns = time.perf_counter_ns()
        merges.append((merged_ns - exported_ns) / groups)
        moves.append((exported_ns - began_ns + imported_ns - reset_ns) / 2 / groups)
    return min(merges[1:]), min(moves[1:])


def _filled(build: Build, groups: int) -> Operator:
    operator = operator_for(build)
    layout = build.inputs[0]
    columns = tuple(np.zeros(groups, dtype) for dtype in layout.dtypes)
    columns[layout.data("item_id")][:] = np.arange(groups)
    operator.attach({})
    operator.consume(0, columns, 0, groups)
    return operator
