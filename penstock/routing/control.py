"""When a plan is carried out: loads are smoothed, moves cool down, and what gains nothing is left alone.

State that travels costs time, and measured loads are noisy. So what is *planned* is *requested* only if
enough looks have passed since the last one and LIT is expected to fall by enough; what a batch then ran with
is *observed*. The three are kept apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.query.errors import PenstockError
from penstock.routing.imbalance import load_imbalance
from penstock.routing.load import DEFAULT_MU, MeasuredLoad, combined_loads, task_loads
from penstock.routing.rebalancer import DEFAULT_CHI, Rebalancer, RoutePlan
from penstock.routing.route import Move, Route


@dataclass(frozen=True)
class LoadHistory:
    """What the control remembers from look to look."""

    loads: tuple[float, ...] = ()  # smoothed, by virtual partition
    looks: int = 0  # since the last requested move
    requested: int = 0  # moves requested so far


@dataclass(frozen=True)
class Decision:
    """What one look came to."""

    planned: RoutePlan
    requested: Route  # the planned route, or the one that is
    moves: tuple[Move, ...]  # from the route that is to the requested one
    lit: float  # of what was measured since the last look, under the route that it was measured with


@dataclass(frozen=True)
class RoutingControl:
    """How a route follows the load.

    ``chi`` triggers, as in the paper; ``smoothing`` is the weight of the newest look; ``cooldown`` how many
    looks follow a move before the next one; ``least_gain`` how much LIT must be expected to fall.
    """

    chi: float = DEFAULT_CHI
    settle: float = 0.5
    smoothing: float = 0.5
    cooldown: int = 2
    least_gain: float = 0.05
    mu: float = DEFAULT_MU
    rebalancer: Rebalancer = field(init=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.smoothing <= 1.0:
            raise PenstockError(f"smoothing must be above 0 and at most 1: got {self.smoothing!r}")
        if self.cooldown < 0 or self.least_gain < 0:
            raise PenstockError("cooldown and least_gain must not be negative")
        object.__setattr__(self, "rebalancer", Rebalancer(self.chi, self.settle))

    def look(self, observed: Sequence[MeasuredLoad], memory: LoadHistory) -> tuple[Decision, LoadHistory]:
        """What to do after these measurements of the operators that share a route, and what to remember."""
        route, tasks = observed[0].route, observed[0].tasks
        measured = combined_loads(observed, self.mu)
        if not any(measured):  # an idle look says nothing
            return Decision(RoutePlan(route, (), 0.0, 0.0), route, (), 0.0), memory
        smoothed = self._smoothed(measured, memory)
        lit = load_imbalance(task_loads(route, tasks, measured))
        plan = self.rebalancer.plan(route, tasks, smoothed)
        looks = memory.looks + 1
        gains = plan.lit_before - plan.lit_expected >= self.least_gain
        if plan.moves and gains and looks > self.cooldown:
            memory = LoadHistory(smoothed, 0, memory.requested + len(plan.moves))
            return Decision(plan, plan.route, plan.moves, lit), memory
        return Decision(plan, route, (), lit), LoadHistory(smoothed, looks, memory.requested)

    def _smoothed(self, measured: tuple[float, ...], memory: LoadHistory) -> tuple[float, ...]:
        if len(memory.loads) != len(measured):
            return measured
        return tuple(
            self.smoothing * new + (1 - self.smoothing) * old
            for new, old in zip(measured, memory.loads, strict=True)
        )


def control_of(rebalance: float | RoutingControl | None) -> RoutingControl | None:
    """What users write: a threshold, None for never, or all of it."""
    if rebalance is None or isinstance(rebalance, RoutingControl):
        return rebalance
    if isinstance(rebalance, bool) or not isinstance(rebalance, int | float):
        raise PenstockError(
            f"rebalance must be a share, or None for never: got {rebalance!r}; write e.g. {DEFAULT_CHI}"
        )
    return RoutingControl(chi=float(rebalance))
