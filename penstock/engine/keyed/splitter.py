"""The splitter in front of a keyed operator's tasks: routes every event, measures, and begins migrations."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.engine.keyed.migration import Exchange, Migration
from penstock.memory.edges import Control, Outlet
from penstock.memory.layout import Columns
from penstock.metrics.routing import RoutingMetrics
from penstock.operators.by_start import is_by_instance
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.rows import RowReader
from penstock.operators.windows.window_rows import KeyHash
from penstock.query.graph import Port
from penstock.routing.control import LoadHistory, RoutingControl
from penstock.routing.hot_keys import HotKey, beyond_routing, warning
from penstock.routing.imbalance import load_imbalance
from penstock.routing.load import MeasuredLoad
from penstock.routing.route import even_route, moves_between
from penstock.routing.router import Hashes, TwoTierRouter
from penstock.state.keys import KeyWords

#: By task: events processed and time spent so far.
Counters = Callable[[], list[tuple[int, int]]]
#: Plans instead of the control, for tests: the next route, given the one that is.
Force = Callable[[tuple[int, ...]], tuple[int, ...]]


_log = logging.getLogger(__name__)

#: What remains of older measurements of a task's cost at each look.
_KEPT = 0.9
_FEWEST = 256  # events of a block that say something about a key
#: How the splitter of an operator is called in metrics.
SPLIT = ".split"


@dataclass(frozen=True)
class _Together:
    """Several outlets counted as one."""

    outlets: list[Outlet]

    @property
    def written(self) -> int:
        return sum(outlet.written for outlet in self.outlets)


class Splitter(Operator):
    """One vertex for all inputs of the operator, so that a new route begins for all of them at once.

    Its outlets are by (input, task). ``counters`` are asked when it looks at the load.
    """

    def __init__(
        self,
        build: Build,
        exchange: Exchange,
        partitions: int,
        control: RoutingControl | None,
        every_s: float,
        force: Force | None = None,
    ) -> None:
        super().__init__(build)
        self._words = [
            KeyWords.of(layout, build.node.spec.routed_by(index) or ())
            for index, layout in enumerate(build.inputs)
        ]
        self._hashes = [KeyHash(words, build.strings) for words in self._words]
        self._router = TwoTierRouter(even_route(partitions, exchange.tasks), exchange.tasks)
        self._exchange, self._control, self._force = exchange, control, force
        self._every_ns = round(every_s * 1e9)
        self._next_ns = 0
        self._memory = LoadHistory()
        self._counted = [(0, 0)] * exchange.tasks
        self._recent: np.ndarray = np.zeros((exchange.tasks, 2))
        self._rows: np.ndarray = np.zeros(exchange.tasks, np.int64)
        self._migration: Migration | None = None  # decided, not yet told
        self._number = 0
        self._is_suspicious = False  # a partition has more rows than a whole task should
        self._hot: dict[Any, float] = {}  # keys that are, with their share of the events
        self._told = (0.0, 0.0, 0, 0)  # LIT, expected LIT, planned, requested
        self.counters: Counters = lambda: [(0, 0)] * exchange.tasks

    def attach(self, outlets: dict[Port, Outlet]) -> None:
        super().attach(outlets)
        together: Any = _Together(list(outlets.values()))
        self.out = together  # what it emits, for whoever plans by it

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        if self._migration is None and self._is_due():
            self._look()
        if self._migration is not None:
            return 0  # ``flush`` tells of it, behind what was sent so far
        words = self._words[index].encode(self.inputs[index], columns, start, stop)
        hashes = self._hashes[index](words)
        if self._is_suspicious:
            self._look_for_hot_key(index, columns, start, hashes)
        split = self._router.split(hashes)
        for task in range(self._exchange.tasks):
            rows = split.rows(task)
            if rows.size:
                self._rows[task] += rows.size
                outlet: Any = (index, task)
                self.emit(tuple(column[start:stop][rows] for column in columns), rows.size, outlet)
        return stop - start

    def flush(self) -> bool:
        if not super().flush():
            return False
        migration, self._migration = self._migration, None
        if migration is not None:
            self._exchange.begin(migration)
            for move in migration.moves:
                self._router.apply(move)
            for outlet in self.outlets.values():
                outlet.mark(Control(migration))
        return True

    @property
    def has_ready_rows(self) -> bool:
        return self._migration is not None or super().has_ready_rows

    def metrics(self) -> RoutingMetrics:
        """How it stands."""
        lit, expected, planned, requested = self._told
        tasks = self._exchange.tasks
        return RoutingMetrics(
            tasks,
            tuple(self._rows.tolist()),
            lit,
            expected,
            planned,
            requested,
            self._exchange.observed,
            dict(self._hot),
        )

    def _is_due(self) -> bool:
        if self._control is None and self._force is None:
            return False
        now_ns = time.perf_counter_ns()
        if now_ns < self._next_ns or self._exchange.is_busy:
            return False
        is_first, self._next_ns = self._next_ns == 0, now_ns + self._every_ns
        return self._force is not None or not is_first

    def _look(self) -> None:
        """Plans by what was routed and by what an event has cost each task since the last look."""
        route = self._router.route
        if self._force is not None:
            self._begin(self._force(route))
            return
        assert self._control is not None
        costs = self._costs_ns()
        rows = self._router.take_rows()
        is_skewed = max(rows) * self._exchange.tasks > sum(rows)
        self._is_suspicious = is_skewed and not is_by_instance(self.node.spec)
        routed = np.bincount(np.array(route), weights=np.array(rows), minlength=len(costs))
        spent_ns = tuple((routed * np.array(costs)).tolist())
        observed = MeasuredLoad(route, self._exchange.tasks, rows, spent_ns)
        decision, self._memory = self._control.look([observed], self._memory)
        plan = decision.planned
        _, _, planned, requested = self._told
        self._told = (
            load_imbalance(spent_ns),
            plan.lit_expected,
            planned + len(plan.moves),
            requested + len(decision.moves),
        )
        self._begin(decision.requested)

    def _costs_ns(self) -> list[float]:
        """What an event costs in each task, of late. Events are taken in one turn and often worked on in
        another, and a turn's time has others' in it: so a single look says little."""
        counted = self.counters()
        newest = np.array(counted, np.float64) - np.array(self._counted, np.float64)
        self._counted = counted
        self._recent = self._recent * _KEPT + newest
        processed, spent = self._recent[:, 0], self._recent[:, 1]
        usual = spent.sum() / max(1.0, processed.sum())
        costs: list[float] = np.divide(
            spent, processed, out=np.full(len(spent), usual), where=processed > 0
        ).tolist()
        return costs

    def _look_for_hot_key(self, index: int, columns: Columns, start: int, hashes: Hashes) -> None:
        """A partition alone has more rows than a task should: if it is one key's fault, says which."""
        if len(hashes) < _FEWEST:
            return
        self._is_suspicious = False
        _, first, counts = np.unique(hashes, return_index=True, return_counts=True)
        hottest = int(counts.argmax())
        reader = RowReader(self.inputs[index], self.strings, self.node.spec.routed_by(index) or ())
        place = start + int(first[hottest])
        (key,) = reader.tuples(columns, slice(place, place + 1))
        step = self.id.removesuffix(SPLIT)
        found = HotKey(step, key[0] if len(key) == 1 else key, float(counts[hottest]) / len(hashes))
        for hot in beyond_routing([found], self._exchange.tasks):
            if hot.key not in self._hot:
                self._hot[hot.key] = hot.share
                _log.warning("%s", warning(hot, self._exchange.tasks))

    def _begin(self, route: tuple[int, ...]) -> None:
        moves = moves_between(self._router.route, route)
        if moves:
            self._number += 1
            self._migration = Migration(self._number, moves, route)
