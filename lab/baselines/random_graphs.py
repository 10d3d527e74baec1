"""Task graphs drawn by a seed: layered topologies with skewed loads, to compare partitioners on."""

from __future__ import annotations

import numpy as np

from penstock.placement.task_graph import TaskEdge, TaskGraph


def layered(tasks: int, seed: int, *, layers: int = 5, readers: int = 2, skew: float = 1.0) -> TaskGraph:
    """Operators in layers, each task sending to some of the next layer; loads and rates are log-normal.

    That is how topologies of several stages look, and how unequal their tasks are with keyed streams:
    ``skew`` is the standard deviation of the logarithm.
    """
    random = np.random.default_rng(seed)
    layer_of = np.sort(random.integers(0, layers, tasks))
    layer_of[: min(layers, tasks)] = np.arange(min(layers, tasks))  # no layer is empty
    layer_of = np.sort(layer_of)
    loads = np.exp(random.normal(0.0, skew, tasks)) * 0.05
    edges: list[TaskEdge] = []
    for task in range(tasks):
        following = np.flatnonzero(layer_of == layer_of[task] + 1)
        if len(following):
            chosen = random.choice(following, min(readers, len(following)), replace=False)
            edges += [TaskEdge(task, int(other), float(np.exp(random.normal(4.0, skew)))) for other in chosen]
    return TaskGraph(tuple(loads.tolist()), tuple(edges))
