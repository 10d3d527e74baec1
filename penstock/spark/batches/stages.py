"""Cuts a graph into stages: what runs where the data is read, and what runs where a key's state is.

Stage 0 runs beside the sources. A routed operator stands one stage behind its inputs, and what follows it
without another routing stands with it. Between two stages rows, or partial states, travel on channels.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from penstock.checkpoints.planned import planned, route_hash, route_of
from penstock.connectors.reader import NodeSource
from penstock.operators.run.fusion import fronts
from penstock.operators.run.plan import LayoutPlan
from penstock.query.graph import Graph, Input, Port, QueryVertex
from penstock.query.steps import SinkSpec, SourceSpec


class Kind(Enum):
    """What a channel carries."""

    ROWS = "rows"  # events of one output, by key or to wherever
    PARTIAL = "partial"  # partial states of mergeable operators, all in one
    SINK = "sink"  # results of one query
    CONTROL = "control"  # how far the sources have come
    REPORT = "report"  # what a task has done: its state file, its metrics


@dataclass(frozen=True)
class Channel:
    """One kind of message. Its number is its place in ``Stages.channels``."""

    kind: Kind
    stage: int  # where it is read; the driver reads as the stage behind the last
    origin: Input | None = None  # ROWS: the output whose events travel
    origin_stage: int = 0
    keys: tuple[str, ...] | None = None  # ROWS: routed by these columns; None: to wherever
    route: int | None = None  # ROWS without key columns: the one hash that all events are routed by
    sink: str = ""  # SINK: the query


@dataclass(frozen=True)
class Stages:
    """A graph with the stage of every operator, and the channels between stages."""

    graph: Graph
    layouts: LayoutPlan
    stage_of: dict[str, int]
    partial: frozenset[str]  # routed operators that get partial states instead of events
    channels: tuple[Channel, ...]
    #: Per (operator, number of its input): the channel that brings its events, where one does.
    carried: dict[tuple[str, int], int]
    is_whole: bool = False  # nothing is cut: all operators stand in stage 0

    @property
    def count(self) -> int:
        """How many stages there are behind stage 0."""
        return max(self.stage_of.values(), default=0)

    @property
    def driver(self) -> int:
        """The number under which the driver reads."""
        return self.count + 1

    def output_stage(self, source: Input) -> int:
        """Where an output's events come into being: late ones are told apart before partial states are
        made."""
        stage = self.stage_of[source.node]
        is_early = source.node in self.partial and source.port is Port.LATE
        return stage - 1 if is_early else stage

    def routed(self, stage: int) -> list[QueryVertex]:
        """The operators with state that stand in a stage."""
        return [n for n in self.graph.nodes if self.stage_of[n.id] == stage and n.spec.is_routed]

    def collectors(self, stage: int) -> list[QueryVertex]:
        """Mergeable operators whose partial states are made in a stage, for the next."""
        return [n for n in self.graph.nodes if n.id in self.partial and self.stage_of[n.id] == stage + 1]

    def channel(self, kind: Kind, stage: int) -> int:
        """The number of the one channel of a kind that a stage reads."""
        return next(i for i, c in enumerate(self.channels) if c.kind is kind and c.stage == stage)

    def route(self, node: QueryVertex) -> int | None:
        """The hash that all state of an operator without keys goes by; None for one with keys."""
        return route_of(node)

    def fronts(self) -> dict[str, tuple[QueryVertex, ...]]:
        """By the id of an operator: the steps that run in its kernels. What Spark may hand over the rows of,
        or what travels between stages, is apart: it has to be written."""

        def apart(before: QueryVertex, reader: QueryVertex) -> bool:
            return (reader.id, 0) in self.carried or not all(
                isinstance(self.graph[source].spec_as(SourceSpec).source, NodeSource)
                for source in self.graph.sources_above(before.id)
            )

        return fronts(self.graph, apart)


def cut(graph: Graph) -> Stages:
    """The stages of a graph. Selections of existing columns are left out, as the node engine does."""
    known = planned(graph)
    graph = known.graph
    partial = frozenset(node.id for node in graph if node.spec.merges())
    stage_of: dict[str, int] = {}
    stages = Stages(graph, known.layouts, stage_of, partial, (), {})
    for node in graph.nodes:
        reached = max((stages.output_stage(source) for source in node.inputs), default=0)
        stage_of[node.id] = reached + node.spec.is_routed
    channels: list[Channel] = []
    carried: dict[tuple[str, int], int] = {}
    for node in graph.nodes:
        if node.id in partial:
            continue
        for index, source in enumerate(node.inputs):
            stage = stage_of[node.id]
            routed = node.spec.is_routed
            origin_stage = stages.output_stage(source)
            if origin_stage == stage and not routed:
                continue
            keys = node.spec.routed_by(index) if routed else None
            route = route_hash(node.id) if keys == () else None
            channel = Channel(Kind.ROWS, stage, source, origin_stage, keys, route)
            if channel not in channels:
                channels.append(channel)
            carried[node.id, index] = channels.index(channel)
    driver = stages.count + 1
    for stage in range(1, driver):
        channels += [Channel(Kind.PARTIAL, stage), Channel(Kind.CONTROL, stage)]
    channels += [Channel(Kind.CONTROL, driver), Channel(Kind.REPORT, driver)]
    channels += [Channel(Kind.SINK, driver, sink=n.id) for n in graph if isinstance(n.spec, SinkSpec)]
    return Stages(graph, stages.layouts, stage_of, partial, tuple(channels), carried)


def whole(stages: Stages) -> Stages:
    """The same graph in one piece, for a batch that one task reads and works on alone."""
    graph = stages.graph
    channels = [Channel(Kind.CONTROL, 1), Channel(Kind.REPORT, 1)]
    channels += [Channel(Kind.SINK, 1, sink=n.id) for n in graph if isinstance(n.spec, SinkSpec)]
    stage_of = dict.fromkeys((node.id for node in graph), 0)
    return Stages(graph, stages.layouts, stage_of, frozenset(), tuple(channels), {}, is_whole=True)
