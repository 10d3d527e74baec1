"""A graph as checkpoints know it: with the operators that keep its state, whichever runtime runs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import xxhash

from penstock.cep.selections.detection_graph import for_many_tasks
from penstock.operators.by_start import with_instances
from penstock.operators.run.plan import LayoutPlan, plan
from penstock.operators.run.projections import without_plain_projections
from penstock.query.graph import Graph, QueryVertex


class Planned(Protocol):
    """A graph and the columns of every operator in it."""

    @property
    def graph(self) -> Graph: ...

    @property
    def layouts(self) -> LayoutPlan: ...


@dataclass(frozen=True)
class PlannedGraph:
    """Nothing but that."""

    graph: Graph
    layouts: LayoutPlan


def planned(graph: Graph) -> PlannedGraph:
    """The operators that a graph of queries becomes. Selections of existing columns are left out."""
    graph = with_instances(for_many_tasks(without_plain_projections(graph)))
    return PlannedGraph(graph, plan(graph))


def route_of(node: QueryVertex) -> int | None:
    """The hash that all state of an operator without keys goes by; None for one with keys."""
    return None if node.spec.routed_by(0) else route_hash(node.id)


def route_hash(node_id: str) -> int:
    """The hash by which an operator without keys is routed: by its id, so that such operators spread."""
    return xxhash.xxh64_intdigest(node_id.encode()) >> 1
