"""One stage of a graph, built once per worker process and used batch after batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.cep.catalogue import operator_for
from penstock.engine.seat.inline import BatchSource, Inlet, InlineEngine
from penstock.engine.seat.settings import Settings
from penstock.engine.turns.vertex import Vertex
from penstock.memory.coordinator import MemoryCoordinator
from penstock.memory.edges import Edge, Outlet
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.metrics.degree import DegreeMetrics, merged_degrees
from penstock.operators.run.base import Build, Operator
from penstock.query.graph import Input, Port, QueryVertex
from penstock.query.steps import SinkSpec, SourceSpec
from penstock.query.types import DataType, Field
from penstock.spark.batches.exports import PartialCollector, RowShipper, SinkCollector
from penstock.spark.batches.messages import Message, RowFormat, pack_states, unpack_states
from penstock.spark.batches.reports import HotRows, LeftOut, PartitionRows, RoutedReport
from penstock.spark.batches.results import ResultFiles
from penstock.spark.batches.stages import Kind, Stages
from penstock.state.tables import StateTables

_CLOCK = Layout((Field("$clock", DataType.BOOL),))  # nobody writes it: marks alone pass


class StageEngine:
    """The operators of one stage with their inlets and exports.

    ``inlets`` by channel bring events, ``clocks`` by operator only the time: their operators get partial
    states. ``operators`` are those whose state is kept here, ``collectors`` make partial states for the next
    stage.
    """

    def __init__(
        self,
        stages: Stages,
        stage: int,
        settings: Settings,
        on_built: Callable[[int, int], None] | None = None,
        results: str | None = None,
    ) -> None:
        self.stages, self.stage = stages, stage
        self._files = ResultFiles(results)
        self.key = (stages.is_whole, stage)  # what its process knows it by
        self.strings = StringPool()
        self.inlets: dict[int, Outlet] = {}
        self.clocks: dict[frozenset[str], Outlet] = {}
        self.operators: dict[str, Operator] = {}
        self.collectors: dict[str, PartialCollector] = {}
        self.sources: dict[str, Vertex] = {}
        self._shippers: list[tuple[int, RowShipper]] = []
        self._sinks: list[tuple[int, SinkCollector]] = []
        self._formats: dict[int, RowFormat] = {}
        self._late: dict[str, int] = {}
        self._sent: dict[int, NDArray[np.int64]] = {}  # partial states by virtual partition, by stage
        self._busy_told: dict[tuple[int, str], int] = {}
        self._settings = settings
        self._memory = MemoryCoordinator(background=False)
        self._outlets: dict[Input, Outlet] = {}
        self._numbers = {node.id: number for number, node in enumerate(stages.graph.nodes)}
        self._fronts = stages.fronts() if settings.fusion else {}
        self._fused = {node.id for front in self._fronts.values() for node in front}
        vertices = self._build(on_built)
        for vertex in vertices:
            for outlet in vertex.outlets:
                outlet.pool.readers = len(outlet.edges)
        self.engine = InlineEngine(
            vertices, settings.turn_limit, settings.policy, passes=settings.rules.passes
        )
        self._routes = {
            self._numbers[node.id]: route
            for node in (*stages.collectors(stage), *stages.routed(stage))
            if (route := stages.route(node)) is not None
        }

    def number_of(self, node_id: str) -> int:
        """An operator's place in the graph."""
        return self._numbers[node_id]

    def groups_schema(self, node_id: str) -> pa.Schema:
        """The columns of the table that holds a window aggregate's groups."""
        found = self.collectors.get(node_id)
        operator = self.operators[node_id] if found is None else found.operator
        return operator.state_formats[0].schema

    def outlet(self, output: Input) -> Outlet | None:
        """Where the events of an output are written in this stage; None if nobody reads them here."""
        return self._outlets.get(output)

    # -- a batch ---------------------------------------------------------------------------------------------

    def begin(self, owners: NDArray[np.int32], home: int) -> None:
        """A new batch with this routing."""
        self._files.begin()
        self._sent = {}
        for _, shipper in self._shippers:
            shipper.begin(owners, home)

    def receive(self, messages: Iterable[Message]) -> None:
        """Takes in the events and partial states that came for this stage."""
        # The tables of one operator that one task made belong together.
        partial: dict[tuple[int, int], StateTables] = {}
        for message in messages:
            if self.stages.channels[message.tag].kind is Kind.PARTIAL:
                name, found = unpack_states(message.payload)
                for number, table in found:
                    partial.setdefault((message.seq, number), {})[name] = table
            else:
                row_format = self._formats[message.tag]
                batch = row_format.read(message.payload)
                columns = row_format.columns(batch, self.strings)
                self.engine.feed(self.inlets[message.tag], columns, batch.num_rows)
        nodes = self.stages.graph.nodes
        for (_, number), tables in partial.items():
            self.operators[nodes[number].id].merge_state(tables)

    def inlet_watermarks(self, watermark_of: Callable[[frozenset[str]], int]) -> list[tuple[Outlet, int]]:
        """Every inlet with its watermark, given that of a set of sources."""
        stages = self.stages
        marked = [(outlet, watermark_of(sources)) for sources, outlet in self.clocks.items()]
        for channel, outlet in self.inlets.items():
            origin = stages.channels[channel].origin
            assert origin is not None
            marked.append((outlet, watermark_of(stages.graph.sources_above(origin.node))))
        return marked

    def take(self, owners: NDArray[np.int32], home: int, seq: int) -> list[Message]:
        """All that leaves the stage after a batch: rows, partial states, results."""
        out = [
            Message(target, channel, seq, payload)
            for channel, shipper in self._shippers
            for target, payload in shipper.take()
        ]
        if self.collectors:
            channel = self.stages.channel(Kind.PARTIAL, self.stage + 1)
            states: dict[int, StateTables] = {}
            for name, collector in self.collectors.items():
                tables, late = collector.take()
                if tables:
                    states[self._numbers[name]] = tables
                self.count_late(name, late)
            sent = self._sent[self.stage + 1] = np.zeros(len(owners), np.int64)
            out += [
                Message(target, channel, seq, payload)
                for target, payload in pack_states(states, self._routes, owners, sent)
            ]
        # With one task all of it goes to one process, which may be the driver; else a shuffle takes rows.
        moved = [] if int(owners.max()) > 0 else out
        for channel, sink in self._sinks:
            moved += [Message(home, channel, seq, payload) for payload in sink.take()]
        payloads = self._files.settled([message.payload for message in moved])
        self._files.begin()
        moved = [message._replace(payload=payload) for message, payload in zip(moved, payloads, strict=True)]
        return moved if int(owners.max()) == 0 else out + moved

    def routed(self) -> RoutedReport:
        """What left in the newest batch by stage and virtual partition, and keys that are too hot for any
        task."""
        sent = {stage: counts.copy() for stage, counts in self._sent.items()}
        hot: list[HotRows] = []
        for channel, shipper in self._shippers:
            what = self.stages.channels[channel]
            if what.keys is None:
                continue
            known = sent.get(what.stage)
            sent[what.stage] = shipper.rows if known is None else known + shipper.rows
            if shipper.hot is not None:
                key, rows = shipper.hot
                hot.append(HotRows(channel, key, rows))
        return RoutedReport(
            {stage: PartitionRows.of(counts) for stage, counts in sent.items()},
            {channel: int(shipper.rows.sum()) for channel, shipper in self._shippers},
            tuple(hot),
        )

    def busy_ns(self) -> dict[str, int]:
        """How long each operator was at work since the last call."""
        found: dict[str, int] = {}
        for vertex in self.engine.vertices:
            steps = vertex.operator.front.steps if vertex.operator.front is not None else []
            others = {step.node.step or step.node.id: step.busy_ns for step in steps}
            others.pop(vertex.operator.step, None)
            rest_ns = vertex.counters.busy_ns - sum(others.values())
            for step, total_ns in {**others, vertex.operator.step: rest_ns}.items():
                busy_ns = total_ns - self._busy_told.get((vertex.index, step), 0)
                self._busy_told[vertex.index, step] = total_ns
                if busy_ns > 0:
                    found[step] = found.get(step, 0) + busy_ns
        return found

    def degrees(self) -> dict[str, DegreeMetrics]:
        """The degree of each step that has instances, as far as this task knows it."""
        return merged_degrees((one.step, one.degree) for one in self.operators.values())

    def left_out(self) -> LeftOut:
        """Events since the last call that were late, and those that functions failed for, by step."""
        failed: dict[str, int] = {}
        for vertex in self.engine.vertices:
            operator = vertex.operator
            if operator.failed_events:
                failed[operator.step] = failed.get(operator.step, 0) + operator.failed_events
                operator.failed_events = 0
        return LeftOut(self._late_events(), failed)

    def _late_events(self) -> dict[str, int]:
        for operator in self.operators.values():
            self.count_late(operator.step, operator.late_events)
            operator.late_events = 0
        found, self._late = self._late, {}
        return found

    def count_late(self, name: str, events: int) -> None:
        """Notes late events that an operator, or Spark for it, has left out."""
        if events:
            self._late[name] = self._late.get(name, 0) + events

    # -- building --------------------------------------------------------------------------------------------

    def _build(self, on_built: Callable[[int, int], None] | None) -> list[Vertex]:
        stages, stage = self.stages, self.stage
        vertices: list[Vertex] = []
        for channel, what in enumerate(stages.channels):
            if what.kind is Kind.ROWS and what.stage == stage:
                assert what.origin is not None
                layout = stages.layouts.layouts[what.origin.node, what.origin.port]
                self._formats[channel] = RowFormat.of(layout)
                self.inlets[channel] = self._inlet(vertices, stages.graph[what.origin.node], layout)
        for position, node in enumerate(stages.graph.nodes):
            self._add(node, vertices)
            if on_built is not None:
                on_built(position + 1, len(stages.graph))
        for channel, what in enumerate(stages.channels):
            if what.kind is Kind.ROWS and what.origin_stage == stage:
                assert what.origin is not None
                origin = self._outlets[what.origin]
                build = Build(stages.graph[what.origin.node], (origin.layout,), {}, self.strings)
                shipper = RowShipper(build, what)
                self._shippers.append((channel, shipper))
                vertices.append(Vertex(len(vertices), shipper, [(0, origin.connect())], {}))
        return vertices

    def _add(self, node: QueryVertex, vertices: list[Vertex]) -> None:
        """The vertex, or the vertices, that a node has in this stage: perhaps none."""
        stages, stage = self.stages, self.stage
        if node.id in self._fused:
            return
        whole = self._build_of(node)
        front = tuple(self._build_of(step) for step in self._fronts.get(node.id, ()))
        build = replace(whole, front=front)
        here = stages.stage_of[node.id] == stage
        if node.id in stages.partial:
            if stages.stage_of[node.id] == stage + 1:  # its partial states are made here
                late: dict[Port, Layout] = dict(build.outputs)
                late.pop(Port.MAIN, None)
                self.collectors[node.id] = collector = PartialCollector(build, operator_for(build))
                self._vertex(vertices, collector, self._edges(build.first), late)
            elif here and Port.MAIN in build.outputs:
                self.operators[node.id] = operator = operator_for(whole)  # what comes is merged
                clock = self._clock(vertices, node).connect()
                self._vertex(vertices, operator, [(0, clock)], {Port.MAIN: build.outputs[Port.MAIN]})
        elif isinstance(node.spec, SourceSpec):
            if here:
                vertex = self._vertex(vertices, BatchSource(build), [], build.outputs)
                vertex.finished = True  # until it is given something to read
                self.sources[node.id] = vertex
        elif isinstance(node.spec, SinkSpec):
            if here:
                sink = SinkCollector(build, self._files)
                channel = next(i for i, c in enumerate(stages.channels) if c.sink == node.id)
                self._sinks.append((channel, sink))
                self._vertex(vertices, sink, self._edges(node), {})
        elif here:
            operator = operator_for(build)
            if any(routed.id == node.id for routed in stages.routed(stage)):
                self.operators[node.id] = operator
            self._vertex(vertices, operator, self._edges(build.first), build.outputs)

    def _build_of(self, node: QueryVertex) -> Build:
        layouts = self.stages.layouts
        return Build(node, layouts.inputs(node), layouts.outputs(node), self.strings)

    def _vertex(
        self,
        vertices: list[Vertex],
        operator: Operator,
        edges: list[tuple[int, Edge]],
        outputs: dict[Port, Layout],
    ) -> Vertex:
        mine: dict[Port, Outlet] = {}
        for port, layout in outputs.items():
            mine[port] = self._outlet(layout, operator.fan_out)
            self._outlets[Input(operator.node.id, port)] = mine[port]
        vertex = Vertex(len(vertices), operator, edges, mine)
        vertices.append(vertex)
        return vertex

    def _edges(self, node: QueryVertex) -> list[tuple[int, Edge]]:
        edges: list[tuple[int, Edge]] = []
        for index, source in enumerate(node.inputs):
            channel = self.stages.carried.get((node.id, index))
            outlet = self._outlets[source] if channel is None else self.inlets[channel]
            edges.append((index, outlet.connect()))
        return edges

    def _inlet(self, vertices: list[Vertex], node: QueryVertex, layout: Layout) -> Outlet:
        outlet = self._outlet(layout, 1)
        inlet = Inlet(Build(node, (), {Port.MAIN: layout}, self.strings))
        vertices.append(Vertex(len(vertices), inlet, [], {Port.MAIN: outlet}))
        return outlet

    def _clock(self, vertices: list[Vertex], node: QueryVertex) -> Outlet:
        sources = self.stages.graph.sources_above(node.id)
        if sources not in self.clocks:
            self.clocks[sources] = self._inlet(vertices, node, _CLOCK)
        return self.clocks[sources]

    def _outlet(self, layout: Layout, fan_out: int) -> Outlet:
        settings = self._settings
        pool = self._memory.pool(settings.shape(layout, fan_out), limit=settings.max_chunks, readers=0)
        return Outlet(layout, pool)
