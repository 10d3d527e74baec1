"""The policies by the name that users write."""

from __future__ import annotations

from collections.abc import Callable

from penstock.query.errors import PenstockError
from penstock.scheduling.congestion import Congestion
from penstock.scheduling.first_come import FirstCome
from penstock.scheduling.highest_rate import HighestRate
from penstock.scheduling.min_cost import MinCost
from penstock.scheduling.min_latency import MinLatency
from penstock.scheduling.min_memory import MinMemory
from penstock.scheduling.policy import Policy
from penstock.scheduling.random_order import RandomOrder
from penstock.scheduling.round_robin import RoundRobin
from penstock.scheduling.state_based import StateBased
from penstock.scheduling.thresholds import Adaptation

POLICIES: dict[str, Callable[[], Policy]] = {
    "congestion": Congestion,
    "first_come": FirstCome,
    "highest_rate": HighestRate,
    "min_cost": MinCost,
    "min_latency": MinLatency,
    "min_memory": MinMemory,
    "random": RandomOrder,
    "round_robin": RoundRobin,
    "state": StateBased,
}


def policy_named(policy: str | Policy, adaptation: Adaptation | None = None) -> Policy:
    """The policy of that name, or the policy itself. ``adaptation``: thresholds that fit the run's blocks."""
    if not isinstance(policy, str):
        return policy
    if policy == "state" and adaptation is not None:
        return StateBased(adaptation)
    try:
        return POLICIES[policy]()
    except KeyError:
        raise PenstockError(
            f"unknown policy: '{policy}'; policies are {', '.join(sorted(POLICIES))}"
        ) from None
