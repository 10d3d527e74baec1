"""The no-passing zone: arrivals as specified, and who overtook whom."""

from __future__ import annotations

import numpy as np
import pytest

from lab.workloads.no_passing.data import (
    ENTRY,
    EXIT,
    NoPassingSettings,
    VehicleArrivals,
    passings,
    rush_rate,
)
from lab.workloads.no_passing.detector import NoPassing, predicates
from penstock.cep.selections.instances import Assigned, EventBuffer, work_on
from penstock.cep.selections.selections import EventBatch
from penstock.cep.selections.splitter import SelectionSplitter


def test_every_vehicle_takes_twelve_and_a_half_to_fifteen_minutes() -> None:
    found = passings(NoPassingSettings(seconds=3000.0, rate=2.0, seed=4, cut=False))
    took = {}
    for ts, pos, vehicle in zip(found.ts.tolist(), found.pos.tolist(), found.vehicle.tolist(), strict=True):
        took.setdefault(vehicle, []).append((pos, ts))
    seconds = np.array([(passed[1][1] - passed[0][1]) / 1e6 for passed in took.values()])
    assert all([pos for pos, _ in passed] == [ENTRY, EXIT] for passed in took.values())
    assert seconds.min() >= 750.0 - 1e-3
    assert seconds.max() <= 900.0 + 1e-3
    assert np.mean(seconds < 899.999) == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize(
    ("arrivals", "mean_s", "least_s"),
    [
        (VehicleArrivals.CONSTANT, 0.2, 0.0),
        (VehicleArrivals.UNIFORM, 0.15, 0.1),
        (VehicleArrivals.PARETO, 0.1, 0.05),
    ],
)
def test_inter_arrival_times_are_as_specified(
    arrivals: VehicleArrivals, mean_s: float, least_s: float
) -> None:
    found = passings(NoPassingSettings(arrivals, seconds=4000.0, seed=9))
    between = np.diff(found.ts[found.pos == ENTRY]) / 1e6
    assert between.mean() == pytest.approx(mean_s, rel=0.06)
    assert between.min() >= least_s - 1e-6


def test_the_rush_goes_up_stays_and_comes_down() -> None:
    found = passings(NoPassingSettings(VehicleArrivals.RUSH, seconds=6 * 3600.0, seed=1))
    entries = found.ts[found.pos == ENTRY] / 1e6
    counts, edges = np.histogram(entries, np.arange(0.0, 6 * 3600.0 + 1, 600.0))
    middles = (edges[1:] + edges[:-1]) / 2
    assert counts / 600.0 == pytest.approx(rush_rate(middles), abs=0.35)


def test_overtakings_are_pairs_in_one_order_at_the_entry_and_the_other_at_the_exit() -> None:
    found = passings(NoPassingSettings(seconds=2500.0, rate=0.2, seed=8, cut=False))
    events = EventBatch(0, found.ts, {"pos": found.pos, "vehicle": found.vehicle})
    splitter, buffer = SelectionSplitter(predicates()), EventBuffer()
    splitter.register(0)
    buffer.add(events)
    dealt = splitter.split(events)
    assigned = Assigned(dealt.cuts.closed, dealt.closed_starts, dealt.cuts.stops, dealt.cuts.closers)
    matches = work_on(NoPassing(), assigned, buffer)
    pairs = {(int(found.vehicle[a]), int(found.vehicle[b])) for a, b, _ in matches.positions}
    place = {(int(v), int(p)): k for k, (v, p) in enumerate(zip(found.vehicle, found.pos, strict=True))}
    vehicles = range(int(found.vehicle.max()) + 1)
    assert pairs == {
        (a, b)
        for a in vehicles
        for b in vehicles
        if place[a, ENTRY] < place[b, ENTRY] and place[b, EXIT] < place[a, EXIT]
    }
    assert len(pairs) > 100
    assert all(found.vehicle[b] == found.vehicle[c] for _, b, c in matches.positions)
