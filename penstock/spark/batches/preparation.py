"""What a run must know of its graph before Spark starts: what travels to the tasks, and how it is cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.cep.selections.detection_graph import for_many_tasks
from penstock.checkpoints.input_check import final_positions
from penstock.connectors.reader import NodeSource
from penstock.operators.by_start import with_instances
from penstock.operators.run.plan import plan
from penstock.operators.run.projections import without_plain_projections
from penstock.query.connectors import Source
from penstock.query.errors import RunError
from penstock.query.graph import Graph
from penstock.query.steps import SourceSpec
from penstock.spark.batches.job import DescribedSource, for_tasks
from penstock.spark.batches.stages import Stages, cut, whole
from penstock.spark.frames.streams import FrameSource
from penstock.spark.native.prefix import Prefix, plan_prefix


@dataclass(frozen=True)
class Prepared:
    """A graph made ready for tasks."""

    sources: Mapping[str, SourceSpec]
    shipped: Mapping[str, Source]  # what travels to the tasks in place of each source
    stages: Stages
    whole: Stages | None  # the graph uncut, if one task can read and do everything
    prefix: Prefix | None  # what Spark can do itself with the one source, if that is a DataFrame

    def finals(self) -> dict[str, list[int] | None]:
        """Where the partitions of each source end, as far as that is known."""
        return {name: final_positions(source) for name, source in self.shipped.items()}


def prepare(graph: Graph, folder: str, tasks: int | None) -> Prepared:
    """``folder`` takes what sources hand to other processes; ``tasks`` is what the user asked for."""
    sources = {node.id: node.spec for node in graph.nodes if isinstance(node.spec, SourceSpec)}
    shipped = {name: _shipped(name, spec.source, folder) for name, spec in sources.items()}
    stages = cut(for_tasks(graph, shipped))
    # One source can be read by one task, which then needs no other.
    uncut = whole(stages) if len(sources) == 1 and tasks in (None, 1) else None
    prefix = None
    if len(sources) == 1:  # a batch of several sources is one DataFrame of messages already
        ((source_id, spec),) = sources.items()
        if isinstance(spec.source, FrameSource):
            prefix = prefix_of(graph, source_id)
    return Prepared(sources, shipped, stages, uncut, prefix)


def prefix_of(graph: Graph, source_id: str) -> Prefix:
    """The operators behind a DataFrame that Spark can run itself."""
    graph = with_instances(for_many_tasks(without_plain_projections(graph)))
    return plan_prefix(graph, graph[source_id], plan(graph))


def _shipped(source_id: str, source: Source, folder: str) -> Source:
    if not isinstance(source, NodeSource):
        return DescribedSource(source)
    if type(source).positions is NodeSource.positions:
        raise RunError(
            f"source '{source_id}' cannot be read again, as Spark must after a failure: "
            f"{type(source).__name__} keeps no positions; run it with on=ps.Node(), or write its events to "
            "files first"
        )
    return source.shipped(folder)
