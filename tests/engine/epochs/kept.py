"""Runs with a checkpoint that are cut often and ended at random: sources give out so many events an epoch,
and go on when it counts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.connectors.reader import NodeSource, Positions, Reader, Resume
from penstock.engine.epochs.kept_run import KeptRun
from penstock.engine.seat.execution import Execution
from penstock.engine.seat.summary import Summary
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.graph import Graph
from penstock.query.steps import SourceSpec
from penstock.query.types import Schema

FOR_EVER_S = 60.0


class Portions:
    """How far each partition of each source may be read by now."""

    def __init__(self, choose: random.Random, most: int = 40) -> None:
        self._choose, self._most = choose, most
        self._sources: list[Portioned] = []

    def of(self, source: NodeSource) -> Portioned:
        """The source, given out in portions."""
        self._sources.append(Portioned(source))
        return self._sources[-1]

    def more(self) -> None:
        """An epoch counts: the next portion."""
        for source in self._sources:
            for partition in range(source.partitions):
                if self._choose.random() < 0.7:
                    source.allowed[partition] += self._choose.randint(0, self._most)


class Portioned(NodeSource):
    """Another source, of which only a part is there yet."""

    def __init__(self, source: NodeSource) -> None:
        self.source = source
        self.allowed = [0] * source.partitions

    @property
    def schema(self) -> Schema:
        return self.source.schema

    @property
    def ordered(self) -> bool:
        return self.source.ordered

    @property
    def partitions(self) -> int:
        return self.source.partitions

    @property
    def bounded(self) -> bool:
        return self.source.bounded

    def open(self, layout: Layout, strings: StringPool) -> list[Reader]:
        return self.source.open(layout, strings)

    def positions(self, journal: str | None = None, start: Sequence[int] | None = None) -> Positions:
        return _Portioned(self, self.source.positions(journal, start))

    def open_range(
        self,
        partition: int,
        resume: Resume,
        end: int,
        layout: Layout,
        strings: StringPool,
        hint: Any = None,
    ) -> Reader:
        return self.source.open_range(partition, resume, end, layout, strings, hint)


class _Portioned(Positions):
    def __init__(self, source: Portioned, inner: Positions) -> None:
        self._source, self._inner = source, inner

    @property
    def final(self) -> list[int] | None:
        return self._inner.final

    def latest(self, start: Sequence[int], limit: int | None) -> list[int]:
        ends = self._inner.latest(start, limit)
        return [
            max(begin, min(end, allowed))
            for begin, end, allowed in zip(start, ends, self._source.allowed, strict=True)
        ]

    def describe(self, partition: int, start: int, end: int) -> Any:
        return self._inner.describe(partition, start, end)


def begun(graph: Graph, node: ps.Node, folder: Path, portions: Portions) -> tuple[Execution, KeptRun]:
    """A run that has not started."""
    kept = KeptRun(graph, folder, 1e-6, node.virtual_partitions, node.keep_versions)
    try:
        execution = Execution(graph, node, kept=kept)
    except BaseException:
        kept.finish(counts=False)
        raise
    kept.after_commit = lambda epoch: portions.more()
    return execution, kept


def run_with_kills(
    graph: Graph, nodes: Sequence[ps.Node], folder: Path, choose: random.Random, portions: Portions
) -> tuple[Summary, int]:
    """Runs to the end, ended in between as often as ``choose`` says, each time on another node; how it came
    out, and how often it was ended."""
    ended = 0
    while True:
        most = choose.randint(1, 5) if ended < 6 else None
        summary = run_until(graph, choose.choice(nodes), folder, portions, most)
        if summary is not None:
            return summary, ended
        ended += 1


def run_until(
    graph: Graph, node: ps.Node, folder: Path, portions: Portions, epochs: int | None
) -> Summary | None:
    """Runs until so many epochs have counted; None if that was not its end."""
    execution, kept = begun(graph, node, folder, portions)
    left = epochs

    def count(epoch: int) -> None:
        nonlocal left
        portions.more()
        if left is not None:
            left -= 1
            if left == 0:
                execution.abort()

    kept.after_commit = count
    try:
        execution.start()
    except BaseException:
        kept.finish(counts=False)
        raise
    assert execution.wait(FOR_EVER_S), "the run does not come to its end"
    summary = execution.finish()
    return None if left == 0 else summary


def portioned(graph: Graph, portions: Portions) -> Graph:
    """The graph, with sources that are given out in portions."""
    nodes = []
    for node in graph.nodes:
        if isinstance(node.spec, SourceSpec):
            source = node.spec.source
            assert isinstance(source, NodeSource)
            node = replace(node, spec=replace(node.spec, source=portions.of(source)))
        nodes.append(node)
    return Graph(tuple(nodes))
