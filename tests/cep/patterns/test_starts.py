"""First events are dealt out in turn, and an instance gets whatever its selections may still need."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import col, event, periodic
from penstock.cep.patterns.match_merger import numbered_subs
from penstock.cep.patterns.starts import Reach, Starts
from penstock.query.patterns.automaton import automaton
from penstock.query.patterns.matching import matched
from penstock.query.patterns.modes import Contiguity
from penstock.query.patterns.patterns import Pattern
from tests.cep.patterns.strategies import SCHEMA

A, B, N = event("a", col("y") == 0), event("b", col("y") == 1), event("n", col("y") == 2)


def reach(pattern: Pattern, **options: Any) -> Reach:
    given = {
        "within": "10us", "within_events": None, "contiguity": None, "after_match": "no_skip",
        "consumption": "unrestricted", "rows": "one", "max_runs": None,
    } | options  # fmt: skip
    spec, _ = matched(SCHEMA, (), pattern, None, **given)
    return Reach.of(spec, automaton(pattern, cut=spec.contiguity is not Contiguity.ANY))


def dealt(starts: Starts, events: list[tuple[int, str]], names: str, degree: int) -> dict[int, str]:
    """By instance, the events that it gets; those that begin a selection of its own in capitals.

    An event is its time and a letter; ``names`` are the letters of the pattern's events, in its order.
    """
    masks = [sum(1 << number for number, name in enumerate(names) if name == said) for _, said in events]
    found = starts.deal(np.array([time for time, _ in events]), np.array(masks, np.int64), degree)
    told: dict[int, str] = {}
    for row, instance, opens in zip(found.rows, found.instances, found.opens, strict=True):
        said = events[row][1]
        told[int(instance)] = told.get(int(instance), "") + (said.upper() if opens else said)
    return told


def test_first_events_go_round_and_others_to_all_who_wait() -> None:
    found = reach(A >> B)
    assert (found.opening, found.later, found.every, found.breaks) == (1, 2, False, False)
    starts = Starts(found)
    events = [(0, "b"), (1, "a"), (2, "x"), (3, "b"), (4, "a"), (5, "b"), (11, "b"), (12, "b"), (15, "b")]
    # a at 1 waits until 11, that at 4 until 14: deadlines belong to them
    assert dealt(starts, events, "ab", 2) == {0: "Abbb", 1: "Abbb"}
    assert (starts.position, starts.dealt, starts.last) == (9, 2, {})


def test_a_changed_degree_concerns_later_first_events_only() -> None:
    starts = Starts(reach(A >> B))
    assert dealt(starts, [(0, "a"), (1, "a"), (2, "a")], "ab", 3) == {0: "A", 1: "A", 2: "A"}
    # the fourth and the fifth go to the one that is left; the others still get what their own may need
    assert dealt(starts, [(3, "a"), (4, "b"), (11, "a"), (12, "b")], "ab", 1) == {0: "AbAb", 1: "b", 2: "bb"}
    assert starts.last == {0: (5, 11), 2: (2, 2)}


def test_without_time_events_are_counted_all_of_them() -> None:
    starts = Starts(reach(A >> B, within=None, within_events=2))
    # the event that is one too many settles what is open, so it is sent too
    assert dealt(starts, [(0, "a"), (0, "x"), (0, "x"), (0, "x"), (0, "a")], "ab", 2) == {0: "Axx", 1: "A"}
    assert starts.last == {1: (4, 0)}


def test_a_strict_run_ends_where_nothing_fits() -> None:
    found = reach(A >> B.one_or_more(), within=None, contiguity="strict")
    assert (found.every, found.breaks) == (True, True)
    starts = Starts(found)
    told = dealt(starts, [(0, "a"), (1, "b"), (2, "x"), (3, "b"), (4, "a"), (5, "a"), (6, "b")], "ab", 2)
    # x ends the first run, and is needed for that; a at 5 ends the second's, and the third begins with it
    assert told == {0: "AbxAb", 1: "Aa"}
    assert (starts.broken, starts.last) == (5, {0: (5, 5)})


@pytest.mark.parametrize(
    ("pattern", "options", "breaks"),
    [
        (A >> ~N, {"contiguity": "strict"}, False),  # it waits for its deadline, whatever comes
        (A >> B, {"contiguity": "strict"}, True),
        (A >> B, {"contiguity": "any"}, False),
        (periodic(A, every="2us", until=B), {}, False),
    ],
)
def test_a_run_that_waits_for_a_deadline_is_not_broken(pattern: Pattern, options: Any, breaks: bool) -> None:
    assert reach(pattern, **options).breaks is breaks


def test_negated_events_are_needed_too() -> None:
    found = reach(A >> ~N >> B)
    assert found.later == 0b110


LETTERS = st.lists(st.tuples(st.integers(0, 6), st.sampled_from("abnx")), max_size=40)


@settings(max_examples=60)
@given(
    LETTERS,
    st.sampled_from(["10us", "3us", None]),
    st.sampled_from([None, 1, 4]),
    st.sampled_from(["strict", "next", "any"]),
    st.integers(1, 4),
    st.lists(st.integers(0, 40), max_size=3),
)
def test_what_is_sent_is_what_the_definition_says_wherever_batches_end(
    steps: Any, within: str | None, within_events: int | None, contiguity: str, degree: int, cuts: list[int]
) -> None:
    if within is None and within_events is None and contiguity != "strict":
        within = "5us"
    found = reach(A >> ~N >> B, within=within, within_events=within_events, contiguity=contiguity)
    times = np.cumsum([step for step, _ in steps], dtype=np.int64)
    masks = np.array(["anb".find(said) for _, said in steps], np.int64)
    masks = np.where(masks >= 0, 1 << np.maximum(masks, 0), 0)
    starts, sent = Starts(found), set()
    bounds = [0, *sorted({cut for cut in cuts if cut < len(steps)}), len(steps)]
    for first, stop in pairwise(bounds):
        if first < stop:
            made = starts.deal(times[first:stop], masks[first:stop], degree)
            assert (np.diff(made.instances) >= 0).all()
            sent |= set(
                zip((made.rows + first).tolist(), made.instances.tolist(), made.opens.tolist(), strict=True)
            )
    assert sent == defined(found, times.tolist(), masks.tolist(), degree)


def defined(found: Reach, times: list[int], masks: list[int], degree: int) -> set[tuple[int, int, bool]]:
    """Event by event and selection by selection."""
    sent = set()
    owners = {}
    for at, mask in enumerate(masks):
        if mask & found.opening:
            owners[at] = len(owners) % degree
    for at, (time, mask) in enumerate(zip(times, masks, strict=True)):
        if at in owners:
            sent.add((at, owners[at], True))
        for start, owner in owners.items():
            if start >= at or (at, owner, True) in sent:
                continue
            useful = found.every or mask & found.later
            in_time = found.within_us is None or time <= times[start] + found.within_us
            counted = found.within_events is None or at - start <= found.within_events
            broken = found.breaks and any(not masks[one] & found.later for one in range(start + 1, at))
            if useful and in_time and counted and not broken:
                sent.add((at, owner, False))
    return sent


def test_matches_that_one_event_decided_are_numbered_by_their_first_events() -> None:
    rows = 1 << 20
    # two instances, both count from 0; of one event with two places in the order; the last is a deadline's
    subs = np.array([0, 2, 0, 3 * rows, 3 * rows, 1])
    starts = np.array([4, 8, 6, 2, 1, 5])
    times, orders = np.array([7, 7, 7, 7, 7, 7]), np.array([1, 1, 1, 1, 1, 2])
    assert numbered_subs(times, orders, subs, starts).tolist() == [0, 4, 2, 3 * rows + 2, 3 * rows, 1]
