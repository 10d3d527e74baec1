"""The binding policies and the installations by the names that users write."""

from __future__ import annotations

from collections.abc import Callable

from penstock.binding.barrier import Barrier
from penstock.binding.greedy import Greedy
from penstock.binding.greedy_literal import GreedyLiteral
from penstock.binding.installation import Installation
from penstock.binding.non_blocking import NonBlocking
from penstock.binding.policy import BindingPolicy
from penstock.binding.shared_queue import SharedQueue
from penstock.binding.static import DealingOrder, Static
from penstock.query.errors import PenstockError

BINDINGS: dict[str, Callable[[], BindingPolicy]] = {
    "greedy": Greedy,
    "greedy_by_type": lambda: Greedy(DealingOrder.BY_TYPE, name="greedy_by_type"),
    "greedy_eager": lambda: Greedy(tolerance=0.0, name="greedy_eager"),
    "greedy_literal": GreedyLiteral,
    "static": Static,
    "static_interleaved": Static,
    "static_by_type": lambda: Static(DealingOrder.BY_TYPE),
    "static_shuffled": lambda: Static(DealingOrder.SHUFFLED),
}

INSTALLATIONS: dict[str, type[Installation]] = {
    "non_blocking": NonBlocking,
    "barrier": Barrier,
    "shared_queue": SharedQueue,
}


def binding_named(policy: str | BindingPolicy) -> BindingPolicy:
    """The binding policy of that name, or the policy itself."""
    if not isinstance(policy, str):
        return policy
    if policy not in BINDINGS:
        raise PenstockError(f"unknown binding: '{policy}'; bindings are {', '.join(sorted(BINDINGS))}")
    return BINDINGS[policy]()


def installation_named(name: str) -> type[Installation]:
    """The installation of that name."""
    if name not in INSTALLATIONS:
        raise PenstockError(
            f"unknown installation: '{name}'; installations are {', '.join(sorted(INSTALLATIONS))}"
        )
    return INSTALLATIONS[name]
