"""The rebinding paper's experiments on its machine: 24 threads, simulated, for every way of binding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from lab.sim.arrivals import morning
from lab.sim.bound import Rebinding, simulate_bound
from lab.sim.machine import Machine
from lab.sim.prediction import highest
from lab.sim.results import SimResult
from lab.sim.scheduled import Run
from lab.sim.traffic_load import TrafficLoad
from penstock.binding.barrier import Barrier
from penstock.binding.greedy import Greedy
from penstock.binding.greedy_literal import GreedyLiteral
from penstock.binding.non_blocking import NonBlocking
from penstock.binding.shared_queue import SharedQueue
from penstock.binding.static import DealingOrder, Static

#: The paper's 24 threads. All costs are assumed, as of a C++ engine; the benchmark puts measured ones in
#: their place, except for ``operator_switch_ns``. ``serial_ns`` is one push and one pop on a priority queue
#: that 24 threads share.
SERVER = Machine(
    cores=24,
    context_switch_ns=2_000,
    operator_switch_ns=1_000,
    serial_ns=1_000,
    barrier_ns=20_000,
    rebind_ns=1_000,
)

STATIC = ("static_interleaved", "static_by_type", "static_shuffled")

#: The ways of binding by name; the greedy ones start from the order given, unless their name says another,
#: and every seed shuffles anew. The eager ones have no tolerance: they go on rebinding on noisy loads.
VARIANTS: dict[str, Callable[[DealingOrder, int], Rebinding]] = {
    "static_interleaved": lambda first, seed: Rebinding(Static(DealingOrder.INTERLEAVED), NonBlocking),
    "static_by_type": lambda first, seed: Rebinding(Static(DealingOrder.BY_TYPE), NonBlocking),
    "static_shuffled": lambda first, seed: Rebinding(Static(DealingOrder.SHUFFLED, seed), NonBlocking),
    "single_queue": lambda first, seed: Rebinding(Static(), SharedQueue),
    "greedy_blocking": lambda first, seed: Rebinding(Greedy(first), Barrier),
    "greedy": lambda first, seed: Rebinding(Greedy(first), NonBlocking),
    "greedy_by_type": lambda first, seed: Rebinding(Greedy(DealingOrder.BY_TYPE), NonBlocking),
    "greedy_eager_blocking": lambda first, seed: Rebinding(Greedy(first, tolerance=0.0), Barrier),
    "greedy_eager": lambda first, seed: Rebinding(Greedy(first, tolerance=0.0), NonBlocking),
    "greedy_literal": lambda first, seed: Rebinding(GreedyLiteral(first), NonBlocking),
}

DEADLINE_MS = 20.0


@dataclass(frozen=True)
class Setting:
    """What all variants of an experiment share.

    first: the binding that the greedy ones start with. settled_s: when what they do about it is over; results
    from before are not asked whether they came in time.
    """

    threads: int = 24
    seconds: float = 60.0
    every_s: float = 2.0
    machine: Machine = SERVER
    first: DealingOrder = DealingOrder.INTERLEAVED
    settled_s: float = 10.0


def run_variant(name: str, load: TrafficLoad, setting: Setting | None = None, seed: int = 0) -> SimResult:
    """One way of binding under one load."""
    setting = setting or Setting()
    rebinding = replace(
        VARIANTS[name](setting.first, seed), every_ns=int(setting.every_s * 1e9), drift_ns=load.frame_ns
    )
    run = Run(setting.seconds, seed=seed)
    return simulate_bound(load.graph(), rebinding, setting.machine, setting.threads, run)


def compare(
    load: TrafficLoad,
    variants: Iterable[str] = tuple(VARIANTS),
    setting: Setting | None = None,
    seeds: Sequence[int] = (0,),
) -> dict[str, list[SimResult]]:
    """Every variant under the same load, once per seed. About 10 s of work for a minute of 300 operators."""
    return {name: [run_variant(name, load, setting, seed) for seed in seeds] for name in variants}


def blocking_experiment(
    setting: Setting | None = None, agents: int = 120_000, seeds: Sequence[int] = (0,)
) -> dict[str, list[SimResult]]:
    """Figure 2: greedy with and without barriers, constant load."""
    return compare(TrafficLoad(agents), ("greedy_blocking", "greedy", "greedy_literal"), setting, seeds)


def constant_experiment(
    setting: Setting | None = None, agents: int = 220_000, seeds: Sequence[int] = (0,)
) -> dict[str, list[SimResult]]:
    """Figure 3: all variants, constant load."""
    return compare(TrafficLoad(agents), setting=setting, seeds=seeds)


def varying_experiment(
    setting: Setting | None = None, peak: int = 300_000, seeds: Sequence[int] = (0,)
) -> dict[str, list[SimResult]]:
    """Figure 4: all variants over a morning that is squeezed into the setting's seconds."""
    setting = setting or Setting()
    return compare(TrafficLoad(morning(peak, setting.seconds)), setting=setting, seeds=seeds)


def share_in_time(result: SimResult, setting: Setting | None = None) -> float:
    """The share of results within the deadline, once the bindings have settled."""
    return result.under(DEADLINE_MS, (setting or Setting()).settled_s)


def highest_agents(
    name: str,
    load: TrafficLoad,
    setting: Setting | None = None,
    *,
    share: float = 0.99,
    accuracy: float = 0.02,
    seed: int = 0,
) -> int:
    """The most agents with which such a share of results comes in time: the highest load it sustains.

    ``load`` gives the shape, its number of agents the scale to begin with. About ten runs.
    """
    setting = setting or Setting(seconds=20.0)

    def sustains(factor: float) -> bool:
        return share_in_time(run_variant(name, load.scaled(factor), setting, seed), setting) >= share

    return round(load.most_agents * highest(sustains, 16.0, accuracy))
