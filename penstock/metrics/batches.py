"""What one batch of a run on Spark did and where its time went, as a value and as a line of JSON."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from penstock.metrics.watch import Totals

_REMEMBERED = 10_000  # newest batches that medians are taken over


@dataclass(frozen=True)
class BatchProgress:
    """One batch that counted."""

    batch_id: int
    started_unix_ms: int
    rows_in: int  # events read from the sources
    rows_out: int  # rows delivered to the sinks
    late: int
    bad_records: int
    watermark_us: Mapping[str, int | None]  # per source; None: no event yet
    state_rows: int
    state_bytes: int
    pending: Mapping[str, int]  # per query: windows, sessions, held events that are not yet emitted
    rows_out_by_query: Mapping[str, int]
    tasks: int
    parts_ms: Mapping[str, float]  # what was measured; sums to about batch_ms
    batch_ms: float
    #: Of the keys' route: LIT as measured and as the plan expects it; partitions that were planned to move,
    #: requested to move after this batch, and observed to have moved before it.
    routing: Mapping[str, Any] = field(default_factory=dict)
    #: By step that has instances: its planned, requested and observed degree, and the most it can have.
    degrees: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    failed: int = 0  # events that functions failed for, set aside
    group: int | None = None  # of several groups, whose batch it is
    waiting: int = 0  # about how many events were there behind it, as far as its sources know
    restarts: int = 0  # how often the run had gone on by itself before it
    way: str = ""  # how it ran: "whole", "groups", "here", "routed" or "filtered"

    @property
    def ended_unix_ms(self) -> float:
        return self.started_unix_ms + self.batch_ms

    def to_json(self) -> str:
        """One line, without its end."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> BatchProgress:
        return cls(**json.loads(text))


class ProgressLog:
    """Appends every batch as a line of JSON to a file, at once: a crash loses at most the line being written.

    A run that goes on adds to the file. A batch that is repeated after a crash has a line each time it
    counted, which is once, unless it counted and the line was lost.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("ab", buffering=0)
        if self._ends_torn():
            self._file.write(b"\n")  # or the first line of this run would be lost with the torn one

    def write(self, progress: BatchProgress) -> None:
        self._file.write(progress.to_json().encode() + b"\n")

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> ProgressLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ends_torn(self) -> bool:
        with self.path.open("rb") as file:
            if not file.seek(0, 2):
                return False
            file.seek(-1, 2)
            return file.read(1) != b"\n"


def read_progress(path: str | Path) -> list[BatchProgress]:
    """All batches of a log. Lines that a crash cut off are left out; the file may be one that still grows."""
    batches: list[BatchProgress] = []
    for line in Path(path).read_bytes().split(b"\n"):
        try:
            batches.append(BatchProgress.from_json(line.decode()))
        except (ValueError, TypeError):
            continue
    return batches


@dataclass
class RunProgress:
    """All batches of a run together: totals of all, times of the newest 10,000."""

    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    failed: int = 0
    bad_records: int = 0
    rows_out_by_query: dict[str, int] = field(default_factory=dict)
    started_unix_ms: int = 0
    last: BatchProgress | None = None
    _restarts: dict[int | None, int] = field(default_factory=dict, repr=False)  # of each group
    _newest: deque[BatchProgress] = field(default_factory=lambda: deque(maxlen=_REMEMBERED), repr=False)

    @classmethod
    def of(cls, batches: Iterable[BatchProgress]) -> RunProgress:
        run = cls()
        for batch in batches:
            run.add(batch)
        return run

    def add(self, batch: BatchProgress) -> None:
        """Counts a batch."""
        if not self.batches:
            self.started_unix_ms = batch.started_unix_ms
        self.batches += 1
        self.rows_in += batch.rows_in
        self.rows_out += batch.rows_out
        self.late += batch.late
        self.failed += batch.failed
        self.bad_records += batch.bad_records
        for query, rows in batch.rows_out_by_query.items():
            self.rows_out_by_query[query] = self.rows_out_by_query.get(query, 0) + rows
        self.last = batch
        self._restarts[batch.group] = batch.restarts
        self._newest.append(batch)

    @property
    def restarts(self) -> int:
        """How often the run had gone on by itself before its newest batches."""
        return sum(self._restarts.values())

    @property
    def elapsed_s(self) -> float:
        """From the start of the first batch to the end of the last."""
        return 0.0 if self.last is None else (self.last.ended_unix_ms - self.started_unix_ms) / 1e3

    @property
    def median_batch_ms(self) -> float:
        return quantile([batch.batch_ms for batch in self._newest], 0.5)

    @property
    def p99_batch_ms(self) -> float:
        return quantile([batch.batch_ms for batch in self._newest], 0.99)

    @property
    def median_parts_ms(self) -> dict[str, float]:
        """Of each part, in the order in which they were first measured; a batch without one counts as 0."""
        return self._parts(0.5)

    @property
    def p99_parts_ms(self) -> dict[str, float]:
        return self._parts(0.99)

    def totals(self) -> Totals:
        """The same in a few figures, alike for all runtimes."""
        return Totals(
            read=self.rows_in,
            written=self.rows_out,
            late=self.late,
            failed=self.failed,
            bad_records=self.bad_records,
            waiting=0 if self.last is None else self.last.waiting,
            written_by_query=dict(self.rows_out_by_query),
            heard={} if self.last is None else dict(self.last.watermark_us),
        )

    def to_dict(self) -> dict[str, Any]:
        """The figures, for JSON."""
        return {
            "batches": self.batches,
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "late": self.late,
            "failed": self.failed,
            "bad_records": self.bad_records,
            "restarts": self.restarts,
            "elapsed_s": self.elapsed_s,
            "median_batch_ms": self.median_batch_ms,
            "p99_batch_ms": self.p99_batch_ms,
            "batch_parts_ms": self.median_parts_ms,
        }

    def _parts(self, q: float) -> dict[str, float]:
        names = dict.fromkeys(name for batch in self._newest for name in batch.parts_ms)
        return {
            name: quantile([batch.parts_ms.get(name, 0.0) for batch in self._newest], q) for name in names
        }


def quantile(values: Iterable[float], q: float) -> float:
    """The smallest value that at least a share ``q`` does not exceed; the median of two is their mean.

    >>> quantile([4, 1, 3], 0.5), quantile([1, 2], 0.5), quantile(range(1, 201), 0.99)
    (3, 1.5, 198)
    """
    ordered = sorted(values)
    if not ordered:
        return math.nan
    place = q * len(ordered)
    rank = max(1, math.ceil(place))
    if q == 0.5 and place == rank:
        return (ordered[rank - 1] + ordered[rank]) / 2
    return ordered[rank - 1]
