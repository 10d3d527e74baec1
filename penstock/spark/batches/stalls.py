"""Says while it lasts that a batch makes no progress, and where its tasks are."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pyspark import SparkContext

#: Without a task that ends, it is said after so long, and again after twice that.
TELL_AFTER_S = 15.0
_LOOK_EVERY_S = 3.0  # of batches that take longer; others are never asked for


@dataclass(frozen=True)
class Work:
    """What Spark says of the tasks of all running jobs. Equal to an earlier one: nothing has moved since."""

    stages: tuple[tuple[int, int, int], ...] = ()  # number, tasks that have ended, tasks that failed
    running: tuple[tuple[str, int], ...] = ()  # executors that have tasks, and how many

    def __str__(self) -> str:
        if not self.stages:
            return "no task runs: the driver has the batch, in a sink or a function"
        if not self.running:
            return "its tasks wait for an executor"
        tasks = sum(count for _, count in self.running)
        where = " and ".join(executor for executor, _ in self.running)
        return f"{tasks} {'task runs' if tasks == 1 else 'tasks run'} on {where}"


class StallWatch:
    """Is told when batches begin and end, and asked again and again what there is to say."""

    def __init__(self, work: Callable[[], Work], clock_s: Callable[[], float] = time.monotonic) -> None:
        self._work, self._clock_s = work, clock_s
        self._batch: int | None = None

    def began(self, batch_id: int) -> None:
        self._seen, self._since_s = Work(), self._clock_s()
        self._look_at_s, self._tell_after_s = self._since_s + _LOOK_EVERY_S, TELL_AFTER_S
        self._batch = batch_id

    def ended(self) -> None:
        self._batch = None

    def news(self) -> str | None:
        """What to say now, if anything."""
        batch, now_s = self._batch, self._clock_s()
        if batch is None or now_s < self._look_at_s:
            return None
        self._look_at_s = now_s + _LOOK_EVERY_S
        work = self._work()
        if work.stages != self._seen.stages:
            self._since_s, self._tell_after_s = now_s, TELL_AFTER_S
        self._seen = work
        idle_s = now_s - self._since_s
        if idle_s < self._tell_after_s or self._batch != batch:
            return None
        self._tell_after_s *= 2
        return f"batch {batch} makes no progress: for {idle_s:.0f} s no task has ended; {work}"


def work_of(context: SparkContext) -> Work:
    """What runs in a session: a few calls into the JVM."""
    tracker = context.statusTracker()
    stages = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
    executors = ((f"{one.host}:{one.port}", one.numRunningTasks) for one in tracker.getExecutorInfos())
    return Work(
        tuple((one.stageId, one.numCompletedTasks, one.numFailedTasks) for one in stages if one is not None),
        tuple((name, count) for name, count in executors if count),
    )
