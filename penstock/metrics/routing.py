"""What is known of a keyed operator that runs in several tasks: its imbalance, and partitions that moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class RoutingMetrics:
    """One operator at one moment. Planned, requested and observed count virtual partitions that move."""

    tasks: int
    rows: tuple[int, ...]  # by task, since the start
    lit: float = 0.0  # as last measured
    lit_expected: float = 0.0  # as the last plan stated it beforehand
    planned: int = 0
    requested: int = 0
    observed: int = 0  # those whose new owner has taken over
    hot_keys: Mapping[Any, float] = field(default_factory=dict)  # beyond any routing, with their share
