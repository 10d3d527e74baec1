"""How many tasks the next batch gets: one as long as one keeps up, since a shuffle costs time too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.metrics.batches import BatchProgress

#: Work of a batch, in ms, above which several tasks pay: about twice what routing and a second stage cost.
_MORE_MS = 600.0
#: And below which one does again; well apart, so that the number does not swing.
_FEWER_MS = 200.0
_IN_A_ROW = 3
#: What tasks do that more of them would share.
_SHARED_PARTS = ("task_read", "task_engine", "task_state_load", "task_state_write")


@dataclass(frozen=True)
class TaskCount:
    """The rule for one run: one task, or ``most``."""

    most: int

    def after(self, batches: Sequence[BatchProgress]) -> int:
        """The number of tasks after these batches, the newest last; the same again without good reason."""
        if not batches:
            return 1
        tasks = batches[-1].tasks
        newest = [batch for batch in batches[-_IN_A_ROW:] if batch.tasks == tasks]
        if len(newest) < _IN_A_ROW:
            return tasks
        if tasks == 1 and all(work_ms(batch) > _MORE_MS for batch in newest):
            return self.most
        if tasks > 1 and all(work_ms(batch) * tasks < _FEWER_MS for batch in newest):
            return 1
        return tasks


def work_ms(batch: BatchProgress) -> float:
    """What the busiest task of a batch had to do."""
    return sum(batch.parts_ms.get(part, 0.0) for part in _SHARED_PARTS)
