"""A keyed operator in several tasks: a splitter in front of them, and what connects the two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from penstock.cep.catalogue import operator_for
from penstock.engine.keyed.migration import Exchange
from penstock.engine.keyed.splitter import SPLIT, Splitter
from penstock.engine.keyed.task import Task
from penstock.engine.seat.settings import Settings
from penstock.engine.turns.vertex import Vertex
from penstock.memory.edges import Edge, Outlet
from penstock.memory.layout import Layout
from penstock.operators.run.base import Build, Operator
from penstock.query.graph import QueryVertex


def is_splittable(node: QueryVertex) -> bool:
    """Whether an operator keeps state by key, so that several tasks can share its keys."""
    return node.spec.is_routed and all(node.spec.routed_by(index) for index in range(len(node.inputs)))


@dataclass(frozen=True)
class Parallel:
    """The parts of one operator: its splitter's vertex, its tasks, and each task's edges."""

    vertex: Vertex
    splitter: Splitter
    exchange: Exchange
    tasks: list[Operator]
    feeding: list[list[tuple[int, Edge]]]

    def connect(self, vertices: list[Vertex]) -> None:
        """Tells the splitter and the tasks of the tasks' vertices."""
        self.exchange.call = lambda task: vertices[task].call()
        self.splitter.counters = lambda: [
            (vertex.counters.processed, vertex.counters.busy_ns) for vertex in vertices
        ]


def in_parallel(
    build: Build,
    settings: Settings,
    edges: list[tuple[int, Edge]],
    outlet: Callable[[Layout], Outlet],
    index: int,
) -> Parallel:
    """Splits an operator: ``edges`` are its inputs, ``outlet`` makes one with a single reader, ``index`` is
    the number of the next vertex."""
    exchange = Exchange(settings.tasks)
    named = replace(build, node=replace(build.node, id=build.node.id + SPLIT), outputs={})
    partitions = settings.virtual_partitions
    splitter = Splitter(
        named, exchange, partitions, settings.control, settings.rebalance_every_s, settings.force_route
    )
    outlets: dict[Any, Outlet] = {
        (number, task): outlet(layout)
        for number, layout in enumerate(build.inputs)
        for task in range(settings.tasks)
    }
    vertex = Vertex(index, splitter, edges, outlets)
    return Parallel(
        vertex,
        splitter,
        exchange,
        [Task(build, operator_for(build), task, exchange, partitions) for task in range(settings.tasks)],
        [
            [(number, outlets[number, task].connect()) for number in range(len(build.inputs))]
            for task in range(settings.tasks)
        ],
    )
