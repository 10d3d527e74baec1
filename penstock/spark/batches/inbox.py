"""What the tasks of a batch sent to the driver: read from messages, channel by channel."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from penstock.checkpoints.positions import Partitions, moves_from_json
from penstock.spark.batches.messages import RowFormat, as_json, from_batches
from penstock.spark.batches.reports import TaskReport
from penstock.spark.batches.stages import Kind, Stages


@dataclass(frozen=True)
class Collected:
    """Rows for sinks, how far the sources have come, and what the tasks report of themselves."""

    rows: dict[str, pa.Table]  # by query
    moves: list[Partitions]
    reports: list[TaskReport]


class Inbox:
    """Reads what the last stage sends to the driver."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self._sinks: dict[int, tuple[str, RowFormat]] = {}  # by channel
        for number, channel in enumerate(stages.channels):
            if channel.kind is Kind.SINK:
                (layout,) = stages.layouts.inputs(stages.graph[channel.sink])
                self._sinks[number] = (channel.sink, RowFormat.of(layout, visible=True))

    def read(self, table: pa.Table) -> Collected:
        """Takes the messages of a batch apart."""
        results: dict[str, list[pa.RecordBatch]] = {}
        moves: list[Partitions] = []
        reports: list[TaskReport] = []
        for message in from_batches(table.to_batches()):
            match self._stages.channels[message.tag].kind:
                case Kind.SINK:
                    query, row_format = self._sinks[message.tag]
                    results.setdefault(query, []).append(row_format.read(message.payload))
                case Kind.CONTROL:
                    moves.append(moves_from_json(as_json(message.payload)))
                case Kind.REPORT:
                    reports.append(TaskReport.from_bytes(message.payload.to_pybytes()))
                case _:
                    raise AssertionError(f"channel {message.tag} does not lead to the driver")
        rows = {query: pa.Table.from_batches(batches) for query, batches in results.items()}
        return Collected(rows, moves, reports)
