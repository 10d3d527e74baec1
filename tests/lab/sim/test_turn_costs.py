"""What turns cost, told from logs that were made by a known rule."""

from __future__ import annotations

import numpy as np
import pytest

from lab.sim.operators import COLD_AFTER_NS, SimulatedWindow
from lab.sim.turn_costs import Closings, closings_of, turn_costs
from penstock.metrics.turns import TurnRecord

WARM, COLD = 10_000, 30_000  # ns of a turn, and more when it was long ago


def log(events: int, event_ns: float, idle_ns: int, turns: int = 50, emitted: int = 1) -> list[TurnRecord]:
    """Turns of one size at equal distances, of which every tenth had to wait."""
    coldness = min(1.0, idle_ns / COLD_AFTER_NS)
    found, now_ns = [], 0
    for number in range(turns):
        took_ns = round(WARM + coldness * COLD + events * event_ns) * (5 if number % 10 == 0 else 1)
        found.append(TurnRecord(now_ns, took_ns, events, emitted))
        now_ns += took_ns + idle_ns
    return found


def test_turns_coldness_and_events_are_told_apart_by_runs_that_differ() -> None:
    runs = [
        {"a": log(20_000, 2.0, 10_000_000), "b": log(5_000, 40.0, 12_000_000)},
        {"a": log(2_000, 2.0, 10_000_000), "b": log(500, 40.0, 10_000_000)},
        {"a": log(200, 2.0, 1_000_000), "b": log(50, 40.0, 2_000_000)},
    ]
    costs = turn_costs(runs)
    assert costs.turn_ns == pytest.approx(WARM, rel=0.01)
    assert costs.cold_ns == pytest.approx(COLD, rel=0.01)
    assert costs.event_ns == pytest.approx({"a": 2.0, "b": 40.0}, rel=0.01)


def test_operators_with_few_turns_and_turns_without_events_say_nothing() -> None:
    costs = turn_costs([{"rare": log(100, 2.0, 0, turns=10), "marks": log(0, 2.0, 0)}])
    assert costs.event_ns == {}
    assert (costs.turn_ns, costs.cold_ns) == (0.0, 0.0)


def window_log() -> tuple[list[TurnRecord], list[TurnRecord]]:
    """A source of 1,000 events a turn, and a window that closes at every fifth: 90 µs more, 7 events."""
    source = [TurnRecord(number * 1_000_000, 5_000, 1_000, 1_000) for number in range(21)]
    window = []
    for number, turn in enumerate(source):
        closes = number % 5 == 4
        took_ns = 10_000 + 20 * 1_000 + (90_000 if closes else 0)
        window.append(TurnRecord(turn.began_ns + 6_000, took_ns, 1_000, 7 if closes else 0))
    return source, window


def test_what_a_window_costs_and_sends_when_it_closes() -> None:
    source, window = window_log()
    assert closings_of(window, source) == Closings(every=5_000.0, cost_ns=90_000.0, emitted=7.0)


def test_who_sends_with_every_turn_or_nearly_never_does_not_work_in_bursts() -> None:
    source, window = window_log()
    assert closings_of(source, source) is None
    assert closings_of(window[:10], source) is None  # two closings


def test_turns_of_different_sizes_do_not_count_as_closing() -> None:
    source, window = window_log()
    random = np.random.default_rng(3)
    sizes = random.integers(100, 3_000, len(window)).tolist()
    window = [
        turn._replace(taken=size, took_ns=turn.took_ns + 20 * (size - 1_000))
        for turn, size in zip(window, sizes, strict=True)
    ]
    found = closings_of(window, source)
    assert found is not None
    assert found.cost_ns == pytest.approx(90_000, rel=1e-6)


def test_a_window_s_period_follows_the_rate() -> None:
    # every 5,000 events at 1 M/s: 5 ms
    expected = SimulatedWindow(5_000_000, groups=7, closing_ns=90_000.0, tells_time=True)
    assert Closings(5_000.0, 90_000.0, 7.0).window(1e6) == expected
