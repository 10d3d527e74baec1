"""Where each operator of a graph runs on Spark, in a few words: for ``App.explain``."""

from __future__ import annotations

import sys

from penstock.operators.run.fusion import places_of
from penstock.query.graph import Graph, QueryVertex
from penstock.query.steps import MatchMergeSpec, SinkSpec, SourceSpec
from penstock.spark.batches.stages import Stages, cut

READING = "in the reading task"
NATIVE = "native in Spark"


def places(graph: Graph) -> dict[str, str]:
    """By operator: natively in Spark, in the task that reads, behind a routing, or on the driver.

    With one task, which is how a run with one source begins, all that is not native runs in the reading task.
    """
    stages = cut(graph)
    native, partial = _native(stages)
    found: dict[str, str] = {}
    for node in graph.nodes:
        if node.id not in stages.stage_of:
            found[node.id] = "nowhere: only leaves columns out"
        elif node.id in native:
            found[node.id] = NATIVE
        elif isinstance(node.spec, SinkSpec):
            found[node.id] = "on the driver"
        else:
            found[node.id] = _place(stages, stages.graph[node.id], node.id == partial)
    for link, kernel in places_of(stages.fronts()).items():
        found[link] += f", {kernel}"
    return found


def _place(stages: Stages, node: QueryVertex, is_native_partial: bool) -> str:
    stage = stages.stage_of[node.id]
    if stage == 0:
        return READING
    where = f"stage {stage}"
    if not node.spec.is_routed:
        return where
    if isinstance(node.spec, MatchMergeSpec):
        return f"split in stage {stage - 2}, matched by instance in stage {stage - 1}, merged in {where}"
    keys = node.spec.routed_by(0)
    where += f", routed by {', '.join(keys)}" if keys else ", in one task"
    if node.id in stages.partial:
        before = READING if stage == 1 else f"in stage {stage - 1}"
        where += f", partial {NATIVE if is_native_partial else before}"
    return where


def _native(stages: Stages) -> tuple[frozenset[str], str | None]:
    """The operators that Spark runs itself, and the one of which it makes the partial aggregate."""
    sources = [node for node in stages.graph.nodes if isinstance(node.spec, SourceSpec)]
    if len(sources) != 1 or not _is_frame(sources[0]):
        return frozenset(), None
    from penstock.spark.native.prefix import plan_prefix

    prefix = plan_prefix(stages.graph, sources[0], stages.layouts)
    partial = None if prefix.partial is None else prefix.partial.node
    return frozenset((sources[0].id, *prefix.done)), partial


def _is_frame(node: QueryVertex) -> bool:
    if "pyspark" not in sys.modules:  # whoever has a DataFrame has loaded Spark
        return False
    from penstock.spark.frames.streams import FrameSource

    return isinstance(node.spec_as(SourceSpec).source, FrameSource)
