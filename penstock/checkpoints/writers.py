"""The writers of a run with a checkpoint: opened and begun together, given each epoch's rows with its number,
and what they have delivered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from penstock.connectors.deliveries import check_same_kind
from penstock.connectors.writer import BatchWriter, NodeSink, Resumed
from penstock.query.connectors import Sink
from penstock.query.errors import RunError
from penstock.query.types import Schema
from penstock.state.manifest import Manifest

_SIDE_BY_SIDE = 8  # on one disk more threads are no faster


def open_writers(
    sinks: Mapping[str, tuple[Sink, Schema]],
    manifest: Manifest | None,
    folder_of: Callable[[str], str] | None = None,
) -> dict[str, BatchWriter]:
    """Opens every query's sink, or none: each failure is one ``RunError`` that names the query.

    ``manifest`` is the newest one, None where the checkpoint is new. Nothing is touched before
    ``begin_writers``. ``folder_of`` says where a query's sink may keep what belongs to the checkpoint.
    """
    writers: dict[str, BatchWriter] = {}
    try:
        for query, (sink, schema) in sinks.items():
            if not isinstance(sink, NodeSink):
                raise RunError(
                    f"query '{query}' cannot run on Spark or with a checkpoint: {type(sink).__name__} takes "
                    "no batches; make it a NodeSink"
                )
            try:
                resumed = None
                if manifest is not None:
                    resumed = Resumed(manifest.batches, manifest.deliveries.get(query))
                writers[query] = sink.open_batches(schema, resumed)
                if folder_of is not None:
                    writers[query].stage_in(folder_of(query))
                check_same_kind(resumed, writers[query].delivered()["kind"])
            except Exception as error:
                raise RunError(f"sink of query '{query}' cannot be opened: {told(error)}") from error
    except BaseException:
        close_writers(writers, complete=False)
        raise
    return writers


def begin_writers(writers: Mapping[str, BatchWriter]) -> None:
    """Lets all make ready for the first batch, now that the checkpoint is this run's."""
    for query, writer in writers.items():
        try:
            writer.begin()
        except Exception as error:
            raise RunError(f"sink of query '{query}' cannot be opened: {told(error)}") from error


def end_writers(writers: Mapping[str, BatchWriter], batch_id: int) -> None:
    """Lets all add what their outputs lack: the input is complete with this batch."""
    for query, writer in writers.items():
        try:
            writer.end(batch_id)
        except Exception as error:
            raise RunError(f"sink of query '{query}' failed in batch {batch_id}: {told(error)}") from error


def deliveries(writers: Mapping[str, BatchWriter], before: Mapping[str, Any]) -> dict[str, Any]:
    """What all have delivered, for the manifest. What the one ``before`` has of queries that are gone stays:
    they may come again."""
    return {**before, **{query: dict(writer.delivered()) for query, writer in writers.items()}}


def deliver(
    writers: Mapping[str, BatchWriter],
    batch_id: int,
    rows: Mapping[str, pa.Table],
    writing: set[str] | None = None,
) -> int:
    """Hands every query's rows of a batch to its sink, in the order of ``writers``; returns how many.

    Sinks that allow it are written side by side, since files mostly wait for the disk. A sink that raises
    ends it with one ``RunError`` that names the query and the batch, the first in order if several do: other
    sinks may have the batch then or not, and it must not count. ``writing`` has, meanwhile, the queries whose
    sinks are at it.
    """
    unknown = [query for query in rows if query not in writers]
    if unknown:
        raise RunError(f"batch {batch_id} has rows of query '{unknown[0]}', which has no sink")
    writing = set() if writing is None else writing

    def write(query: str) -> None:
        writing.add(query)
        try:
            writers[query].write_batch(batch_id, given[query])
        finally:
            writing.discard(query)

    given = {query: rows[query] for query in writers if query in rows and rows[query].num_rows}
    failures: dict[str, BaseException] = {}
    beside = [query for query in given if writers[query].side_by_side][1:]  # one alone needs no thread
    with ThreadPoolExecutor(_SIDE_BY_SIDE, "penstock-sinks") as pool:  # starts threads as they are needed
        started = {query: pool.submit(write, query) for query in beside}
        for query in given:
            if query in started:
                continue
            try:
                write(query)
            except Exception as error:
                failures[query] = error
                break
    failures |= {query: why for query, done in started.items() if (why := done.exception()) is not None}
    for query in given:
        if query in failures:
            cause = failures[query]
            raise RunError(f"sink of query '{query}' failed in batch {batch_id}: {told(cause)}") from cause
    return sum(table.num_rows for table in given.values())


def tell_counted(writers: Mapping[str, BatchWriter], batch_id: int) -> None:
    """Lets all know that the manifest has the batch."""
    for query, writer in writers.items():
        try:
            writer.counted(batch_id)
        except Exception as error:
            raise RunError(f"sink of query '{query}' failed with batch {batch_id}: {told(error)}") from error


def close_writers(writers: Mapping[str, BatchWriter], complete: bool) -> None:
    """Closes all, also those after one that fails; raises the first failure of a run that is complete."""
    first: RunError | None = None
    for query, writer in writers.items():
        try:
            writer.close(complete)
        except Exception as error:
            if first is None:
                first = RunError(f"sink of query '{query}' cannot be closed: {told(error)}")
                first.__cause__ = error
    if first is not None and complete:  # else there is an error already that says more
        raise first


def told(error: BaseException) -> str:
    """An error in one line, also one of Spark's, which come with plans and traces of the JVM."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, RunError):
        return lines[0]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        lines = [lines[1].lstrip(": ")]
    return ": ".join([type(error).__name__, *lines[:1]])
