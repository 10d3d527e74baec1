"""How many tasks the next batch gets: one as long as one keeps up, since a shuffle costs time too.

One does not keep up when its batches are heavy, and batches that wait count as heavy ones that were. So a
backlog gets all tasks behind its first heavy batch; a single heavy batch with nothing behind it does not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.spark.batches.reports import BatchReport, TaskReport, slowest_ms

#: Work of a batch, in ms, above which several tasks pay: about twice what routing and a second stage cost.
_MORE_MS = 600.0
#: And below which one does again; well apart, so that the number does not swing.
_FEWER_MS = 200.0
IN_A_ROW = 3
#: What tasks do that more of them would share.
_SHARED_PARTS = ("read", "engine", "state_load", "state_write")


@dataclass(frozen=True)
class BatchLoad:
    """What a batch took, and what was left for the next ones."""

    tasks: int
    work_ms: float  # of the busiest task
    events: int
    waiting: int  # events that were there behind it, as far as its sources know

    @classmethod
    def of(cls, reports: Sequence[TaskReport], tasks: int) -> BatchLoad:
        """From what the batch's tasks have told."""
        slowest = slowest_ms(reports)
        read = BatchReport.of(reports).read
        work_ms = sum(slowest.get(part, 0.0) for part in _SHARED_PARTS)
        return cls(tasks, work_ms, read.events, read.waiting)

    @property
    def waiting_batches(self) -> float:
        """How many batches of the same size wait: each would take what this one took."""
        return self.waiting / max(self.events, 1)


@dataclass(frozen=True)
class TaskCount:
    """The rule for one run: one task, or ``most``."""

    most: int

    def after(self, batches: Sequence[BatchLoad]) -> int:
        """The number of tasks after these batches, the newest last; the same again without good reason."""
        if not batches:
            return 1
        last = batches[-1]
        if last.tasks == 1:
            return self.most if _heavy_in_a_row(batches) + last.waiting_batches >= IN_A_ROW else 1
        newest = [batch for batch in batches[-IN_A_ROW:] if batch.tasks == last.tasks]
        is_light = all(batch.work_ms * last.tasks < _FEWER_MS for batch in newest)
        return 1 if is_light and len(newest) == IN_A_ROW else last.tasks


def _heavy_in_a_row(batches: Sequence[BatchLoad]) -> float:
    """How many of the newest batches were too much for one task; if none, what waits does not count."""
    count = 0
    for batch in reversed(batches):
        if batch.tasks != 1 or batch.work_ms <= _MORE_MS:
            break
        count += 1
    return count or -math.inf
