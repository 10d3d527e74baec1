"""The splitter alone: events a second over the number of overlapping windows (buffer limits figure 8(f))."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from lab.bench.measuring.report import median
from penstock.cep.selections.selections import EventBatch, Predicates
from penstock.cep.selections.splitter import SelectionSplitter
from penstock.cep.selections.splitter_pairs import Sequence, one_of
from penstock.cep.selections.splitter_rows import RowPredicates
from penstock.cep.selections.splitter_windows import TimeWindows, TupleWindows

WINDOW = 10_000  # events, as in the paper
OVERLAPS = (1, 10, 100, 1_000, 10_000)
INSTANCES = 2
BATCH = 65_536


def measure_windows(batches: int, rounds: int) -> dict[int, float]:
    """Tuple windows of 10,000 events, by how many of them overlap."""
    stream = make_batches(batches, BATCH)
    return {
        overlap: events_per_s(lambda n=overlap: TupleWindows(WINDOW, WINDOW // n), stream, rounds)  # type: ignore[misc]
        for overlap in OVERLAPS
    }


def measure_families(batches: int, rounds: int) -> dict[str, float]:
    """One open selection at a time, for a family that looks at every event, and for time windows."""
    stream = make_batches(batches, BATCH)
    families: dict[str, Callable[[], Predicates]] = {
        "sequence": lambda: Sequence(one_of("kind", 0), one_of("kind", 1)),
        "sequence_by_key": lambda: Sequence(one_of("kind", 0), one_of("kind", 1), by="key"),
        "time_windows": lambda: TimeWindows(WINDOW, WINDOW),
    }
    return {name: events_per_s(make, stream, rounds) for name, make in families.items()}


def measure_literally(events: int, overlap: int) -> float:
    """P_c called for every event and open selection, as the model is stated: what the cost would be
    without families."""
    slide = WINDOW // overlap

    def starts(event: dict[str, int], state: dict[str, int]) -> bool:
        state["at"] = state.get("at", -1) + 1
        return state["at"] % slide == 0

    stream = make_batches(1, WINDOW)  # the first window is full after so many
    predicates = RowPredicates(
        starts, lambda selection, event, state: state["at"] - selection.start == WINDOW - 1, start_first=True
    )
    splitter = _registered(predicates)
    splitter.split(stream[0])
    more = make_batches(1, events, first=WINDOW)
    began = time.perf_counter()
    splitter.split(more[0])
    return events / (time.perf_counter() - began)


def events_per_s(make: Callable[[], Predicates], stream: list[EventBatch], rounds: int) -> float:
    """Cutting, dealing out, holding and acknowledging; the median of some rounds."""
    return median([_once(_registered(make()), stream) for _ in range(rounds)])


def make_batches(count: int, size: int, first: int = 0) -> list[EventBatch]:
    """Events one microsecond apart: every 1,000th opens a sequence, and the 500th after it closes it."""
    found = []
    for n in range(count):
        at = np.arange(first + n * size, first + (n + 1) * size)
        kinds = np.where(at % 1000 == 0, 0, np.where(at % 1000 == 500, 1, 2)).astype(np.int32)
        found.append(EventBatch(first + n * size, at, {"kind": kinds, "key": at // 1000 % 64}))
    return found


def _registered(predicates: Predicates) -> SelectionSplitter:
    splitter = SelectionSplitter(predicates)
    for instance in range(INSTANCES):
        splitter.register(instance)
    return splitter


def _once(splitter: SelectionSplitter, stream: list[EventBatch]) -> float:
    began = time.perf_counter()
    for batch in stream:
        splitter.split(batch)
        for instance in splitter.queue.holders:
            splitter.queue.acknowledge(instance, batch.stop)
        splitter.queue.discard()
    return sum(map(len, stream)) / (time.perf_counter() - began)
