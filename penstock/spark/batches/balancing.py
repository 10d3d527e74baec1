"""Between two batches: what tasks measured by virtual partition, and the route that follows from it.

A route is part of the version that a batch starts from. So a migration is nothing but another route in the
next manifest: the new owner of a partition loads its state by version, the old one drops its warm copy, and a
crash at any moment finds either the one route with its state or the other.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.checkpoints.positions import Progress
from penstock.operators.by_start import is_by_instance
from penstock.routing.control import LoadHistory, RoutingControl
from penstock.routing.hot_keys import HotKey, beyond_routing, warning
from penstock.routing.imbalance import load_imbalance
from penstock.routing.load import MeasuredLoad, partition_loads, task_loads
from penstock.routing.route import Route, moves_between, resized
from penstock.spark.batches.adapting import IN_A_ROW, BatchLoad, TaskCount
from penstock.spark.batches.reports import TaskReport
from penstock.spark.batches.stages import Stages

Reports = Sequence[TaskReport]

_log = logging.getLogger(__name__)


class Balancing:
    """Decides the route of every batch. ``told`` is what the newest batch's progress says about it."""

    def __init__(self, control: RoutingControl | None, stages: Stages) -> None:
        self.control, self._stages = control, stages
        self.told: dict[str, Any] = {}
        self._memory = LoadHistory()
        self._ran_with: Route | None = None  # the route of the batch before
        self._warned: set[tuple[str, Any]] = set()

    def after(self, reports: Reports, route: Route, tasks: int, wanted: int) -> Route:
        """The route of the next batch, after one that ran with ``route`` on ``tasks``; ``wanted`` are the
        tasks that the next one shall have."""
        moved = 0 if self._ran_with is None else len(moves_between(self._ran_with, route))
        self._ran_with = route
        self.told = {"observed": moved}
        measured = observed(reports, route, tasks)
        if tasks > 1 and measured:
            spent = zip(*(one.cpu_ns for one in measured.values()), strict=True)
            self.told["task_cpu_ms"] = [round(sum(stages_ns) / 1e6, 3) for stages_ns in spent]
            self.told["lit_by_stage"] = {stage: round(_lit(one), 4) for stage, one in measured.items()}
            self._warn(reports, tasks)
        if wanted != tasks:
            self._memory = LoadHistory(self._memory.loads)
            return resized(route, wanted, self._memory.loads or None)
        if tasks == 1 or self.control is None or not measured:
            return route
        decision, self._memory = self.control.look(list(measured.values()), self._memory)
        plan = decision.planned
        self.told |= {
            "lit": round(decision.lit, 4),
            "lit_expected": round(plan.lit_expected, 4),
            "planned": len(plan.moves),
            "requested": len(decision.moves),
        }
        return decision.requested

    def _warn(self, reports: Reports, tasks: int) -> None:
        """Tells once of every key that no routing can help with."""
        found = beyond_routing(hot_keys(self._stages, reports), tasks)
        if found:
            self.told["hot_keys"] = [[hot.operator, hot.key, round(hot.share, 4)] for hot in found]
        for hot in found:
            if (hot.operator, hot.key) not in self._warned:
                self._warned.add((hot.operator, hot.key))
                _log.warning("%s", warning(hot, tasks))


class Routing:
    """After every batch: how many tasks the next gets, and which has which keys."""

    def __init__(self, balancing: Balancing, most_tasks: int, tasks: int | None) -> None:
        self._balancing, self._task_count = balancing, TaskCount(most_tasks)
        self._loads: deque[BatchLoad] = deque(maxlen=IN_A_ROW)
        self._tasks = tasks

    @property
    def told(self) -> Mapping[str, Any]:
        return self._balancing.told

    def set_tasks(self, tasks: int | None) -> None:
        """From the batch after next on; None: as many as the load asks for."""
        self._tasks = tasks

    def after(self, reports: Reports, progress: Progress) -> Route:
        """The routing of the next batch."""
        self._loads.append(BatchLoad.of(reports, progress.tasks))
        tasks = self._task_count.after(tuple(self._loads)) if self._tasks is None else self._tasks
        return self._balancing.after(reports, progress.routing, progress.tasks, tasks)


def observed(reports: Reports, route: Route, tasks: int) -> dict[int, MeasuredLoad]:
    """What the tasks of a batch measured, by stage; stages that got no rows are left out."""
    rows: dict[int, NDArray[np.int64]] = {}
    held: dict[int, NDArray[np.int64]] = {}
    cpu_ns: dict[int, list[float]] = {}
    for report in reports:
        for stage, sent in report.routed.sent.items():
            sent.add_to(rows.setdefault(stage, np.zeros(len(route), np.int64)))
        if report.stage and tasks > 1:
            cpu_ns.setdefault(report.stage, [0.0] * tasks)[report.task] += report.cpu_ns
            report.state.held.add_to(held.setdefault(report.stage, np.zeros(len(route), np.int64)))
    return {
        stage: MeasuredLoad(
            route, tasks, tuple(rows[stage].tolist()), tuple(times), tuple(map(float, held[stage]))
        )
        for stage, times in sorted(cpu_ns.items())
        if stage in rows and rows[stage].any()
    }


def hot_keys(stages: Stages, reports: Reports) -> list[HotKey]:
    """The keys that tasks found to be hot, with their share of all events that go to their operator."""
    counts: dict[tuple[int, tuple[str, ...]], int] = {}
    for report in reports:
        for hot in report.routed.hot:
            counts[hot.channel, hot.key] = counts.get((hot.channel, hot.key), 0) + hot.rows
    totals: dict[int, int] = {}
    for report in reports:
        for channel, count in report.routed.by_channel.items():
            totals[channel] = totals.get(channel, 0) + count
    found: list[HotKey] = []
    for (channel, key), count in counts.items():
        share = count / max(1, totals.get(channel, 0))
        readers = sorted({node for (node, _), number in stages.carried.items() if number == channel})
        found += [
            HotKey(node, key[0] if len(key) == 1 else key, share)
            for node in readers
            if not is_by_instance(stages.graph[node].spec)
        ]
    return found


def _lit(one: MeasuredLoad) -> float:
    return load_imbalance(task_loads(one.route, one.tasks, partition_loads(one)))
