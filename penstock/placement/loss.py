"""The loss of the graph network: equations 31 to 35, over numpy and JAX arrays alike.

``y`` has a row per task and a column per group: the chance that the task belongs there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LossWeights:
    """What the three terms of eq. 35 count. Printed without, so that the largest unit decides alone."""

    cut: float = 1.0
    count: float = 1.0
    load: float = 1.0


def expected_cut(y: Any, traffic: Any) -> Any:
    """Σ (Y ⊘ Γ)(1 − Y)ᵀ ⊙ E, where Γ = Yᵀ H (eq. 31 and 32): the normalised cut that is to be expected.

    H is the degree of the tasks, here what each exchanges with all others. Printed without the transposition,
    which does not multiply. A group that nobody may belong to adds nothing.
    """
    degree = traffic.sum(1)
    gamma = y.T @ degree
    return (((y / (gamma + (gamma == 0))) @ (1.0 - y).T) * traffic).sum()


def count_imbalance(y: Any) -> Any:
    """Σ (1ᵀ Y − n / k)² (eq. 33): how uneven the groups are in number."""
    tasks, groups = y.shape
    return ((y.sum(0) - tasks / groups) ** 2).sum()


def load_imbalance(y: Any, loads: Any) -> Any:
    """Σ (Yᵀ B 1 − ΣB / k)² (eq. 34): how uneven they are in load. Its first line lacks the square."""
    return ((y.T @ loads - loads.sum() / y.shape[1]) ** 2).sum()


def loss(y: Any, loads: Any, traffic: Any, weights: LossWeights) -> Any:
    """LF of eq. 35, with a weight for each term."""
    return (
        weights.cut * expected_cut(y, traffic)
        + weights.count * count_imbalance(y)
        + weights.load * load_imbalance(y, loads)
    )
