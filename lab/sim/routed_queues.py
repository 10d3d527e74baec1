"""Latency behind a grouping: every task is a queue that works off what it is given, on a virtual clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lab.baselines.routing.grouping import Grouping
from lab.baselines.routing.two_tier import TwoTierGrouping
from lab.sim.routing import RowCosts, merges_by_task, results_by_task
from penstock.routing.router import Hashes


@dataclass(frozen=True)
class QueueSetting:
    """Rows arrive at ``rate`` a second and are handed over in steps; windows close, and the router looks at
    its loads, every ``window_s``."""

    tasks: int
    rate: float
    step_s: float = 0.02
    window_s: float = 0.5


def mean_latency_ms(grouping: Grouping, hashes: Hashes, costs: RowCosts, setting: QueueSetting) -> float:
    """The mean over the second half of the rows: what waits before each, and its own work.

    A grouping that splits keys owes the merge of a window's partial results when the window closes, and every
    grouping what becomes of the results; that is work of tasks, and rows that come meanwhile wait behind it.
    """
    per_step = max(1, round(setting.rate * setting.step_s))
    steps_per_window = max(1, round(setting.window_s / setting.step_s))
    step_ns = per_step / setting.rate * 1e9
    backlog: NDArray[np.float64] = np.zeros(setting.tasks)
    waited_ns, counted = 0.0, 0
    spent: NDArray[np.float64] = np.zeros(setting.tasks)
    window: list[tuple[Hashes, NDArray[np.int32]]] = []
    steps = len(hashes) // per_step
    for step in range(steps):
        rows = hashes[step * per_step : (step + 1) * per_step]
        given = grouping.assign(rows)
        counts = np.bincount(given, minlength=setting.tasks)
        work = counts * costs.row_ns
        if step >= steps // 2:
            # Rows come evenly over a step: on average half of it has been worked off when one arrives.
            waits = np.maximum(backlog + work / 2 - step_ns / 2, backlog / 2) + costs.row_ns
            waited_ns += float((waits * counts).sum())
            counted += len(rows)
        backlog = np.maximum(0.0, backlog + work - step_ns)
        spent += work
        window.append((rows, given))
        if len(window) == steps_per_window:
            keys, owners = (np.concatenate(parts) for parts in zip(*window, strict=True))
            splits = grouping.splits_keys
            if splits:
                backlog = backlog + merges_by_task(keys, owners, setting.tasks) * costs.merge_ns
            if costs.result_ns:
                results = results_by_task(keys, owners, setting.tasks, merged=splits)
                backlog = backlog + results * costs.result_ns
            if isinstance(grouping, TwoTierGrouping):
                grouping.look(tuple(spent.tolist()))
            spent[:] = 0.0
            window.clear()
    return waited_ns / max(1, counted) / 1e6
