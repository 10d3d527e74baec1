"""Figures per operator of a run: how used each was, and where events waited (edgewise 5.3)."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.metrics.operators import OperatorMetrics
from penstock.metrics.run import RunMetrics

_INSTANCE = re.compile(r"\.\d+$")
_SHARE = ".share"  # how the filter that deals messages out to an instance is called


@dataclass(frozen=True)
class OperatorFigures:
    """One operator, averaged over its instances."""

    queue_ms: float  # T_Q: behind other events
    schedule_ms: float  # T_S: at the head of the queue, for a turn
    compute_ms: float  # T_C: the work on one event
    utilisation: float  # ρ_w
    events_per_turn: float


def operator_figures(metrics: RunMetrics) -> dict[str, OperatorFigures]:
    """By operator, in the order of the graph.

    Sources, filters that deal messages out to instances, and unions are no operators of the paper's figure 6
    and are left out.
    """
    instances: dict[str, list[OperatorMetrics]] = {}
    for operator in metrics.operators:
        if operator.kind not in ("source", "union") and not operator.id.endswith(_SHARE):
            instances.setdefault(_INSTANCE.sub("", operator.id), []).append(operator)
    return {name: _averaged(operators) for name, operators in instances.items()}


def utilisation_variation(operators: Mapping[str, OperatorFigures]) -> float:
    """The coefficient of variation of the operators' utilisation: 0 if all are used alike (edgewise 7.3.1).

    >>> even = OperatorFigures(0, 0, 0, 0.5, 1)
    >>> utilisation_variation({"a": even, "b": even})
    0.0
    """
    shares = [operator.utilisation for operator in operators.values()]
    mean = statistics.fmean(shares) if shares else 0.0
    return statistics.pstdev(shares) / mean if mean > 0.0 else math.nan


def _averaged(instances: list[OperatorMetrics]) -> OperatorFigures:
    return OperatorFigures(
        queue_ms=_mean(operator.queue_ms for operator in instances),
        schedule_ms=_mean(operator.schedule_ms for operator in instances),
        compute_ms=_mean(operator.compute_ms for operator in instances),
        utilisation=_mean(operator.utilisation for operator in instances),
        events_per_turn=_mean(
            operator.processed / operator.turns if operator.turns else math.nan for operator in instances
        ),
    )


def _mean(values: Iterable[float]) -> float:
    """Of those that are known."""
    known = [value for value in values if not math.isnan(value)]
    return statistics.fmean(known) if known else math.nan
