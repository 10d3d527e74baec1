"""The partitioners by the names that users write."""

from __future__ import annotations

from collections.abc import Callable

from penstock.placement.first_fit import FirstFit
from penstock.placement.metis import Metis
from penstock.placement.network import GraphNetwork
from penstock.placement.partitioner import Partitioner
from penstock.placement.round_robin import RoundRobinPlacement
from penstock.query.errors import PenstockError

PARTITIONERS: dict[str, Callable[[], Partitioner]] = {
    "metis": Metis,
    "network": GraphNetwork,
    "first_fit": FirstFit,
    "round_robin": RoundRobinPlacement,
}


def partitioner_named(partitioner: str | Partitioner) -> Partitioner:
    """The partitioner of that name, or the partitioner itself."""
    if not isinstance(partitioner, str):
        return partitioner
    if partitioner not in PARTITIONERS:
        raise PenstockError(
            f"unknown partitioner: '{partitioner}'; partitioners are {', '.join(sorted(PARTITIONERS))}"
        )
    return PARTITIONERS[partitioner]()
