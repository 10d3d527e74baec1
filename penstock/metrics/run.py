"""A whole run at one moment: every operator's metrics and every query's latency."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.metrics.histogram import LatencySnapshot
from penstock.metrics.operators import OperatorMetrics


@dataclass(frozen=True)
class RunMetrics:
    """An immutable snapshot of a run."""

    elapsed_s: float
    operators: tuple[OperatorMetrics, ...]
    latency: dict[str, LatencySnapshot]  # by query, which is the sink's name
    memory_bytes: int = 0  # allocated for blocks
    memory_cap_bytes: int = 0
    workers: int = 1
    decision_ns: int = 0  # spent on deciding who runs next
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
    def busy_share(self) -> float:
        """The share of the workers' time that was spent inside turns."""
        busy = sum(operator.busy_ns for operator in self.operators)
        return busy / (self.elapsed_s * 1e9 * self.workers) if self.elapsed_s else 0.0
