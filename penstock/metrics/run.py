"""A whole run at one moment: every operator's metrics and every query's latency."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from penstock.metrics.degree import DegreeMetrics
from penstock.metrics.histogram import LatencySnapshot
from penstock.metrics.operators import OperatorMetrics
from penstock.metrics.rebinding import RebindMetrics
from penstock.metrics.routing import RoutingMetrics
from penstock.metrics.watch import Totals


@dataclass(frozen=True)
class RunMetrics:
    """An immutable snapshot of a run."""

    elapsed_s: float
    operators: tuple[OperatorMetrics, ...]
    latency: dict[str, LatencySnapshot]  # by query, which is the sink's name
    memory_bytes: int = 0  # allocated for blocks
    memory_cap_bytes: int = 0
    workers: int = 1
    decision_ns: int = 0  # spent by workers on picking operators and giving them back
    decisions: int = 0  # how often they did
    planning_ns: int = 0  # spent on measuring operators and planning epochs
    rebinding: RebindMetrics | None = None  # None: operators are not bound to threads
    routing: dict[str, RoutingMetrics] = field(default_factory=dict)  # by operator that runs in several tasks
    degrees: dict[str, DegreeMetrics] = field(default_factory=dict)  # by step that has instances
    _by_id: dict[str, OperatorMetrics] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._by_id.update((operator.id, operator) for operator in self.operators)

    def __getitem__(self, operator_id: str) -> OperatorMetrics:
        return self._by_id[operator_id]

    @property
    def read(self) -> int:
        """Events that all sources together have read."""
        return sum(operator.processed for operator in self.operators if operator.kind == "source")

    @property
    def written(self) -> int:
        """Events that all sinks together have written."""
        return sum(operator.processed for operator in self.operators if operator.kind == "sink")

    @property
    def late(self) -> int:
        return sum(operator.late for operator in self.operators)

    @property
    def failed(self) -> dict[str, int]:
        """Events that were set aside, by the step whose function failed for them."""
        return {operator.id: operator.failed for operator in self.operators if operator.failed}

    def totals(self, bad_records: int = 0, heard: Mapping[str, object] | None = None) -> Totals:
        """The same in a few figures, alike for all runtimes."""
        return Totals(
            read=self.read,
            written=self.written,
            late=self.late,
            failed=sum(self.failed.values()),
            bad_records=bad_records,
            waiting=sum(operator.pending for operator in self.operators),
            written_by_query={one.id: one.processed for one in self.operators if one.kind == "sink"},
            heard=heard or {},
        )

    @property
    def busy_share(self) -> float:
        """The share of the workers' time that was spent inside turns."""
        return self._busy_ns / (self.elapsed_s * 1e9 * self.workers) if self.elapsed_s else 0.0

    @property
    def decision_share(self) -> float:
        """What workers spend on deciding who runs next, as a share of the time inside turns."""
        return self.decision_ns / self._busy_ns if self._busy_ns else 0.0

    @property
    def planning_share(self) -> float:
        """What planning epochs takes, as a share of the time inside turns."""
        return self.planning_ns / self._busy_ns if self._busy_ns else 0.0

    @property
    def utilisation(self) -> dict[str, float]:
        """ρ_w by operator, sources left out: what waits for them does not wait in a queue of the engine."""
        return {op.id: op.utilisation for op in self.operators if op.kind != "source"}

    @property
    def utilisation_variation(self) -> float:
        """The coefficient of variation of the operators' utilisation: 0 if all are used alike (edgewise
        7.3.1)."""
        shares = list(self.utilisation.values())
        mean = sum(shares) / len(shares) if shares else 0.0
        if not mean > 0.0:
            return math.nan
        return math.sqrt(sum((share - mean) ** 2 for share in shares) / len(shares)) / mean

    def since(self, earlier: RunMetrics) -> RunMetrics:
        """What came after ``earlier``, an older snapshot of the same run: to leave a warm-up out."""
        return replace(
            self,
            elapsed_s=self.elapsed_s - earlier.elapsed_s,
            operators=tuple(operator.since(earlier[operator.id]) for operator in self.operators),
            latency={query: now - earlier.latency[query] for query, now in self.latency.items()},
            decision_ns=self.decision_ns - earlier.decision_ns,
            decisions=self.decisions - earlier.decisions,
            planning_ns=self.planning_ns - earlier.planning_ns,
            rebinding=_rebinding_since(self.rebinding, earlier.rebinding),
            _by_id={},
        )

    @property
    def _busy_ns(self) -> int:
        return sum(operator.busy_ns for operator in self.operators)


def _rebinding_since(now: RebindMetrics | None, earlier: RebindMetrics | None) -> RebindMetrics | None:
    return now if now is None or earlier is None else now.since(earlier)
