"""The streaming query of a run: the stream of messages that its sources are, given to Spark."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from penstock.connectors.reader import NodeSource
from penstock.query.errors import RunError
from penstock.query.graph import Input
from penstock.query.steps import SourceSpec
from penstock.spark.batches.driver import COLLECT_EVERY
from penstock.spark.batches.job import warm_up
from penstock.spark.batches.opening import Opened, Opening
from penstock.spark.batches.preparation import prefix_of
from penstock.spark.batches.stream_source import register
from penstock.spark.batches.ways.readers import Readers
from penstock.spark.batches.ways.reading import MapTask
from penstock.spark.batches.ways.way import choose
from penstock.spark.frames.feed import FrameTask
from penstock.spark.frames.streams import FrameSource


def begin_stream(
    opening: Opening, opened: Opened, batch: Callable[[DataFrame, int], None], *, restarts: int
) -> StreamingQuery:
    """Starts the streaming query from the driver's manifest; also again, where one broke off."""
    session, job, sources = opened.session, opened.job, opened.prepared.sources
    opened.log.renew(opened.driver.manifest)
    query_name = f"penstock-{opening.name}-{opening.run_id[:8]}"
    with ThreadPoolExecutor(1) as pool:  # workers get ready while Spark asks about the sources
        whole = choose(job.here().job.terms, opened.driver.progress.tasks).is_whole
        warm = pool.submit(warm_up, session, job, whole, whole and opening.share is None)
        frame = reduce(DataFrame.union, [_stream(name, opening, opened, restarts) for name in sources])
        warm.result()
    # Of a DataFrame nobody knows when it ends, but Spark: it then reads what is there and stops.
    ends_by_itself = opened.is_bounded and any(isinstance(s.source, FrameSource) for s in sources.values())
    once: dict[str, Any] = {"availableNow": True}
    if opening.share is not None:  # the thread of the streaming query, which starts here, takes it along
        session.sparkContext.setLocalProperty("spark.scheduler.pool", query_name)
    return (
        frame.writeStream.foreachBatch(batch)
        .trigger(**(once if ends_by_itself else {"processingTime": "0 seconds"}))
        .queryName(query_name)
        .option("checkpointLocation", opened.checkpoint.spark)
        .start()
    )


def _stream(source_id: str, opening: Opening, opened: Opened, restarts: int) -> DataFrame:
    """A source as a stream of messages; the one DataFrame of an app as a stream of its rows."""
    session, job, prepared = opened.session, opened.job, opened.prepared
    runtime, checkpoint = opening.runtime, opened.checkpoint
    spec = opening.graph[source_id].spec_as(SourceSpec)
    source = prepared.shipped[source_id]
    if isinstance(spec.source, FrameSource):
        frame = spec.source.frame(session)
        if opened.frames is not None:
            return opened.frames.stream(frame)
        pruned = prefix_of(opening.graph, source_id).prune(frame)
        return FrameTask(job, source_id, Input(source_id), True).over(pruned)
    if not isinstance(source, NodeSource):
        raise RunError(f"source '{source_id}' cannot be read on Spark: it is a {type(source).__name__}")
    terms = job.here().job.terms
    name = register(
        session,
        f"penstock_{opening.run_id}_{restarts}_{source_id}",
        source_id,
        source,
        MapTask(job),
        journal=checkpoint.source(source_id),
        max_events=runtime.batch_events,
        readers=Readers(checkpoint.state, terms) if terms.one_reads else None,
        max_bytes=runtime.source_bytes(len(prepared.sources)),
        keep_batches=runtime.keep_versions + COLLECT_EVERY,
    )
    return session.readStream.format(name).load()
