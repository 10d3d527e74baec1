"""Where events leave a stage: rows or partial states bound for another task, and results bound for a sink."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.memory.edges import Outlet
from penstock.memory.layout import Columns
from penstock.operators.run.base import Build, Operator
from penstock.operators.windows.window_rows import KeyHash
from penstock.query.graph import Port
from penstock.spark.batches.messages import RowFormat
from penstock.spark.batches.results import Place, ResultFiles
from penstock.spark.batches.stages import Channel
from penstock.state.keys import KeyWords
from penstock.state.tables import StateTables

#: Fewer events than this say nothing about a key.
_FEWEST = 1_000


class RowShipper(Operator):
    """Collects the events of one output and splits them by the task that owns their key."""

    def __init__(self, build: Build, channel: Channel) -> None:
        super().__init__(build)
        layout = build.inputs[0]
        self._format = RowFormat.of(layout)
        self._route = channel.route
        self._words = KeyWords.of(layout, channel.keys) if channel.keys else None
        self._hash = None if self._words is None else KeyHash(self._words, build.strings)
        self._owners: NDArray[np.int32] = np.zeros(1, np.int32)
        self._home = 0
        self._parts: list[tuple[Columns, NDArray[np.int32] | int]] = []
        self._hashes: list[NDArray[np.int64]] = []
        self._channel = channel
        #: Of the newest batch: events by virtual partition, and the key that has too many for any task.
        self.rows: NDArray[np.int64] = np.zeros(1, np.int64)
        self.hot: tuple[tuple[str, ...], int] | None = None

    def begin(self, owners: NDArray[np.int32], home: int) -> None:
        """A new batch, with this routing; events without a route go ``home``."""
        self._owners, self._home = owners, home
        self.reset()
        self.rows = np.zeros(len(owners), np.int64)
        self.hot = None

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        targets: NDArray[np.int32] | int
        if self._words is not None and self._hash is not None:
            words = self._words.encode(self.inputs[0], columns, start, stop)
            hashes = self._hash(words)
            partitions = hashes % len(self._owners)
            self.rows += np.bincount(partitions, minlength=len(self._owners))
            self._hashes.append(hashes)
            targets = self._owners[partitions]
        elif self._route is not None:
            place = self._route % len(self._owners)
            self.rows[place] += stop - start
            targets = int(self._owners[place])
        else:
            targets = self._home
        self._parts.append((tuple(column[start:stop].copy() for column in columns), targets))
        return stop - start

    def take(self) -> Iterator[tuple[int, pa.Buffer]]:
        """The events of the batch by target."""
        parts, self._parts = self._parts, []
        if not parts:
            return
        columns: list[NDArray[Any]] = [
            arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
            for arrays in zip(*(columns for columns, _ in parts), strict=True)
        ]
        batch = self._format.batch(tuple(columns), self.strings)
        if self._words is None:
            target = parts[0][1]
            assert isinstance(target, int)
            yield target, batch.serialize()
            return
        targets = np.concatenate([np.asarray(target) for _, target in parts])
        self.hot = self._hot_key(np.concatenate(self._hashes), batch)
        self._hashes.clear()
        for target in np.unique(targets).tolist():
            mine = targets == target
            yield target, (batch if mine.all() else batch.filter(pa.array(mine))).serialize()

    def _hot_key(
        self, hashes: NDArray[np.int64], batch: pa.RecordBatch
    ) -> tuple[tuple[str, ...], int] | None:
        """The key that has more events than a task's part of them. Looked for only if a partition has."""
        tasks, fullest = int(self._owners.max()) + 1, int(self.rows.argmax())
        if tasks == 1 or len(hashes) < _FEWEST or self.rows[fullest] * tasks <= len(hashes):
            return None
        _, first, counts = np.unique(hashes, return_index=True, return_counts=True)
        hottest = int(counts.argmax())
        if counts[hottest] * tasks <= len(hashes):
            return None
        row = batch.slice(int(first[hottest]), 1).to_pylist()[0]
        return tuple(str(row[name]) for name in self._channel.keys or ()), int(counts[hottest])

    def reset(self) -> None:
        self._parts.clear()
        self._hashes.clear()


class SinkCollector(Operator):
    """Collects the results of one query; many of them go into files while the batch runs."""

    def __init__(self, build: Build, files: ResultFiles) -> None:
        super().__init__(build)
        self._format = RowFormat.of(build.inputs[0], visible=True)
        self._files = files
        self._parts: list[Columns] = []
        self._bytes = 0  # of the parts
        self._written: list[Place] = []

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        part = tuple(column[start:stop].copy() for column in columns)
        self._parts.append(part)
        size = sum(column.nbytes for column in part)
        self._bytes += size
        if self._files.hold(size, self._bytes):
            self._written += self._files.write([self._collected()])
        return stop - start

    def take(self) -> list[Any]:
        """The results of the batch, in order: record batches, or the places where they stand."""
        written, self._written = self._written, []
        return [*written, self._collected()] if self._parts else written

    def reset(self) -> None:
        self._parts.clear()
        self._written.clear()
        self._bytes = 0

    def _collected(self) -> pa.Buffer:
        parts, self._parts, self._bytes = self._parts, [], 0
        columns = tuple(
            arrays[0] if len(arrays) == 1 else np.concatenate(arrays) for arrays in zip(*parts, strict=True)
        )
        return self._format.batch(columns, self.strings).serialize()


class PartialCollector(Operator):
    """A mergeable operator that only takes events in: time does not pass for it, so it closes nothing."""

    def __init__(self, build: Build, operator: Operator) -> None:
        super().__init__(build)
        self.operator = operator
        self.front = operator.front

    def attach(self, outlets: dict[Port, Outlet]) -> None:
        super().attach(outlets)
        self.operator.attach(outlets)

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        return self.operator.consume(index, columns, start, stop)

    def flush(self) -> bool:
        return self.operator.flush()

    @property
    def has_ready_rows(self) -> bool:
        return self.operator.has_ready_rows

    def take(self) -> tuple[StateTables, int]:
        """The partial state of the batch, and how many events were late; forgets both."""
        operator = self.operator
        tables, late = operator.export_state(), operator.late_events
        operator.reset()
        return tables, late

    def reset(self) -> None:
        self.operator.reset()
