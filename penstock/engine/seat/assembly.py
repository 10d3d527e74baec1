"""From a graph to vertices: operators are built, outlets get their memory, edges connect them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from penstock.cep.catalogue import operator_for
from penstock.cep.selections.detection_graph import for_one_process
from penstock.connectors.reader import NodeSource
from penstock.engine.epochs.kept_run import KeptRun
from penstock.engine.epochs.sink import EpochSink
from penstock.engine.epochs.source import RangedSource
from penstock.engine.keyed.parallel import Parallel, in_parallel, is_splittable
from penstock.engine.seat.settings import Settings
from penstock.engine.turns.sink import SinkOperator
from penstock.engine.turns.source import SourceOperator
from penstock.engine.turns.vertex import Vertex
from penstock.memory.coordinator import MemoryCoordinator
from penstock.memory.edges import Edge, Outlet
from penstock.memory.layout import Layout
from penstock.memory.queues import BatchPool, QueueOutlet
from penstock.memory.strings import StringPool
from penstock.operators.by_start import with_instances
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.fusion import fronts
from penstock.operators.run.plan import plan
from penstock.operators.run.projections import without_plain_projections
from penstock.query.errors import QueryError
from penstock.query.graph import Graph, Port, QueryVertex
from penstock.query.steps import MatchSetSpec, SinkSpec, SourceSpec


def assemble(
    graph: Graph,
    settings: Settings,
    memory: MemoryCoordinator,
    on_built: Callable[[int, int], None] | None = None,
    kept: KeptRun | None = None,
) -> list[Vertex]:
    """The graph's vertices, in its order, ready for their first turn once sources and sinks are opened.

    ``on_built(done, all)`` is told of every operator, since a cold start compiles kernels for a while. With a
    checkpoint the operators are those that all runtimes can go on from, and have their state.
    """
    if kept is None:
        graph = as_run(graph)
        layouts = plan(graph, prune_sources=settings.prune_sources)
    else:
        graph, layouts = kept.plan.graph, kept.plan.layouts
    for node in graph.nodes:
        if isinstance(node.spec, MatchSetSpec):
            node.spec.patterns.taken_over(list, None)  # a set may have been in another run before
    in_front = fused_fronts(graph, settings)
    fused = {node.id for front in in_front.values() for node in front}
    strings = StringPool()
    outlets: dict[tuple[str, Port], list[Outlet]] = {}
    vertices: list[Vertex] = []
    for position, node in enumerate(graph.nodes):
        if node.id in fused:
            continue
        front = tuple(
            Build(step, layouts.inputs(step), layouts.outputs(step), strings)
            for step in in_front.get(node.id, ())
        )
        build = Build(node, layouts.inputs(node), layouts.outputs(node), strings, front)
        parts: Parallel | None = None
        if settings.tasks > 1 and is_splittable(node):
            make = partial(_outlet, settings, memory, fan_out=1, readers=1)
            parts = in_parallel(build, settings, _edges(node, outlets), make, len(vertices))
            vertices.append(parts.vertex)
        first = len(vertices)
        for number, operator in enumerate(
            _instances(build, settings, kept) if parts is None else parts.tasks
        ):
            mine: dict[Port, Outlet] = {}
            for port, layout in build.outputs.items():
                readers = len(graph.consumers(node.id, port))
                mine[port] = _outlet(settings, memory, layout, operator.fan_out, readers)
                outlets.setdefault((node.id, port), []).append(mine[port])
            edges = parts.feeding[number] if parts is not None else _edges(build.first, outlets)
            vertices.append(Vertex(len(vertices), operator, edges, mine))
        if parts is not None:
            parts.connect(vertices[first:])
        if on_built is not None:
            on_built(position + 1, len(graph))
    _connect_readers(vertices)
    if settings.turn_log is not None:
        for vertex in vertices:
            vertex.counters = settings.turn_log.counters(vertex.operator)
    if kept is not None:
        kept.attach(vertices)
    return vertices


def as_run(graph: Graph) -> Graph:
    """The graph whose operators run."""
    return with_instances(for_one_process(without_plain_projections(graph)))


def fused_fronts(graph: Graph, settings: Settings) -> dict[str, tuple[QueryVertex, ...]]:
    """By the id of an operator: the steps that run in its kernels."""

    def apart(before: QueryVertex, reader: QueryVertex) -> bool:
        # Tasks get their events from a splitter, so that these have to be written.
        return settings.tasks > 1 and is_splittable(reader)

    return fronts(graph, apart) if settings.fusion else {}


def _edges(node: QueryVertex, outlets: Mapping[tuple[str, Port], list[Outlet]]) -> list[tuple[int, Edge]]:
    """New places in all that a node reads."""
    return [
        (index, outlet.connect())
        for index, source in enumerate(node.inputs)
        for outlet in outlets[source.node, source.port]
    ]


def _outlet(
    settings: Settings, memory: MemoryCoordinator, layout: Layout, fan_out: int, readers: int
) -> Outlet:
    """Where one operator writes: blocks from a pool, or fresh batches of the same size and number."""
    shape = settings.shape(layout, fan_out)
    if settings.memory == "blocks":
        return Outlet(layout, memory.pool(shape, limit=settings.max_chunks, readers=readers))
    batches = BatchPool(memory, replace(shape, blocks=1), settings.max_chunks * shape.blocks, readers)
    memory.add_pool(batches)
    return QueueOutlet(layout, batches)


def _instances(build: Build, settings: Settings, kept: KeptRun | None) -> list[Operator]:
    """The operators that run a node: one, or for a source with several partitions up to one per worker."""
    node = build.node
    if isinstance(node.spec, SourceSpec):
        if not isinstance(node.spec.source, NodeSource):
            raise QueryError(
                "this source cannot be read without Spark",
                step=node.id,
                detail=f"is a {type(node.spec.source).__name__}",
                hint="run the app on Spark, or read it with one of Penstock's own sources",
                origin=node.origin,
            )
        count = min(node.spec.source.partitions, settings.worker_count)
        batch, every_ms = settings.source_batch, settings.marker_every_ms
        kind = SourceOperator if kept is None else RangedSource
        return [kind(build, batch, (i, count), every_ms) for i in range(count)]
    if isinstance(node.spec, SinkSpec):
        return [SinkOperator(build) if kept is None else EpochSink(build)]
    return [operator_for(build)]


def _connect_readers(vertices: list[Vertex]) -> None:
    reading = {id(edge): vertex for vertex in vertices for edge in vertex.edges}
    for vertex in vertices:
        vertex.readers = tuple(reading[id(edge)] for outlet in vertex.outlets for edge in outlet.edges)
        for outlet in vertex.outlets:
            # A sink does not look at the time: without watermarks it needs a turn only when it gets rows.
            readers = [reading[id(edge)].operator for edge in outlet.edges]
            outlet.carries_watermarks = not all(isinstance(reader, SinkOperator) for reader in readers)
