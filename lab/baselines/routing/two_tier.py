"""Two-tier grouping: the router and the control of this package behind the interface of the others."""

from __future__ import annotations

from penstock.routing.control import Decision, LoadHistory, RoutingControl
from penstock.routing.load import MeasuredLoad
from penstock.routing.route import even_route
from penstock.routing.router import Hashes, Tasks, TwoTierRouter


class TwoTierGrouping:
    """A key belongs to one task at a time; ``look`` lets partitions move."""

    name = "two_tier"
    splits_keys = False

    def __init__(self, tasks: int, partitions: int, control: RoutingControl | None = None) -> None:
        self.router = TwoTierRouter(even_route(partitions, tasks), tasks)
        self.control = control or RoutingControl()
        self._memory = LoadHistory()

    def assign(self, hashes: Hashes) -> Tasks:
        self.router.split(hashes)  # which counts the rows
        return self.router.tasks_of(hashes)

    def look(self, cpu_ns: tuple[float, ...]) -> Decision:
        """What was handed out since the last look, with the time that each task took, may move partitions."""
        router = self.router
        observed = MeasuredLoad(router.route, router.tasks, router.take_rows(), cpu_ns)
        decision, self._memory = self.control.look([observed], self._memory)
        for move in decision.moves:
            router.apply(move)
        return decision
