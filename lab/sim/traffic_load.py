"""The rebinding paper's 150 traffic queries as a simulated graph of 300 operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lab.sim.arrivals import Frames
from lab.sim.distributions import Constant
from lab.sim.operators import Cost, PerGroup, Ratio, SimGraph, SimOperator


@dataclass(frozen=True)
class TrafficLoad:
    """The queries and what they cost.

    A query is two operators: one collects a frame's tuples, block by block, the other computes the result:
    Q1 reads a number that is already there, Q2 looks at every tuple, Q3 sorts them.

    agents: of all frames, one number per frame, or an array of frames × triples.
    shares: of the agents that each triple of queries concerns; empty: every query gets every tuple, as in the
        paper.
    spread: 0: a frame comes to all queries at one moment; 1: triple after triple over the frame's 40 ms.
    gather_ns: per tuple that is collected. scan_ns, sort_ns: per tuple, and per tuple and doubling.
    block: tuples in a task. block_ns: per block.
    jitter: of a turn's cost from one time to the next, as the deviation of its logarithm.

    The costs here are chosen: ``sort_ns`` such that the paper's contrast between static and greedy binding
    comes out at its 220,000 agents. The benchmark measures ``gather_ns``, ``scan_ns`` and ``sort_ns``
    instead. ``block``, ``block_ns`` and ``jitter`` are assumed there too; the paper gives none of them, and
    the single queue's result depends on ``block``.
    """

    agents: int | Sequence[int] | NDArray[np.int64] = 220_000
    triples: int = 50
    shares: tuple[float, ...] = ()
    spread: float = 0.0
    gather_ns: float = 0.0
    scan_ns: float = 2.0
    sort_ns: float = 1.0
    block: int = 1_024
    block_ns: float = 150.0
    jitter: float = 0.2
    frame_ns: int = 40_000_000

    @property
    def most_agents(self) -> int:
        """In any frame; of an array by triple, the largest mean over the triples."""
        agents = np.asarray(self.agents, np.float64)
        return round(float(agents.max() if agents.ndim < 2 else agents.mean(1).max()))

    def scaled(self, factor: float) -> TrafficLoad:
        """The same load with more or fewer agents."""
        return replace(self, agents=np.rint(np.asarray(self.agents) * factor).astype(np.int64))

    def graph(self) -> SimGraph:
        """Operators in triples of queries: collect and count, collect and scan, collect and sort."""
        gather = Constant(self.gather_ns)
        collect = Cost(gather, turn_ns=self.block_ns, batch=self.block, jitter=self.jitter)
        compute = Cost(turn_ns=1_000.0, jitter=self.jitter)
        computing: tuple[tuple[str, Cost], ...] = (
            ("count", compute),
            ("speed", replace(compute, event=Constant(self.scan_ns))),
            ("top", replace(compute, sort_ns=self.sort_ns)),
        )
        operators: list[SimOperator] = []
        children: list[tuple[int, ...]] = []
        arrivals = {}
        agents = np.asarray(self.agents, np.float64)
        by_triple = agents.reshape(len(agents), -1) if agents.ndim else agents.reshape(1, 1)
        for triple in range(self.triples):
            share = self.shares[triple] if self.shares else 1.0
            phase_ns = int(self.frame_ns * self.spread * triple / self.triples)
            concerned = by_triple[:, triple % by_triple.shape[1]] * share
            frames = Frames(np.maximum(np.rint(concerned), 1).astype(np.int64), self.frame_ns, phase_ns)
            for kind, cost in computing:
                number = len(operators)
                counted = kind == "count"  # the count is computed already: one number, not a frame
                first = replace(collect, event=Constant(0.0), batch=None) if counted else collect
                out = PerGroup(1) if counted else Ratio(1.0)
                operators.append(SimOperator(f"collect_{kind}_{triple}", first, out, f"collect_{kind}"))
                operators.append(SimOperator(f"{kind}_{triple}", cost, PerGroup(1), kind))
                children += [(number + 1,), ()]
                arrivals[number] = frames
        return SimGraph(tuple(operators), tuple(children), arrivals)


def skewed_shares(triples: int = 50, sigma: float = 0.8, seed: int = 0) -> tuple[float, ...]:
    """Shares of agents for queries about single roads, which differ as roads do; their mean is 1."""
    weights = np.random.default_rng(seed).lognormal(0.0, sigma, triples)
    return tuple((weights * triples / weights.sum()).tolist())


def wandering(
    agents: int, seconds: float, triples: int = 50, sigma: float = 0.5, memory_s: float = 10.0, seed: int = 0
) -> NDArray[np.int64]:
    """Agents by frame and triple when traffic moves from road to road: all roads together stay the same.

    The logarithm of a road's share wanders with deviation ``sigma`` and forgets within ``memory_s``.
    """
    frames = max(1, int(seconds * 25))
    random = np.random.default_rng(seed)
    keep = float(np.exp(-1 / (25 * memory_s)))
    steps = random.standard_normal((frames, triples)) * np.sqrt(1 - keep**2)
    steps[0] = random.standard_normal(triples)
    for frame in range(1, frames):
        steps[frame] += keep * steps[frame - 1]
    weights = np.exp(sigma * steps)
    shares: NDArray[np.int64] = np.rint(agents * triples * weights / weights.sum(1, keepdims=True)).astype(
        np.int64
    )
    return shares
