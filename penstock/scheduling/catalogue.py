"""The policies by the name that users write."""

from __future__ import annotations

from penstock.query.errors import PenstockError
from penstock.scheduling.congestion import Congestion
from penstock.scheduling.policy import Policy
from penstock.scheduling.round_robin import RoundRobin

POLICIES: dict[str, type[Policy]] = {"congestion": Congestion, "round_robin": RoundRobin}


def policy_named(policy: str | Policy) -> Policy:
    """The policy of that name, or the policy itself."""
    if not isinstance(policy, str):
        return policy
    try:
        return POLICIES[policy]()
    except KeyError:
        raise PenstockError(
            f"unknown policy: '{policy}'; policies are {', '.join(sorted(POLICIES))}"
        ) from None
