"""From measured figures to the simulator's parameters: what operators and this machine cost."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
from numba import njit

from lab.sim.arrivals import Arrivals, Regular
from lab.sim.distributions import Constant, LogNormal
from lab.sim.machine import Machine
from lab.sim.operators import Cost, Ratio, Selectivity, SimGraph, SimOperator
from penstock.metrics.operators import OperatorCounters, OperatorMetrics
from penstock.metrics.run import RunMetrics
from penstock.query.graph import Graph

_MANY = 1_000  # events of an operator that say something of its turns
_ALIKE = 1e3  # the condition of equations that come from runs too much alike


@dataclass(frozen=True)
class MachineCosts:
    """What was measured of a machine."""

    context_switch_ns: float  # one thread wakes another and that one runs
    turn_ns: float  # a turn on next to nothing: the kernel's call, the clock, the counting

    def machine(self, cores: int, *, holds_interpreter: bool = True) -> Machine:
        """A simulated machine with these costs. In Python a turn's fixed part holds the interpreter lock."""
        return Machine(
            cores=cores,
            context_switch_ns=round(self.context_switch_ns),
            serial_ns=0,
            holds_interpreter=holds_interpreter,
            handover_ns=round(self.context_switch_ns) if holds_interpreter else 0,
        )


def measure_machine(repetitions: int = 5) -> MachineCosts:
    """Measures this machine, in well under a second; medians, since other work may disturb it."""
    return MachineCosts(
        median(_context_switch_ns() for _ in range(repetitions)),
        median(_turn_ns() for _ in range(repetitions)),
    )


def measured_operators(
    runs: Sequence[RunMetrics], turn_ns: float | None = None, sigma: float = 0.0
) -> dict[str, SimOperator]:
    """Operators by id, with the cost per event and per turn that runs of the same graph showed.

    time = turns · a + events · b. The cost of a turn, a, is the engine's, so it is the same for all
    operators: runs with turns of different sizes (two block sizes, say) tell it from b. ``turn_ns`` is taken
    for it if given; with one run and nothing given it is 0. The runs must be of one worker: with more, the
    time inside turns contains the waiting for the interpreter lock, which the simulator adds itself.
    ``sigma`` makes events differ as a log-normal variable does.
    """
    by_id: dict[str, list[OperatorMetrics]] = {}
    for run in runs:
        for operator in run.operators:
            by_id.setdefault(operator.id, []).append(operator)
    per_turn = _per_turn(list(by_id.values())) if turn_ns is None else turn_ns
    return {id_: _operator(seen, per_turn, sigma) for id_, seen in by_id.items()}


def readers_of(graph: Graph, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Who reads whom of the operators that ran: one that was optimised away is passed through."""
    running = set(ids)

    def origins(node: str) -> list[str]:
        found: list[str] = []
        for source in graph[node].inputs:
            found += [source.node] if source.node in running else origins(source.node)
        return found

    readers: dict[str, list[str]] = {id_: [] for id_ in ids}
    for id_ in ids:
        for origin in dict.fromkeys(origins(id_)):
            readers[origin].append(id_)
    return {id_: tuple(found) for id_, found in readers.items()}


def calibrated_graph(
    operators: Mapping[str, SimOperator],
    readers: Mapping[str, Sequence[str]],
    rates: Mapping[str, float],
    *,
    selectivities: Mapping[str, Selectivity] | None = None,
    every_ns: int = 1_000_000,
) -> SimGraph:
    """The graph to simulate.

    rates: events per second by source id. selectivities: for operators where out per in is not all there is
    to say, such as windows. every_ns: how often a source has something new.
    """
    order = _from_sources(operators, readers)
    number = {id_: index for index, id_ in enumerate(order)}
    given = selectivities or {}
    arrivals: dict[int, Arrivals] = {number[id_]: Regular(rate, every_ns) for id_, rate in rates.items()}
    return SimGraph(
        tuple(
            replace(operators[id_], selectivity=given.get(id_, operators[id_].selectivity)) for id_ in order
        ),
        tuple(tuple(sorted(number[reader] for reader in readers.get(id_, ()))) for id_ in order),
        arrivals,
    )


def _operator(seen: Sequence[OperatorMetrics], per_turn: float, sigma: float) -> SimOperator:
    first = seen[0]
    turns, events, emitted, busy_ns = (
        sum(getattr(one, name) for one in seen) for name in ("turns", "processed", "emitted", "busy_ns")
    )
    per_event, selectivity = 0.0, Ratio(1.0)
    if events:
        per_turn = min(per_turn, busy_ns / max(1, turns))  # no more than a whole turn was measured to cost
        per_event = (busy_ns - per_turn * turns) / events
        selectivity = Ratio(1.0 if first.kind == "sink" else emitted / events)
    event = LogNormal(per_event, sigma) if sigma and per_event else Constant(per_event)
    return SimOperator(first.id, Cost(event, turn_ns=per_turn), selectivity, first.kind)


def _per_turn(operators: Sequence[Sequence[OperatorMetrics]]) -> float:
    """a, by least squares of the relative errors over all runs and operators; 0 if it cannot be told.

    Operators with few events are left out: what such a sink's turns cost is the opening of files.
    """
    busy = [[one for one in seen if one.processed >= _MANY and one.busy_ns] for seen in operators]
    busy = [seen for seen in busy if len(seen) > 1]
    rows = []
    for number, seen in enumerate(busy):
        for one in seen:
            row = np.zeros(1 + len(busy))
            row[0], row[1 + number] = one.turns / one.busy_ns, one.processed / one.busy_ns
            rows.append(row)
    if not rows:
        return 0.0
    equations = np.array(rows)
    scale = np.linalg.norm(equations, axis=0)
    if np.linalg.cond(equations / scale) > _ALIKE:
        return 0.0
    found, *_ = np.linalg.lstsq(equations / scale, np.ones(len(rows)), rcond=None)
    return max(0.0, float(found[0] / scale[0]))


def _from_sources(operators: Mapping[str, SimOperator], readers: Mapping[str, Sequence[str]]) -> list[str]:
    """The ids such that readers come after those they read."""
    unread = {id_: 0 for id_ in operators}
    for found in readers.values():
        for reader in found:
            unread[reader] += 1
    ready, order = [id_ for id_, count in unread.items() if not count], []
    while ready:
        order.append(id_ := ready.pop(0))
        for reader in readers.get(id_, ()):
            unread[reader] -= 1
            if not unread[reader]:
                ready.append(reader)
    return order


def _context_switch_ns(rounds: int = 300) -> float:
    """Two threads wake one another in turns; half a round is one switch."""
    mine, other = threading.Semaphore(0), threading.Semaphore(0)

    def answer() -> None:
        for _ in range(rounds):
            other.acquire()
            mine.release()

    thread = threading.Thread(target=answer)
    thread.start()
    began_ns = time.perf_counter_ns()
    for _ in range(rounds):
        other.release()
        mine.acquire()
    spent_ns = time.perf_counter_ns() - began_ns
    thread.join()
    return spent_ns / rounds / 2


def _turn_ns(turns: int = 2_000) -> float:
    """The least that a turn costs here: a compiled kernel called on one event, timed and counted."""
    counters, clock = OperatorCounters(), time.perf_counter_ns
    columns = [np.ones(8) for _ in range(4)]
    _kernel(columns[0], columns[1], columns[2], columns[3], 0, 1)
    began_ns = clock()
    for _ in range(turns):
        turn_began_ns = clock()
        taken = _kernel(columns[0], columns[1], columns[2], columns[3], 0, 1)
        counters.record_turn(turn_began_ns, clock(), taken)
    return (clock() - began_ns) / turns


@njit(nogil=True)
def _kernel(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray, start: int, stop: int) -> int:
    for row in range(start, stop):
        d[row] = a[row] + b[row] * c[row]
    return stop - start
