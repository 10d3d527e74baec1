"""What turns, events and the closing of windows cost, told from logs of turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from lab.sim.operators import COLD_AFTER_NS, SimulatedWindow
from penstock.metrics.turns import TurnRecord

_FEWEST = 3  # closings that tell something
_FEWEST_TURNS = 20  # turns of an operator in one run that do
_SECOND_NS = 1e9

Turns = Mapping[str, Sequence[TurnRecord]]  # by operator, in order


@dataclass(frozen=True)
class TurnCosts:
    """What all operators have in common, and what an event costs each of them."""

    turn_ns: float  # right after the operator's last turn
    cold_ns: float  # more, when that was long ago
    event_ns: Mapping[str, float]  # by operator that had enough turns


@dataclass(frozen=True)
class Closings:
    """An operator that sends nothing but now and then, and then many."""

    every: float  # events of its source from one to the next
    cost_ns: float  # of one, beyond what the turn costs anyway
    emitted: float  # events that it sends

    def window(self, rate: float) -> SimulatedWindow:
        """The same with a source of so many events per second."""
        period_ns = max(1, round(self.every / rate * _SECOND_NS))
        return SimulatedWindow(period_ns, max(1, round(self.emitted)), self.cost_ns, tells_time=True)


def turn_costs(runs: Iterable[Turns]) -> TurnCosts:
    """By runs of one graph whose turns differ in size and in how long operators were idle before.

    time = a + idle · c + events · b, with one a and one c for all operators, which are the engine's and the
    machine's, and a b for each; none is below 0. Of every operator and run the typical turn counts, by
    medians, since some turns had to wait for a core or a lock; by least squares of the relative errors.
    """
    typical = [
        (operator, *found)
        for run in runs
        for operator, turns in run.items()
        if (found := _typical_turn(turns)) is not None
    ]
    if not typical:
        return TurnCosts(0.0, 0.0, {})
    places = {operator: place for place, operator in enumerate(dict.fromkeys(row[0] for row in typical), 2)}
    equations = np.zeros((len(typical), 2 + len(places)))
    for equation, (operator, took_ns, taken, coldness) in zip(equations, typical, strict=True):
        equation[[0, 1, places[operator]]] = 1.0, coldness, taken
        equation /= took_ns
    found, _ = nnls(equations, np.ones(len(typical)))
    return TurnCosts(
        float(found[0]),
        float(found[1]),
        {operator: float(found[place]) for operator, place in places.items()},
    )


def closings_of(turns: Sequence[TurnRecord], source: Sequence[TurnRecord]) -> Closings | None:
    """From the turns of an operator and of its source in one run; None if it does not work in bursts, or too
    few were seen."""
    closing = [turn for turn in turns if turn.emitted]
    others = [turn for turn in turns if not turn.emitted]
    if len(closing) < _FEWEST or len(closing) > len(others):
        return None
    ended_ns = [turn.began_ns + turn.took_ns for turn in source]
    read = np.concatenate(([0], np.cumsum([turn.taken for turn in source])))
    first, last = (
        int(read[np.searchsorted(ended_ns, turn.began_ns, "right")]) for turn in (closing[0], closing[-1])
    )
    if last <= first:
        return None
    fixed_ns, event_ns = _line(others)
    beyond = [turn.took_ns - fixed_ns - event_ns * turn.taken for turn in closing]
    return Closings(
        every=(last - first) / (len(closing) - 1),
        cost_ns=max(0.0, median(beyond)),
        emitted=fmean(turn.emitted for turn in closing),
    )


def _typical_turn(turns: Sequence[TurnRecord]) -> tuple[float, float, float] | None:
    """Medians over the turns with events in which nothing closed: how long they took, their events, and how
    cold the operator was before, from 0 to 1. None if there were too few."""
    log: NDArray[np.float64] = np.array(turns, np.float64).reshape(-1, 4)
    began_ns, took_ns, taken, emitted = log.T
    idle_ns = began_ns[1:] - began_ns[:-1] - took_ns[:-1]
    counts = taken[1:] > 0
    if 2 * np.count_nonzero(emitted == 0) > len(log):  # it sends in bursts
        counts &= emitted[1:] == 0
    if np.count_nonzero(counts) < _FEWEST_TURNS:
        return None
    coldness = np.minimum(1.0, idle_ns[counts] / COLD_AFTER_NS)
    events = np.median(taken[1:][counts])
    return float(np.median(took_ns[1:][counts])), float(events), float(np.median(coldness))


def _line(turns: Sequence[TurnRecord]) -> tuple[float, float]:
    """What a turn costs and what an event costs, by least squares."""
    taken = np.array([turn.taken for turn in turns], np.float64)
    took_ns = np.array([turn.took_ns for turn in turns], np.float64)
    if np.ptp(taken) == 0.0:
        return float(np.median(took_ns)), 0.0
    event_ns, fixed_ns = np.polyfit(taken, took_ns, 1)
    return float(fixed_ns), float(event_ns)
