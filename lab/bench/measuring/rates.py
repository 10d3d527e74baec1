"""Runs at a given rate, the highest rate that a system sustains, and intervals over several runs.

Latency is that of the engine's markers at the sinks, the markers of all queries together: a query of ten that
is neglected has a tenth of them and shows in the 99th percentile. A source that is not read at all sends no
markers, so ``kept`` looks at every source by itself.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from scipy import stats

from lab.bench.measuring.stolen import Stolen
from penstock.engine.node import Node
from penstock.engine.seat.execution import Execution
from penstock.metrics.histogram import LatencySnapshot
from penstock.metrics.run import RunMetrics
from penstock.query.graph import Graph

_LONGEST_DRAIN_S = 5.0
#: A run that fails while more than this share of the processors' time goes to others is repeated, so often at
#: the most: 20 ms of a second are enough to miss a 99th percentile.
_STOLEN, _REPEATED = 0.01, 1
_FARTHEST = 40  # steps up or down before a search gives up


@dataclass(frozen=True)
class Paced:
    """One run at one rate. What came before the end of the warm-up is not in it, except in ``kept``."""

    rate: float  # events per second that were due, of all sources together
    achieved: float  # events per second that were read
    p50_ms: float
    p99_ms: float
    kept: bool  # no source was behind by more than the limit at the end
    metrics: RunMetrics
    stolen: float = 0.0  # the share of processor time that the machine gave to others

    def sustains(self, p99_ms: float) -> bool:
        """Whether it kept up with the rate within this latency."""
        return self.kept and self.p99_ms <= p99_ms


Run = Callable[[float], Paced]


@dataclass(frozen=True)
class Lengths:
    """How long a run takes, in seconds: until latencies count, and from then on."""

    warm_up_s: float = 0.5
    measured_s: float = 1.5


def run_paced(
    graph: Graph,
    node: Node,
    rates: Mapping[str, float],
    lengths: Lengths,
    *,
    p99_ms: float = 100.0,
    drains: bool = True,
) -> Paced:
    """Runs a graph whose sources come at ``rates``, by their names, for a while.

    At the end the sources stop and what is on its way is still processed, so that no latency is missing for
    being too long; unless a source has not kept up, if it ``drains`` not. ``p99_ms`` is also how far a source
    may be behind at the end.
    """
    execution = node.start(graph)
    stolen = Stolen()
    before, end = _measured(execution, lengths)
    stolen_share = stolen.share(lengths.warm_up_s + lengths.measured_s)
    kept = farthest_behind_s(end, rates) * 1e3 <= p99_ms
    if drains or kept:
        execution.stop()
    if not (drains or kept) or not execution.wait(_LONGEST_DRAIN_S):
        execution.abort()
    drained = execution.finish().metrics
    metrics = replace(end.since(before), latency=drained.since(before).latency, _by_id={})
    together = all_queries(metrics)
    return Paced(
        rate=sum(rates.values()),
        achieved=metrics.read / metrics.elapsed_s,
        p50_ms=together.quantile_ms(0.5),
        p99_ms=together.quantile_ms(0.99),
        kept=kept,
        metrics=metrics,
        stolen=stolen_share,
    )


def run_unpaced(graph: Graph, node: Node, lengths: Lengths) -> RunMetrics:
    """Runs a graph as fast as it goes, for a while; its sources must not end by then."""
    execution = node.start(graph)
    before, end = _measured(execution, lengths)
    execution.abort()
    execution.finish()
    return end.since(before)


def highest_rate(
    run: Run,
    start: float,
    *,
    p99_ms: float = 100.0,
    steps: int = 6,
    growth: float = 2.0,
    patient: bool = False,
) -> Paced:
    """The run at the highest rate that is sustained: by ``growth`` up or down from ``start``, then bisection
    in log space, ``steps`` times.

    The result is known to a factor of ``growth ** (1 / 2 ** steps)``. A system that sustains nothing is
    reported by its run at the least rate tried, which then does not say that it ``sustains`` it. A run that
    fails while the machine is taken away is repeated; if ``patient``, every run that fails is.
    """
    run = partial(_undisturbed, run, p99_ms, patient)
    best = run(start)
    rises = best.sustains(p99_ms)
    beyond = start
    for _ in range(_FARTHEST):
        following = run(best.rate * growth if rises else beyond / growth)
        if following.sustains(p99_ms) != rises:
            break
        best, beyond = (following, beyond) if rises else (best, following.rate)
    else:
        return following
    low, high = (best, following.rate) if rises else (following, beyond)
    for _ in range(steps):
        middle = run(math.sqrt(low.rate * high))
        if middle.sustains(p99_ms):
            low = middle
        else:
            high = middle.rate
    return low


def _undisturbed(run: Run, p99_ms: float, patient: bool, rate: float) -> Paced:
    """A run, or another one at that rate if it failed while the machine was taken away, or for any reason."""
    found = run(rate)
    for _ in range(_REPEATED):
        if found.sustains(p99_ms) or not (patient or found.stolen > _STOLEN):
            break
        found = run(rate)
    return found


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean and its 95 % interval by Student's t; of one value the interval is not known.

    >>> interval([1.0, 2.0, 3.0])[0]
    2.0
    """
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, math.nan, math.nan
    error = statistics.stdev(values) / math.sqrt(len(values))
    half = float(stats.t.ppf(0.975, len(values) - 1)) * error
    return mean, mean - half, mean + half


def all_queries(metrics: RunMetrics) -> LatencySnapshot:
    """The latencies of all queries together."""
    latencies = list(metrics.latency.values())
    together = latencies[0]
    for latency in latencies[1:]:
        together = together + latency
    return together


def farthest_behind_s(metrics: RunMetrics, rates: Mapping[str, float]) -> float:
    """How far the source that is farthest behind its rate is, in seconds, since the run began."""
    return max(metrics.elapsed_s - metrics[source].processed / rate for source, rate in rates.items())


def _measured(execution: Execution, lengths: Lengths) -> tuple[RunMetrics, RunMetrics]:
    """Snapshots at the end of the warm-up and at the end."""
    execution.wait(lengths.warm_up_s)
    before = execution.metrics()
    execution.wait(lengths.measured_s)
    return before, execution.metrics()
