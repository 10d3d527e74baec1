"""The weighted latency gradient: queries that become slower go a little first (enjima eq. 3)."""

from __future__ import annotations

import numpy as np

from penstock.scheduling.policy import Floats
from penstock.scheduling.topology import Topology


def query_weight(gradient: Floats) -> Floats:
    """W(Q) = clip(gradient, −1, 1) / 10 + 1; 1 where the gradient is not known."""
    return np.clip(np.nan_to_num(gradient, nan=0.0), -1.0, 1.0) / 10.0 + 1.0


def operator_weight(topology: Topology, gradient: Floats) -> Floats:
    """The weight of each operator: the largest of the queries that it works for."""
    weights = np.ones(len(topology))
    lists = topology.sink_lists
    working = lists.starts[:-1] < lists.starts[1:]
    if lists.items.size:
        by_sink = query_weight(gradient)[lists.items]
        weights[working] = np.maximum.reduceat(by_sink, lists.starts[:-1][working])
    return weights


def mean_gradient(gradient: Floats) -> float:
    """Over all queries of which it is known; 0 if it is of none."""
    known = gradient[~np.isnan(gradient)]
    return float(known.mean()) if known.size else 0.0
