"""Load per virtual partition and per task (ms-stream equations 6 to 9).

As printed, the denominators of equations 6 and 8 are a product of two sums, and shares would not add up to
the node's load. Meant is each one's weighted share: what it weighs, of what all that run on its node weigh,
of what that node is busy with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.routing.route import Route

#: The weight of CPU against memory: what stalls a task first is time, and state is on disk besides.
DEFAULT_MU = 0.9


@dataclass(frozen=True)
class Share:
    """What is known of one task, or of one virtual partition of a task, since the last look."""

    rows: int  # pr: events processed
    cost: float = 1.0  # w: time complexity, measured as CPU ns a row
    space: float = 1.0  # β: space complexity, measured as bytes of state a row
    running: bool = True  # ρ (eq. 7)


@dataclass(frozen=True)
class NodeUse:
    """How busy a node is, from 0 to 1: L and M of the equations."""

    cpu: float = 1.0
    memory: float = 1.0


def cpu_loads(shares: Sequence[Share], cpu: float) -> tuple[float, ...]:
    """Equation 6 for all that runs on one node: w·pr over the sum of w·pr·ρ, of the node's CPU utilisation.

    >>> cpu_loads([Share(100, cost=3.0), Share(100)], 0.8)
    (0.6000000000000001, 0.2)
    """
    return _weighted([share.cost * share.rows * share.running for share in shares], cpu)


def memory_loads(shares: Sequence[Share], memory: float) -> tuple[float, ...]:
    """Equation 8: the same with β and the node's memory utilisation."""
    return _weighted([share.space * share.rows * share.running for share in shares], memory)


def loads(shares: Sequence[Share], node: NodeUse, mu: float = DEFAULT_MU) -> tuple[float, ...]:
    """Equation 9: R = μ·R_C + (1 − μ)·R_M for all that runs on one node."""
    if not 0.0 <= mu <= 1.0:
        raise ValueError(f"mu must be between 0 and 1: got {mu!r}")
    return tuple(
        mu * cpu + (1.0 - mu) * memory
        for cpu, memory in zip(cpu_loads(shares, node.cpu), memory_loads(shares, node.memory), strict=True)
    )


@dataclass(frozen=True)
class MeasuredLoad:
    """What was measured of an operator's virtual partitions since the last look.

    ``cpu_ns`` is CPU time by task, which the task's partitions share by their rows: so w is what a row costs
    in that task. ``state`` is what is held by partition, in any unit; empty where nobody counts it.
    """

    route: Route  # as it was while this was measured
    tasks: int
    rows: tuple[int, ...]  # by virtual partition
    cpu_ns: tuple[float, ...]  # by task
    state: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name, found, wanted in (
            ("rows", len(self.rows), len(self.route)),
            ("cpu_ns", len(self.cpu_ns), self.tasks),
            ("state", len(self.state) or len(self.route), len(self.route)),
        ):
            if found != wanted:
                raise ValueError(f"{name} has {found} entries, the route and its tasks ask for {wanted}")


def partition_loads(observed: MeasuredLoad, mu: float = DEFAULT_MU) -> tuple[float, ...]:
    """The load of every virtual partition, as its share of all work of the operator: they sum up to 1.

    The nodes' own utilisation cancels out: tasks of one operator are compared with each other, and CPU time
    says already how busy each of them kept its node.
    """
    handled = [0] * observed.tasks
    for partition, task in enumerate(observed.route):
        handled[task] += observed.rows[partition]
    # A task whose time is too short to be measured costs what rows cost elsewhere.
    usual = sum(observed.cpu_ns) / max(1, sum(handled))
    costs = [
        cpu_ns / rows if rows and cpu_ns > 0 else usual
        for cpu_ns, rows in zip(observed.cpu_ns, handled, strict=True)
    ]
    spent = [rows * (costs[task] or 1.0) for task, rows in zip(observed.route, observed.rows, strict=True)]
    if not any(observed.state):
        return _weighted(spent, 1.0)
    held = _weighted(observed.state, 1.0)  # β·pr, as measured
    return tuple(
        mu * cpu + (1.0 - mu) * memory for cpu, memory in zip(_weighted(spent, 1.0), held, strict=True)
    )


def combined_loads(observed: Sequence[MeasuredLoad], mu: float = DEFAULT_MU) -> tuple[float, ...]:
    """The same for several operators that share a route, each with the weight of its CPU time."""
    if len(observed) == 1:
        return partition_loads(observed[0], mu)
    spent = [sum(one.cpu_ns) for one in observed]
    weights = _weighted(spent if any(spent) else [float(sum(one.rows)) for one in observed], 1.0)
    each = [partition_loads(one, mu) for one in observed]
    return tuple(
        sum(weight * loads[partition] for weight, loads in zip(weights, each, strict=True))
        for partition in range(len(observed[0].route))
    )


def task_loads(route: Route, tasks: int, by_partition: Sequence[float]) -> tuple[float, ...]:
    """A task's load is that of its partitions.

    >>> task_loads((0, 1, 0), 2, (1.0, 2.0, 3.0))
    (4.0, 2.0)
    """
    totals = [0.0] * tasks
    for partition, task in enumerate(route):
        totals[task] += by_partition[partition]
    return tuple(totals)


def _weighted(weights: Sequence[float], total: float) -> tuple[float, ...]:
    whole = sum(weights)
    return tuple(weight / whole * total if whole else 0.0 for weight in weights)
