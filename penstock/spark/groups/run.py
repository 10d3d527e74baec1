"""A run of several groups: a streaming query each, their batches bounded in number, in a policy's order."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.checkpoints.folders import Checkpoint
from penstock.checkpoints.groups import (
    delivered_in,
    folder_of,
    obstacle,
    remove_undivided,
    resumed_groups,
    split,
    store_groups,
    stored_groups,
)
from penstock.checkpoints.lock import CheckpointLock
from penstock.metrics.batches import BatchProgress, ProgressLog, RunProgress
from penstock.metrics.watch import Totals
from penstock.placement.query_groups import GroupPlan, GroupPlanner, QueryGroups, QueryWork
from penstock.query.errors import RunError
from penstock.query.graph import Graph
from penstock.spark.batches.run import SparkRun
from penstock.spark.batches.summary import SparkSummary, merged
from penstock.spark.groups.groups import check_pattern_sets, check_sources, named_groups, part_of, queries_of
from penstock.spark.groups.schedule import GroupSchedule
from penstock.spark.groups.slots import BatchSlots, GroupShare
from penstock.spark.session.start import local_cores, spark_session
from penstock.state.errors import StateError
from penstock.state.files import Folder
from penstock.state.store import StateStore

if TYPE_CHECKING:
    from penstock.spark.runtime import Spark

_log = logging.getLogger(__name__)

_POLL_S = 0.05
#: Batches with events after which loads are known: the first ones compile and fill caches.
_UNMEASURED, _MEASURED = 2, 6
_LOOK_AGAIN = 4  # times as many batches later, if nothing was gained


class GroupedRun:
    """A run whose queries are divided. It looks to its caller as a run of one group does."""

    def __init__(
        self,
        graph: Graph,
        runtime: Spark,
        name: str,
        *,
        on_built: Callable[[int, int], None] | None = None,
        planner: GroupPlanner | None = None,
    ) -> None:
        self._graph, self._runtime, self._name, self._on_built = graph, runtime, name, on_built
        self._planner = planner or GroupPlanner()
        self.progress = RunProgress()
        self.batches: list[BatchProgress] = []
        self.on_progress: Callable[[BatchProgress], None] | None = None
        self.groups: QueryGroups = (tuple(queries_of(graph)),)
        self.plan: GroupPlan | None = None  # by what was measured, once it was carried out
        self.runs: list[SparkRun] = []
        self.slots: BatchSlots | None = None
        self._log = None if runtime.progress is None else ProgressLog(runtime.progress)
        self._publishing = threading.Lock()
        self._stopping = False
        self._earlier: list[SparkSummary] = []  # of the time in one group
        self._finished: dict[str, SparkSummary] = {}  # by the run's id
        self._closed: set[str] = set()  # those, and what failed
        self._first_error: Exception | None = None
        self._look_at = _UNMEASURED + _MEASURED
        self._measured_from: tuple[int, dict[str, int]] | None = None

    # -- life ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Builds everything and starts the streaming queries, or one that measures before it is divided."""
        self.checkpoint = Checkpoint.at(self._runtime.checkpoint)
        self._lock = CheckpointLock(self.checkpoint.root)
        try:
            Folder(self.checkpoint.root).remove_temporary()
            groups = self._known_groups()
            if groups is None:
                self._start_together()
            else:
                self._start_groups(groups)
        except BaseException:
            self._close()
            raise

    def stop(self) -> None:
        """Ends all groups after the batches at hand."""
        self._stopping = True
        if self.slots is not None:
            self.slots.close()
        for run in self._unfinished():
            run.ask_to_stop()  # all have the same grace time
        for run in self._unfinished():
            run.stop()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end of all groups, or the failure of one; False if it has not come in that time."""
        until_s = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            for run in self._unfinished():
                # A group that has read everything closes its windows at once, whatever the others do.
                if run.wait(_POLL_S / len(self.runs)) and not run.failed and not self._stopping:
                    self._finish(run)
            if any(run.failed for run in self.runs) or self._first_error is not None:
                return True
            if not self._unfinished() or (self._stopping and all(r.wait(_POLL_S) for r in self.runs)):
                return True
            if not self._stopping and self._is_worth_dividing():
                self._divide()
            if until_s is not None and time.monotonic() >= until_s:
                return False

    def finish(self) -> SparkSummary:
        """Closes all groups and sums up; raises what made the first of them fail."""
        failed = self._first_error is not None or any(run.failed for run in self.runs)
        if self.slots is not None and (self._stopping or failed):
            self.slots.close()
            for run in self._unfinished():
                run.stop()
        for run in sorted(self._unfinished(), key=lambda run: not run.failed):
            self._finish(run)
        self._close()
        if self._first_error is not None:
            raise self._first_error
        summaries = list(self._finished.values())
        return merged([*self._earlier, *summaries], len(summaries), self.progress, len(self._graph))

    def metrics(self) -> RunProgress:
        """The run as it stands."""
        return copy(self.progress)

    def totals(self) -> Totals:
        """The same in a few figures."""
        return self.progress.totals()

    def _unfinished(self) -> list[SparkRun]:
        return [run for run in self.runs if run.run_id not in self._closed]

    def _finish(self, run: SparkRun) -> None:
        self._closed.add(run.run_id)
        try:
            self._finished[run.run_id] = run.finish()
        except Exception as error:
            self._first_error = self._first_error or error

    @property
    def changes(self) -> str:
        return "\n".join(str(run.changes) for run in self.runs if run.changes)

    # -- in one group, while it is measured ------------------------------------------------------------------

    def _known_groups(self) -> QueryGroups | None:
        """The groups to start with; None: all in one, until it is known what each costs."""
        option = self._runtime.groups
        named = None if option is None or isinstance(option, str) else option
        wanted = None if named is None else named_groups(named, self._graph)
        stored = stored_groups(self.checkpoint)
        if stored is not None:
            delivered = delivered_in(self.checkpoint, stored)
            queries = queries_of(self._graph)
            return resumed_groups(stored, wanted, queries, self.checkpoint.root, delivered)
        return wanted

    def _start_together(self) -> None:
        runtime = replace(self._runtime, checkpoint=self.checkpoint.root, groups=None, progress=None)
        run = SparkRun(self._graph, runtime, self._name, on_built=self._on_built, measures=True, locks=False)
        run.on_progress = lambda batch: self._publish(batch, None)
        run.start()
        self.runs = [run]

    def _is_worth_dividing(self) -> bool:
        """Whether it is time to look at what the queries cost, and they should part."""
        if self.slots is not None or not self.runs:
            return False
        (run,) = self.runs
        batches = [batch for batch in list(run.batches) if batch.rows_in]
        driver = run.driver
        if driver is None or len(batches) < _UNMEASURED:
            return False
        if self._measured_from is None:
            self._measured_from = (len(batches), dict(driver.busy_ns))
        since, before = self._measured_from
        if len(batches) < max(self._look_at, since + _MEASURED):
            return False
        self._look_at, self._measured_from = len(batches) * _LOOK_AGAIN, None
        count = len(batches) - since
        work = measured_work(self._graph, before, dict(driver.busy_ns), batches[-count:])
        plan = self._planner.plan(work, self._slot_count())
        if plan is None:
            return False
        parts = [part_of(self._graph, group) for group in plan.groups]
        try:
            check_sources(self._graph, plan.groups)
            check_pattern_sets(self._graph, plan.groups)
        except RunError as error:
            why: str | None = str(error)
        else:
            why = obstacle(self._graph, parts)
        if why is not None:
            _log.warning("queries stay in one group: %s", why)
            self._look_at = sys.maxsize
            return False
        self.plan = plan
        return True

    def _divide(self) -> None:
        """Ends the one group between two batches and goes on with several from there."""
        assert self.plan is not None
        (run,) = self.runs
        if run.wait(0.0):  # it has come to its end meanwhile
            self.plan = None
            self._look_at = sys.maxsize
            return
        run.stop()
        self._earlier = [run.finish()]
        self.runs = []
        shown = " and ".join(f"{len(group)} queries ({ms:,.1f} ms)" for group, ms in self._shown_work())
        _log.info(
            f"{len(self.plan.groups)} groups from now on, {shown} a batch; the mean wait is expected to go "
            f"from {self.plan.before_ms:,.0f} to {self.plan.expected_ms:,.0f} ms"
        )
        self._start_groups(self.plan.groups)

    def _shown_work(self) -> list[tuple[tuple[str, ...], float]]:
        assert self.plan is not None
        return list(zip(self.plan.groups, self.plan.work_ms, strict=True))

    # -- in several ------------------------------------------------------------------------------------------

    def _start_groups(self, groups: QueryGroups) -> None:
        check_sources(self._graph, groups)
        check_pattern_sets(self._graph, groups)
        parts = [part_of(self._graph, group) for group in groups]
        if stored_groups(self.checkpoint) is None:
            manifest = StateStore(self.checkpoint.state).latest()
            why = None if manifest is None else obstacle(self._graph, parts)
            if why is not None:
                raise StateError(
                    "the checkpoint cannot be divided into these groups",
                    f"'{self.checkpoint.root}' has the state of all queries together, and {why}",
                    "write groups=None to go on with one group, or start from an empty checkpoint",
                )
            split(self.checkpoint, groups, self._graph, parts)
        else:
            store_groups(self.checkpoint, groups)  # queries may have come or gone
            remove_undivided(self.checkpoint)
        self.groups = groups
        schedule = GroupSchedule(len(groups), self._runtime.group_scheduling)
        self.slots = BatchSlots(schedule, self._slot_count())
        for number, part in enumerate(parts):
            if not groups[number]:  # its queries have gone; the state stays in case they come again
                continue
            runtime = replace(
                self._runtime, checkpoint=folder_of(self.checkpoint, number), groups=None, progress=None
            )
            share = GroupShare(number, len(groups), self.slots)
            run = SparkRun(part, runtime, f"{self._name}-{number}", on_built=self._on_built, share=share)
            run.on_progress = lambda batch, number=number: self._publish(batch, number)
            try:
                run.start()
            except BaseException:
                self.stop()
                for started in self.runs:
                    started.finish()
                raise
            self.runs.append(run)
            if self._stopping:
                run.stop()

    def _slot_count(self) -> int:
        if self._runtime.concurrent_batches is not None:
            return self._runtime.concurrent_batches
        cores = local_cores(self._runtime.master)
        if cores is None:
            session = spark_session(self._runtime.master, f"penstock-{self._name}", self._runtime.settings)
            cores = session.sparkContext.defaultParallelism
        return max(cores, 1)

    def _publish(self, batch: BatchProgress, group: int | None) -> None:
        with self._publishing:
            batch = replace(batch, group=group)
            self.progress.add(batch)
            self.batches.append(batch)
            if self._log is not None:
                self._log.write(batch)
            if self.on_progress is not None:
                self.on_progress(batch)

    def _close(self) -> None:
        if self._log is not None:
            self._log.close()
        self._lock.free()
        self.checkpoint.remove()


def measured_work(
    graph: Graph, before: dict[str, int], after: dict[str, int], batches: list[BatchProgress]
) -> QueryWork:
    """What an average batch spends on each operator, and on everything else."""
    count = max(len(batches), 1)
    operator_ms = {
        operator: (busy_ns - before.get(operator, 0)) / 1e6 / count for operator, busy_ns in after.items()
    }
    batch_ms = sum(batch.batch_ms for batch in batches) / count
    return QueryWork(
        operator_ms,
        {node.id: node.queries or frozenset((node.id,)) for node in graph.nodes},
        max(batch_ms - sum(operator_ms.values()), 0.0),
    )
