"""The highest rate at which each system answers in time, and how the two compare over rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lab.bench.measuring.rates import Lengths, Paced, Run, highest_rate, interval
from lab.bench.measuring.report import progress
from lab.bench.riot.runs import SYSTEMS, RiotExtent, RiotTopology, in_turn
from penstock.engine.node import Node

P99_MS = 100.0
_CONFIRMATIONS = 14  # rates tried before a round is given up
_FINE = 3  # of them, those by the step of the search; then by its growth


def search_rates(topology: RiotTopology, start: float, plan: RiotExtent) -> dict[str, list[float]]:
    """By system the highest rate that is sustained with p99 within the limit, once a round; NaN if none was.

    A search starts where the last ended.
    """
    rates: dict[str, list[float]] = {system: [] for system in SYSTEMS}
    starts = dict.fromkeys(SYSTEMS, start)
    for number in range(plan.search_rounds):
        for system in in_turn(tuple(SYSTEMS), number):
            found = sustained_rate(topology, SYSTEMS[system], starts[system], plan)
            is_sustained = found.sustains(P99_MS)
            rates[system].append(found.rate if is_sustained else math.nan)
            starts[system] = found.rate if is_sustained else start
        progress(
            f"riot: round {number + 1} of {plan.search_rounds}: {topology.name} within {P99_MS:.0f} ms: "
            + ", ".join(f"{system} {found[-1]:,.0f}/s" for system, found in rates.items())
        )
    return rates


def sustained_rate(topology: RiotTopology, node: Node, start: float, plan: RiotExtent) -> Paced:
    """The run at the highest rate that one system sustains, found from ``start`` on and confirmed."""

    def run(lengths: Lengths) -> Run:
        return lambda rate: topology.run(node, rate, lengths)

    found = highest_rate(run(plan.search), start, p99_ms=P99_MS, steps=plan.steps, growth=plan.growth)
    return confirmed(run(plan.confirmation), found, plan)


def confirmed(run: Run, found: Paced, plan: RiotExtent) -> Paced:
    """The highest rate up to the one found that is sustained once more, by the steps of the search downwards.

    A short run may be lucky, and the highest of several is the luckiest. If none of them is sustained, the
    result does not say that it ``sustains`` its rate.
    """
    step = plan.growth ** (1 / 2**plan.steps)
    rate = found.rate
    for number in range(_CONFIRMATIONS):
        again = run(rate)
        if again.sustains(P99_MS):
            return again
        rate /= step if number < _FINE else plan.growth
    return again


def rounds_ratios(rates: Mapping[str, Sequence[float]]) -> list[float]:
    """Of each round the scheduled rate over that of threads; NaN where one of them sustained nothing.

    >>> rounds_ratios({"congestion": [6.0, 5.0], "threads": [3.0, 5.0]})
    [2.0, 1.0]
    """
    return [ours / theirs for ours, theirs in zip(rates["congestion"], rates["threads"], strict=True)]


def ratio_interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """The geometric mean of ratios and its 95 % interval over rounds.

    Geometric, so that twice and half as fast even out. A round without a ratio leaves the interval open: to
    pass over it would flatter the system that failed in it. So does a single round.

    >>> [round(value, 3) for value in ratio_interval([2.0, 0.5])][0]
    1.0
    """
    known = [math.log(ratio) for ratio in ratios if not math.isnan(ratio)]
    if not known:
        return math.nan, math.nan, math.nan
    mean, low, high = (math.exp(value) for value in interval(known))
    return (mean, low, high) if len(known) == len(ratios) else (mean, math.nan, math.nan)
