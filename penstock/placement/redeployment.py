"""When to place anew: LIN above η asks for a plan, and only a plan that pays for its moves is carried out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from penstock.placement.deployment import DEFAULT_THRESHOLD, Deployment, deploy
from penstock.placement.metis import Metis
from penstock.placement.nodes import Host, node_imbalance
from penstock.placement.partitioner import Partitioner, renumbered
from penstock.placement.quality import group_loads
from penstock.placement.task_graph import TaskGraph

#: η: at a mean utilisation of 55–60 % no node is above 80 % (ms-stream 7.3).
DEFAULT_IMBALANCE = 0.4

#: Task → node.
Placement = tuple[int, ...]


class RedeploymentOutcome(Enum):
    """What came of looking."""

    BALANCED = "balanced"  # LIN is within η
    UNPLACEABLE = "unplaceable"  # a new plan has groups that fit nowhere
    NO_BETTER = "no better"  # a new plan is no more even
    NOT_WORTH_IT = "not worth it"  # it is, but its moves cost more
    MOVE = "move"  # carry it out


@dataclass(frozen=True)
class MoveCosts:
    """What a move costs and how long the next placement is expected to last.

    Gain and cost are both in seconds of work: of the busiest node, which everybody waits for, and of standing
    still.
    """

    move_s: float = 0.5  # that a task stands still when it moves, whatever it carries
    state_s: tuple[float, ...] = ()  # by task: to carry its state, at the rate of the network
    lasts_s: float = 60.0  # until the load is another; a gain counts no longer

    def of(self, tasks: Sequence[int], loads: Sequence[float]) -> float:
        """Work that is delayed while these tasks move: a task that does nothing delays nothing."""
        total = 0.0
        for task in tasks:
            still_s = self.move_s + (self.state_s[task] if self.state_s else 0.0)
            total += still_s * loads[task]
        return total


@dataclass(frozen=True)
class RedeploymentDecision:
    """The outcome, with what is expected of it beforehand."""

    outcome: RedeploymentOutcome
    placement: Placement  # what holds from now on
    lin_before: float
    lin_expected: float  # of the plan, whether it is carried out or not
    gain_s: float = 0.0
    cost_s: float = 0.0
    moved: tuple[int, ...] = ()  # tasks
    deployment: Deployment | None = None


def utilisation(graph: TaskGraph, nodes: Sequence[Host], placement: Placement) -> dict[int, float]:
    """The share of its capacity that every activated node uses, by node."""
    loads = {number: node.load for number, node in enumerate(nodes) if node.active}
    for task, number in enumerate(placement):
        loads[number] = loads.get(number, nodes[number].load) + graph.loads[task]
    return {number: load / nodes[number].capacity for number, load in loads.items()}


def decide(
    graph: TaskGraph,
    nodes: Sequence[Host],
    placement: Placement,
    groups: int,
    *,
    partitioner: Partitioner | None = None,
    imbalance: float = DEFAULT_IMBALANCE,
    threshold: float = DEFAULT_THRESHOLD,
    costs: MoveCosts | None = None,
) -> RedeploymentDecision:
    """Looks at the nodes once; ``nodes`` have the loads of everything but these tasks."""
    costs = costs or MoveCosts()
    before = utilisation(graph, nodes, placement)
    lin = node_imbalance(before.values())
    if lin <= imbalance:
        return RedeploymentDecision(RedeploymentOutcome.BALANCED, placement, lin, lin)
    of = renumbered((partitioner or Metis()).partition(graph, groups))  # no node is woken for an empty group
    deployment = deploy(group_loads(graph, of, len(set(of))).tolist(), nodes, threshold)
    if not deployment.complete:
        return RedeploymentDecision(
            RedeploymentOutcome.UNPLACEABLE, placement, lin, lin, deployment=deployment
        )
    planned = tuple(deployment.node_of[group] for group in of)
    after = utilisation(graph, nodes, planned)
    expected = node_imbalance(after.values())
    moved = tuple(task for task, number in enumerate(planned) if number != placement[task])
    gain_s = (_worst(before) - _worst(after)) * costs.lasts_s
    cost_s = costs.of(moved, graph.loads)
    outcome = RedeploymentOutcome.MOVE
    if expected >= lin or gain_s <= 0.0:
        outcome = RedeploymentOutcome.NO_BETTER
    elif gain_s <= cost_s:
        outcome = RedeploymentOutcome.NOT_WORTH_IT
    chosen = planned if outcome is RedeploymentOutcome.MOVE else placement
    return RedeploymentDecision(outcome, chosen, lin, expected, gain_s, cost_s, moved, deployment)


def _worst(shares: Mapping[int, float]) -> float:
    return max(shares.values(), default=0.0)
