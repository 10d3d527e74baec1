"""The splitter's queue and the merger, by hand and at random."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.cep.selections.assignment import Assignment
from penstock.cep.selections.event_queue import EventQueue
from penstock.cep.selections.instances import EventBuffer
from penstock.cep.selections.merger import MatchPlaces, Merger
from penstock.cep.selections.selections import EventBatch
from penstock.cep.selections.splitter import SelectionSplitter
from penstock.cep.selections.splitter_pairs import Sequence, one_of
from penstock.cep.selections.splitter_windows import TupleWindows
from penstock.memory.edges import END_OF_TIME
from penstock.query.errors import PenstockError


def test_an_event_leaves_with_its_last_holder() -> None:
    queue = EventQueue()
    queue.extend(6)
    queue.hold(0, 0, 4)
    queue.hold(1, 2, 6)
    assert queue.length == 6
    assert queue.acknowledge(0, 3) == 2
    assert queue.discard() == 2
    assert queue.acknowledge(1, 4) == 1
    assert (queue.length, queue.first) == (3, 2)
    assert queue.acknowledge(0, 4) == 1
    assert queue.acknowledge(1, 6) == 2
    assert (queue.length, queue.discard()) == (0, 6)


def test_order_is_kept_and_nobody_leaves_before_the_end() -> None:
    queue = EventQueue()
    queue.extend(5)
    queue.hold(3, 1, 4)
    with pytest.raises(PenstockError, match="in order"):
        queue.hold(3, 2, 5)
    with pytest.raises(PenstockError, match="cannot shut down"):
        queue.forget(3)
    queue.acknowledge(3, 4)
    queue.forget(3)
    assert not queue.holds(3)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=60),
    st.lists(st.integers(1, 20), max_size=8),
    st.integers(1, 3),
    st.sampled_from(list(Assignment)),
    st.booleans(),
)
def test_instances_hold_the_union_of_their_selections(
    rows: list[tuple[int, int]], sizes: list[int], degree: int, rule: Assignment, windows: bool
) -> None:
    predicates = TupleWindows(4, 3) if windows else Sequence(one_of("kind", 0), one_of("kind", 1), by="key")
    splitter = SelectionSplitter(predicates, rule)
    for instance in range(degree):
        splitter.register(instance)
    columns = {"kind": np.array([row[0] for row in rows]), "key": np.array([row[1] for row in rows])}
    owners: dict[int, tuple[int, int]] = {}
    stops: dict[int, int] = {}
    at = 0
    for size in [*sizes, len(rows)]:
        stop = min(at + size, len(rows))
        part = {name: column[at:stop] for name, column in columns.items()}
        dealt = splitter.split(EventBatch(at, np.arange(at, stop), part))
        numbers = range(dealt.cuts.first_number, dealt.cuts.first_number + len(dealt.opened_by))
        for number, owner, start in zip(
            numbers, dealt.opened_by.tolist(), dealt.cuts.starts.tolist(), strict=True
        ):
            owners[number] = (owner, start)
        stops.update(zip(dealt.cuts.closed.tolist(), dealt.cuts.stops.tolist(), strict=True))
        assert [owners[number] for number in dealt.cuts.closed.tolist()] == list(
            zip(dealt.closed_by.tolist(), dealt.closed_starts.tolist(), strict=True)
        )
        at = stop
    held = {instance: set() for instance in range(degree)}  # type: ignore[var-annotated]
    for number, (owner, start) in owners.items():
        held[owner].update(range(start, stops.get(number, len(rows))))
    assert splitter.queue.length == len(set().union(*held.values()))
    for instance in range(degree):
        others = set().union(*(events for other, events in held.items() if other > instance))
        assert splitter.queue.acknowledge(instance, len(rows)) == len(held[instance] - others)
    assert splitter.queue.length == 0


def test_splitters_refuse_gaps_strangers_and_nobody() -> None:
    splitter = SelectionSplitter(TupleWindows(2, 1))
    with pytest.raises(PenstockError, match="nobody"):
        splitter.split(EventBatch(0, np.arange(3)))
    splitter = SelectionSplitter(TupleWindows(2, 1))
    splitter.register(1)
    with pytest.raises(PenstockError, match="already"):
        splitter.register(1)
    with pytest.raises(PenstockError, match="not registered"):
        splitter.unregister(0)
    with pytest.raises(PenstockError, match="in order"):
        splitter.split(EventBatch(5, np.arange(3)))


def test_the_buffer_joins_batches_and_frees_whole_ones() -> None:
    buffer = EventBuffer()
    for first in (0, 10, 20):
        at = np.arange(first, first + 10)
        buffer.add(EventBatch(first, at, {"x": at * 2}))
    found = buffer.between(8, 23)
    assert found.times.tolist() == list(range(8, 23))
    assert found.columns["x"].tolist() == [2 * n for n in range(8, 23)]
    buffer.discard(12)
    assert buffer.events == 20
    assert buffer.between(12, 20).times.tolist() == list(range(12, 20))


def place(*rows: tuple[int, int, int]) -> MatchPlaces:
    """(closer, number, rank) each; the closer's time is ten times its position."""
    closers, numbers, ranks = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return MatchPlaces(10 * closers, closers, numbers, ranks)


def test_the_merger_waits_for_the_slowest_and_numbers_on() -> None:
    merger = Merger()
    merger.add(place((5, 1, 0), (5, 1, 1), (9, 4, 0)), (np.array([10, 11, 12]),))
    assert merger.release(50)[0].tolist() == []
    merger.add(place((5, 0, 0), (7, 2, 0)), (np.array([13, 14]),))
    sequence, (what,) = merger.release(80)
    assert what.tolist() == [13, 10, 11, 14]
    assert sequence.tolist() == [0, 1, 2, 3]
    assert merger.held == 1
    assert merger.release(END_OF_TIME)[0].tolist() == [4]
    assert merger.release(END_OF_TIME)[0].tolist() == []
