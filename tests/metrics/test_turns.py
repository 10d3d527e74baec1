"""The log of a run's turns."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.metrics.turns import TurnLog, TurnRecord


@dataclass
class Out:
    written: int = 0


@dataclass
class Step:
    id: str = "filter"
    out: Out | None = field(default_factory=Out)


def test_every_turn_is_kept_with_what_it_sent() -> None:
    log, step = TurnLog(), Step()
    counters = log.counters(step)
    assert step.out is not None
    step.out.written = 30
    counters.record_turn(100, 150, 40)
    counters.record_turn(200, 210, 5)
    assert log.turns == {"filter": [TurnRecord(100, 50, 40, 30), TurnRecord(200, 10, 5, 0)]}
    assert (counters.turns, counters.processed, counters.busy_ns) == (2, 45, 60)  # and counted as ever


def test_instances_of_one_step_share_a_list_and_sinks_send_nothing() -> None:
    log = TurnLog()
    for _ in range(2):
        log.counters(Step("out", None)).record_turn(0, 7, 3)
    assert log.turns == {"out": [TurnRecord(0, 7, 3, 0), TurnRecord(0, 7, 3, 0)]}
