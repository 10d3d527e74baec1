"""The graph network of ms-stream 5.2: embeds tasks by their surroundings and learns a softmax over groups.

Trained anew for every graph, as in Algorithm 2, with JAX: an optional extra.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from penstock.placement.loss import LossWeights, loss
from penstock.placement.partitioner import Groups, check_groups
from penstock.placement.quality import objective
from penstock.placement.task_graph import Floats, TaskGraph
from penstock.query.errors import PenstockError

#: Even load matters more than even numbers: light tasks may well be many in one group.
_WEIGHTS = LossWeights(cut=1.0, count=0.02, load=1.0)


@dataclass(frozen=True)
class GraphNetwork:
    """A layer of GCN, one of GraphSAGE and two dense ones; the group with the largest chance is a task's.

    ``weights`` are relative to terms without units: loads and counts are taken as shares of an even group.
    The best of ``starts`` trainings, by eq. 13, is taken: one alone may end in a poor valley.
    """

    iterations: int = 250
    starts: int = 2
    width: int = 32
    learning_rate: float = 0.02
    weights: LossWeights = _WEIGHTS
    seed: int = 0
    name: str = "network"

    def __post_init__(self) -> None:
        if min(self.iterations, self.starts, self.width) < 1:
            raise PenstockError("iterations, starts and width of a graph network must be at least 1")

    def partition(self, graph: TaskGraph, groups: int) -> Groups:
        check_groups(groups)
        check_installed()
        if groups == 1 or len(graph) == 0:
            return (0,) * len(graph)
        found = []
        for start in range(self.starts):
            chances = self.chances(graph, groups, self.seed + start)
            found.append(tuple(int(group) for group in chances.argmax(1)))
        return min(found, key=lambda of: objective(graph, of, groups))

    def chances(self, graph: TaskGraph, groups: int, seed: int = 0) -> Floats:
        """Y: the chance of each task to belong to each group, after training from one start."""
        check_installed()
        loads, traffic = relative(graph, groups)
        tasks = len(graph)
        weights = LossWeights(  # (k / n)²: in eq. 33 an even group then counts 1, whatever the graph's size
            self.weights.cut, self.weights.count * (groups / tasks) ** 2, self.weights.load
        )
        train = _training(self.iterations, self.width, self.learning_rate)
        return np.asarray(train(loads, traffic, groups, weights, seed), np.float64)


def check_installed() -> None:
    """Raises unless the libraries of the optional extra are there."""
    missing = [name for name in ("jax", "optax") if find_spec(name) is None]
    if missing:
        raise PenstockError(
            f"the graph network needs {' and '.join(missing)}, which is not installed: "
            "pip install 'penstock[network]', or take the partitioner 'metis'"
        )


def relative(graph: TaskGraph, groups: int) -> tuple[Floats, Floats]:
    """Loads as shares of an even group, traffic with a mean of 1 per task: the network sees no units."""
    loads = np.asarray(graph.loads, np.float64)
    traffic = graph.traffic()
    mean_load, mean_traffic = loads.sum() / groups, traffic.sum() / max(len(graph), 1)
    return loads / (mean_load or 1.0), traffic / (mean_traffic or 1.0)


@lru_cache(maxsize=4)
def _training(iterations: int, width: int, learning_rate: float) -> Any:
    """Algorithm 2 as one compiled function of (loads, traffic, groups, weights, seed)."""
    import jax
    import jax.numpy as jnp
    import optax

    optimizer = optax.adam(learning_rate)

    def embedded(parameters: dict[str, Any], features: Any, gcn: Any, mean: Any) -> Any:
        hidden = jax.nn.relu(gcn @ features @ parameters["gcn"])
        sage = (
            jnp.concatenate([hidden, mean @ hidden], 1) @ parameters["sage"]
        )  # GraphSAGE, mean of neighbours
        return jnp.concatenate([features @ parameters["own"], jax.nn.relu(sage)], 1)

    def chances(parameters: dict[str, Any], features: Any, gcn: Any, mean: Any) -> Any:
        hidden = jax.nn.relu(embedded(parameters, features, gcn, mean) @ parameters["dense"])
        return jax.nn.softmax(hidden @ parameters["out"] + parameters["bias"], 1)

    def initial(seed: Any, inputs: int, groups: int) -> dict[str, Any]:
        shapes = {
            "own": (inputs, width),
            "gcn": (inputs, width),
            "sage": (2 * width, width),
            "dense": (2 * width, width),
            "out": (width, groups),
        }
        keys = jax.random.split(jax.random.PRNGKey(seed), len(shapes))
        drawn = {
            name: jax.random.normal(key, shape) / np.sqrt(shape[0])
            for key, (name, shape) in zip(keys, shapes.items(), strict=True)
        }
        return {**drawn, "bias": jnp.zeros(groups)}

    def train(loads: Any, traffic: Any, groups: int, weights: tuple[float, ...], seed: Any) -> Any:
        tasks = loads.shape[0]
        looped = traffic + jnp.eye(tasks)
        scale = 1.0 / jnp.sqrt(looped.sum(1))
        gcn = looped * scale[:, None] * scale[None, :]  # D^-½ (E + I) D^-½
        mean = traffic / jnp.maximum(traffic.sum(1, keepdims=True), 1e-9)
        # Line 18: task features beside edge features; rows of E tell tasks of equal load apart.
        features = jnp.concatenate([loads[:, None], looped], 1)

        def objective_of(parameters: dict[str, Any]) -> Any:
            return loss(chances(parameters, features, gcn, mean), loads, traffic, LossWeights(*weights))

        def step(state: Any, _: Any) -> Any:
            parameters, optimizing = state
            gradient = jax.grad(objective_of)(parameters)
            updates, optimizing = optimizer.update(gradient, optimizing)
            return (optax.apply_updates(parameters, updates), optimizing), None

        parameters = initial(seed, tasks + 1, groups)
        (parameters, _), _ = jax.lax.scan(step, (parameters, optimizer.init(parameters)), None, iterations)
        return chances(parameters, features, gcn, mean)

    compiled = jax.jit(train, static_argnums=2)

    def run(loads: Floats, traffic: Floats, groups: int, weights: LossWeights, seed: int) -> Any:
        terms = (weights.cut, weights.count, weights.load)
        return compiled(jnp.asarray(loads), jnp.asarray(traffic), groups, terms, seed)

    return run
