"""The settings of a run on one node, and what they come to for each output."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.binding.catalogue import binding_named, installation_named
from penstock.binding.policy import BindingPolicy
from penstock.engine.turns.source import MARKER_EVERY_MS
from penstock.memory.blocks import ChunkShape
from penstock.memory.layout import Layout
from penstock.metrics.turns import TurnLog
from penstock.query.durations import Duration, positive_us
from penstock.query.errors import PenstockError
from penstock.routing.control import RoutingControl, control_of
from penstock.routing.rebalancer import DEFAULT_CHI
from penstock.routing.route import Route
from penstock.scheduling.catalogue import policy_named
from penstock.scheduling.consumption import Consumption, consumption_of
from penstock.scheduling.dispatch.rules import Rules
from penstock.scheduling.policy import Policy
from penstock.scheduling.thresholds import Adaptation

#: How long a function or sink may take to come back after its run was stopped.
STOP_GRACE = "1m"

#: What an event costs by what was measured, who runs operators, and what events are handed over in.
_CHOICES = {"costs": ("least", "mean"), "threads": ("pool", "per_operator"), "memory": ("blocks", "queues")}


@dataclass(frozen=True)
class Settings:
    """How a node runs a graph.

    The defaults were chosen on two cores: the sizes of blocks, chunks and turns for Yahoo throughput, the
    policy for the highest rate with a 99th percentile within 100 ms in the mix of ten queries. With
    ``costs="mean"`` the time that others made a turn wait counts as cost, as in the paper: under load turns
    then become shorter, and wait more often.

    ``threads="per_operator"`` gives every operator a thread of its own and leaves the choice to the operating
    system; ``memory="queues"`` hands events over in freshly allocated batches. Both are there to be compared
    with.
    """

    workers: int = 0  # 0: one per core
    scheduling: str | Policy | None = None  # None: "state"; of bound workers "first_come"
    consumption: str | int | Consumption = (
        "all"  # how much of its queue a turn takes: "all", "half", a number
    )
    rules: Rules = field(default_factory=Rules)  # what the dispatcher does beside the policy
    fusion: bool = True  # steps without state run in the kernel of the operator that alone reads them
    costs: str = "least"  # what an event costs: the "least" that large turns have shown, or the "mean"
    block_events: int = 65_536
    chunk_blocks: int = 1
    max_chunks: int = 4
    turn_blocks: int = 2  # a turn takes at most this many blocks' worth of events
    source_batch: int | None = None  # the most events of one read from a source
    prune_sources: bool = True  # leave out source columns that no query reads
    epoch_us: int = 1_000  # the scheduler's period
    marker_every_ms: int = MARKER_EVERY_MS  # how often every source sends a marker that measures latency
    turn_log: TurnLog | None = None  # told of every turn: to look into a run, at the price of its memory
    threads: str = "pool"  # or "per_operator"
    memory: str = "blocks"  # or "queues"
    binding: str | BindingPolicy | None = None  # which worker owns which operator; None: any runs any
    installation: str = "non_blocking"  # of a new binding
    rebind_every_s: float = 2.0
    tasks: int = 1  # that share the keys of every keyed operator
    virtual_partitions: int = 64
    rebalance: float | RoutingControl | None = DEFAULT_CHI  # LIT above which keys move; None: never
    rebalance_every_s: float = 0.5
    stop_grace: Duration | None = STOP_GRACE  # for a turn at hand when the run is stopped; None: any time
    force_route: Callable[[Route], Route] | None = None  # instead of what the load asks for; for tests

    def __post_init__(self) -> None:
        at_least = {
            "workers": 0,
            "block_events": 1,
            "chunk_blocks": 1,
            "max_chunks": 2,
            "turn_blocks": 1,
            "source_batch": 1,
            "epoch_us": 1,
            "marker_every_ms": 1,
            "tasks": 1,
            "virtual_partitions": 1,
        }
        for name, least in at_least.items():
            value = getattr(self, name)
            if name == "source_batch" and value is None:
                continue
            if not isinstance(value, int) or value < least:
                raise PenstockError(f"{name} must be at least {least}: got {value!r}")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                known = " or ".join(f"'{choice}'" for choice in choices)
                raise PenstockError(f"{name} must be {known}: got {getattr(self, name)!r}")
        if not isinstance(self.rules, Rules):
            raise PenstockError(
                f"rules must be ps.Rules: got {self.rules!r}; write e.g. ps.Rules(passes=False)"
            )
        consumption_of(self.consumption)
        _ = self.policy
        if not self.rebind_every_s > 0:
            raise PenstockError(f"rebind_every_s must be positive: got {self.rebind_every_s!r}")
        _ = self.stop_grace_s
        self._check_binding()
        self._check_tasks()

    @property
    def stop_grace_s(self) -> float | None:
        """How long a turn may take after the run was stopped; None: as long as it likes."""
        grace_us = positive_us(self.stop_grace, "stop_grace")
        return None if grace_us is None else grace_us / 1e6

    @property
    def control(self) -> RoutingControl | None:
        """How keys follow the load; None: not at all."""
        return control_of(self.rebalance)

    @property
    def worker_count(self) -> int:
        return self.workers or os.cpu_count() or 1

    @property
    def turn_limit(self) -> int:
        return self.turn_blocks * self.block_events

    @property
    def policy(self) -> Policy:
        """By which operators are scheduled."""
        default = "state" if self.binding is None else "first_come"
        return policy_named(self.scheduling or default, self.adaptation)

    @property
    def adaptation(self) -> Adaptation:
        """The thresholds of state-based scheduling that fit the blocks."""
        capacity = self.max_chunks * self.chunk_blocks * self.block_events
        return Adaptation.for_block(self.block_events, capacity)

    def _check_binding(self) -> None:
        """What only bound threads have, and what they cannot have."""
        installation_named(self.installation)
        if self.binding is None:
            if self.installation != "non_blocking":
                raise PenstockError(
                    "installation is of a binding, and there is none: "
                    f"got installation={self.installation!r}; add e.g. binding='greedy'"
                )
            return
        binding_named(self.binding)
        if self.rules not in (Rules(), Rules.none()):
            raise PenstockError(
                f"a bound worker takes one operator at a time, so that no rule applies: got {self.rules}; "
                "leave out rules or binding"
            )
        if self.threads != "pool":
            raise PenstockError(
                f"a binding gives operators to workers: threads={self.threads!r} has none; "
                "leave out threads or binding"
            )

    def _check_tasks(self) -> None:
        _ = self.control
        if not self.rebalance_every_s >= 0:
            raise PenstockError(f"rebalance_every_s must not be negative: got {self.rebalance_every_s!r}")
        if self.tasks > self.virtual_partitions:
            raise PenstockError(
                f"more tasks than virtual partitions: {self.tasks} and {self.virtual_partitions}; "
                f"write virtual_partitions={1 << (self.tasks - 1).bit_length()} or more"
            )
        if self.tasks > 1 and self.threads != "pool":
            raise PenstockError(
                "keys are shared by tasks only where operators are given to workers: got "
                f"tasks={self.tasks} with threads={self.threads!r}; leave out one"
            )

    def shape(self, layout: Layout, fan_out: int) -> ChunkShape:
        """The chunks that an output grows to."""
        return ChunkShape(layout, max(self.block_events, fan_out), self.chunk_blocks, fan_out)
