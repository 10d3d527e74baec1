"""Detection over the degree: measured on the node engine with one and two instances, simulated with more."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from lab.bench.measuring.report import median, progress
from lab.workloads.no_passing.data import FIELDS, NoPassingSettings, Passings, passings
from lab.workloads.no_passing.detector import NoPassing, predicates
from penstock.app import App
from penstock.cep.selections.instances import Assigned, EventBuffer, work_on
from penstock.cep.selections.selections import EventBatch
from penstock.cep.selections.splitter import SelectionSplitter
from penstock.engine.node import Node
from penstock.query.types import Schema
from penstock.sinks import Discard
from penstock.sources import Columns

DEGREES = (1, 2)
SIMULATED = (1, 2, 4, 8, 16, 32)
WORKERS = 2
OUTPUT = {"overtaken": (0, "vehicle"), "by": (1, "vehicle"), "at": (2, "ts")}


@dataclass(frozen=True)
class Costs:
    """What the parts of a parallel detector cost here, measured one after the other on one thread."""

    splitter_s: float  # cutting and dealing out all events
    selections_s: float  # working on all selections
    comparisons: int
    merger_s: float  # ordering all matches
    per_selection: np.ndarray  # comparisons of each selection, in closing order


def workload(seconds: float, rate: float, seed: int = 3) -> Passings:
    """Traffic whose every vehicle leaves: about rate × 900 selections are open at a time."""
    return passings(NoPassingSettings(seconds=seconds, rate=rate, seed=seed, cut=False))


def measure_detection(found: Passings, rounds: int) -> dict[int, list[float]]:
    """Events a second by degree, each round with every degree, on as many workers as there are cores."""
    measured: dict[int, list[float]] = {degree: [] for degree in DEGREES}
    _run(found, 1, limit=2000)  # compiles what there is to compile
    for round_number in range(rounds):
        for degree in DEGREES if round_number % 2 == 0 else DEGREES[::-1]:  # what drifts helps neither
            measured[degree].append(_run(found, degree))
            progress(
                f"patterns: round {round_number + 1}, degree {degree}: {measured[degree][-1]:,.0f} events/s"
            )
    return measured


def speedup(measured: dict[int, list[float]]) -> float:
    """Of two instances over one: the median over rounds, each with its own pair."""
    return median([two / one for one, two in zip(measured[1], measured[2], strict=True)])


def measure_costs(found: Passings) -> Costs:
    """The parts on their own, for the simulation."""
    events = EventBatch(0, found.ts, {"pos": found.pos, "vehicle": found.vehicle, "ts": found.ts})
    splitter, buffer, detector = SelectionSplitter(predicates()), EventBuffer(), NoPassing()
    splitter.register(0)
    buffer.add(events)
    began = time.perf_counter()
    dealt = splitter.split(events)
    cut = time.perf_counter()
    matches = work_on(
        detector,
        Assigned(dealt.cuts.closed, dealt.closed_starts, dealt.cuts.stops, dealt.cuts.closers),
        buffer,
    )
    worked = time.perf_counter()
    np.lexsort((np.arange(len(matches.numbers)), matches.numbers, matches.closers))
    ordered = time.perf_counter()
    entries = np.concatenate(([0], np.cumsum(found.pos == 1)))
    exits = found.pos == 2
    # an exit is compared with the entries since the selection's start
    weighted = np.concatenate(([0], np.cumsum(np.where(exits, entries[1:], 0))))
    counts = np.concatenate(([0], np.cumsum(exits)))
    starts, stops = dealt.closed_starts, dealt.cuts.stops
    per_selection = (
        weighted[stops] - weighted[starts] - entries[starts + 1] * (counts[stops] - counts[starts])
    )
    return Costs(cut - began, worked - cut, detector.comparisons, ordered - worked, per_selection)


def simulate(costs: Costs, events: int) -> dict[int, float]:
    """Events a second with a core for every instance and one each for splitter and merger, dealt out in
    turn: the slowest part sets the pace. Memory bandwidth and the interpreter's lock are not in it."""
    comparison_s = costs.selections_s / costs.comparisons
    found = {}
    for degree in SIMULATED:
        work = np.zeros(degree)
        np.add.at(work, np.arange(len(costs.per_selection)) % degree, costs.per_selection)
        slowest = max(costs.splitter_s, costs.merger_s, float(work.max()) * comparison_s)
        found[degree] = events / slowest
    return found


def _run(found: Passings, degree: int, limit: int | None = None) -> float:
    app = App("patterns")
    columns = {name: column[:limit] for name, column in found.columns.items()}
    count = len(columns["ts"])
    traffic = app.source("traffic", Columns(columns, Schema.of(dict(FIELDS))), event_time="ts")
    found_in = traffic.detect(predicates, NoPassing, OUTPUT, degree=degree, name="detector")
    app.sink("overtakings", found_in, Discard())
    graph = app.graph()
    began = time.perf_counter()
    Node(workers=WORKERS).run(graph)
    return count / (time.perf_counter() - began)
