"""The splitter's families against P_s and P_c evaluated event by event, selection by selection."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.cep.selections.selections import EventBatch, Predicates
from penstock.cep.selections.splitter_pairs import (
    Aperiodic,
    Conjunction,
    Disjunction,
    Periodic,
    Sequence,
    one_of,
)
from penstock.cep.selections.splitter_rows import RowPredicates
from penstock.cep.selections.splitter_windows import TimeWindows, TupleWindows
from penstock.query.errors import PenstockError

Stream = list[tuple[int, int, int]]  # time, kind, key


def whole(stream: Stream) -> EventBatch:
    times, kinds, keys = (
        (np.array(found, np.int64) for found in zip(*stream, strict=True))
        if stream
        else (np.zeros(0, np.int64),) * 3
    )
    return EventBatch(0, times, {"kind": kinds, "key": keys})


def selections(predicates: Predicates, stream: Stream, cuts: list[int]) -> list[tuple[int, int]]:
    """(start, stop) by number, with the stream cut at these places; checks what every answer must keep to."""
    batch = whole(stream)
    bounds = [0, *sorted({cut % (len(stream) + 1) for cut in cuts}), len(stream)]
    starts: dict[int, int] = {}
    stops: dict[int, int] = {}
    last = (-1, -1)
    for low, high in pairwise(bounds):
        part = EventBatch(low, batch.times[low:high], {n: c[low:high] for n, c in batch.columns.items()})
        for found in (
            predicates.cut(part),
            *([predicates.finish(len(stream))] if high == len(stream) else []),
        ):
            assert found.first_number == len(starts)
            assert (np.diff(found.starts) >= 0).all()
            starts.update(enumerate(found.starts.tolist(), found.first_number))
            for number, stop, closer in zip(
                found.closed.tolist(), found.stops.tolist(), found.closers.tolist(), strict=True
            ):
                assert last < (closer, number) or stop == len(stream)
                assert stop in (closer, closer + 1)
                last = (closer, number)
                assert number not in stops
                stops[number] = stop
            if high < len(stream):
                assert predicates.open_selections == len(starts) - len(stops)
        if high == len(stream):
            break
    assert starts.keys() == stops.keys()
    return [(starts[number], stops[number]) for number in sorted(starts)]


streams = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60
).map(
    lambda rows: [
        (int(t), k, key) for t, (_, k, key) in zip(np.cumsum([r[0] for r in rows]), rows, strict=True)
    ]
)
cuts = st.lists(st.integers(0, 100), max_size=6)


def same_key(selection: Any, event: dict[str, Any]) -> bool:
    return bool(selection.start_event["key"] == event["key"])


def opens(*kinds: int) -> Callable[[dict[str, Any], dict[str, Any]], bool]:
    return lambda event, state: event["kind"] in kinds


FAMILIES: dict[str, tuple[Callable[[], Predicates], Callable[[], Predicates]]] = {
    "sequence": (
        lambda: Sequence(one_of("kind", 0), one_of("kind", 1)),
        lambda: RowPredicates(opens(0), lambda s, e, _: e["kind"] == 1),
    ),
    "sequence by key": (
        lambda: Sequence(one_of("kind", 0), one_of("kind", 1), by="key"),
        lambda: RowPredicates(opens(0), lambda s, e, _: e["kind"] == 1 and same_key(s, e)),
    ),
    "sequence without its close": (
        lambda: Sequence(one_of("kind", 0), one_of("kind", 0), by="key", includes_close=False),
        lambda: RowPredicates(
            opens(0), lambda s, e, _: e["kind"] == 0 and same_key(s, e), includes_close=False
        ),
    ),
    "aperiodic": (
        lambda: Aperiodic(one_of("kind", 0, 2), one_of("kind", 2, 3)),
        lambda: RowPredicates(opens(0, 2), lambda s, e, _: e["kind"] in (2, 3)),
    ),
    "periodic": (
        lambda: Periodic(one_of("kind", 0), one_of("kind", 1), every_us=3, by="key"),
        lambda: RowPredicates(opens(0), lambda s, e, _: e["kind"] == 1 and same_key(s, e)),
    ),
    "within": (
        lambda: Sequence(one_of("kind", 0), within_us=5),
        lambda: RowPredicates(
            opens(0), lambda s, e, _: e["time"] - s.start_event["time"] > 5, includes_close=False
        ),
    ),
    "conjunction": (
        lambda: Conjunction(one_of("kind", 0), one_of("kind", 1), by="key"),
        lambda: RowPredicates(
            opens(0, 1), lambda s, e, _: e["kind"] == 1 - s.start_event["kind"] and same_key(s, e)
        ),
    ),
    "disjunction": (
        lambda: Disjunction(one_of("kind", 0), one_of("kind", 3)),
        lambda: RowPredicates(opens(0, 3), lambda s, e, _: True, start_first=True),
    ),
    "tuple windows": (
        lambda: TupleWindows(5, 3),
        lambda: RowPredicates(
            lambda e, state: state.update(n=state.get("n", -1) + 1) or state["n"] % 3 == 0,
            lambda s, e, state: state["n"] - s.start == 4,
            start_first=True,
        ),
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
@settings(deadline=None, max_examples=60)
@given(stream=streams, cuts=cuts)
def test_every_family_is_its_predicates_wherever_the_stream_is_cut(
    family: str, stream: Stream, cuts: list[int]
) -> None:
    fast, slow = FAMILIES[family]
    expected = selections(slow(), stream, [])
    assert selections(slow(), stream, cuts) == expected
    assert selections(fast(), stream, cuts) == expected


@pytest.mark.parametrize("family", [*FAMILIES, "time windows"])
@settings(deadline=None, max_examples=25)
@given(stream=streams, at=st.integers(0, 60), by_rows=st.integers(0, 1))
def test_what_is_exported_goes_on_as_if_nothing_had_happened(
    family: str, stream: Stream, at: int, by_rows: int
) -> None:
    make = FAMILIES[family][by_rows] if family in FAMILIES else lambda: TimeWindows(7, 2)
    at = min(at, len(stream))
    first, second = _cut(whole(stream), 0, at), _cut(whole(stream), at, len(stream))
    straight, before, after = make(), make(), make()
    straight.cut(first)
    before.cut(first)
    after.restore({name: array.copy() for name, array in before.export().items()})
    assert after.open_selections == straight.open_selections
    for expected, found in (
        (straight.cut(second), after.cut(second)),
        (straight.finish(len(stream)), after.finish(len(stream))),
    ):
        assert found.first_number == expected.first_number
        for name in ("starts", "closed", "stops", "closers"):
            assert getattr(found, name).tolist() == getattr(expected, name).tolist()


def _cut(batch: EventBatch, low: int, high: int) -> EventBatch:
    return EventBatch(low, batch.times[low:high], {name: c[low:high] for name, c in batch.columns.items()})


@settings(deadline=None, max_examples=150)
@given(stream=streams, cuts=cuts, size=st.integers(1, 12), slide=st.integers(1, 12))
def test_time_windows_are_all_that_the_slide_defines(
    stream: Stream, cuts: list[int], size: int, slide: int
) -> None:
    times = [time for time, _, _ in stream]
    expected = []
    for k in range(-20, times[-1] // slide + 1):
        inside = [p for p, time in enumerate(times) if k * slide <= time < k * slide + size]
        if inside:
            expected.append((inside[0], inside[-1] + 1))
    assert selections(TimeWindows(size, slide), stream, cuts) == expected


def test_figure_2_misses_windows_that_begin_in_a_gap() -> None:
    """Windows of 10 every 2; events at 0 and 9: figure 2 opens [0, 10] and [8, 18] only."""
    stream = [(0, 0, 0), (9, 0, 0)]
    literal = RowPredicates(_figure_2_starts, _figure_2_closes, includes_close=False)
    assert len(selections(literal, stream, [])) == 2
    assert len(selections(TimeWindows(10, 2), stream, [])) == 9  # from [-8, 2) to [8, 18)


def _figure_2_starts(event: dict[str, Any], state: dict[str, Any]) -> bool:
    if event["time"] < state.get("next", 0):
        return False
    state["next"] = event["time"] + 2 - event["time"] % 2
    return True


def _figure_2_closes(selection: Any, event: dict[str, Any], state: dict[str, Any]) -> bool:
    return bool(event["time"] > selection.start_event["time"] + 10)


def test_a_gap_of_a_year_costs_nothing() -> None:
    year = 365 * 86_400 * 10**6
    found = TimeWindows(10, 1).cut(EventBatch(0, np.array([0, year, 2 * year]), {}))
    assert len(found.starts) == 30
    assert len(found.closed) == 20


def test_many_keys_and_long_streams_do_not_run_out_of_room() -> None:
    predicates = Sequence(one_of("kind", 0), one_of("kind", 1), by="key")
    random = np.random.default_rng(5)
    stream = [(n, int(random.integers(2)), int(random.integers(3000))) for n in range(20_000)]
    found = selections(predicates, stream, list(range(500, 20_000, 700)))
    open_by_key: dict[int, list[int]] = {}
    stops: dict[int, int] = {}
    for position, (_, kind, key) in enumerate(stream):
        if kind == 1:
            stops.update(dict.fromkeys(open_by_key.pop(key, []), position + 1))
        else:
            open_by_key.setdefault(key, []).append(position)
    assert found == [
        (position, stops.get(position, len(stream))) for position, row in enumerate(stream) if row[1] == 0
    ]


def test_periodic_ticks_fall_from_the_start_to_the_end() -> None:
    periodic = Periodic(one_of("kind", 0), one_of("kind", 1), every_us=10)
    assert periodic.ticks(5, 35).tolist() == [15, 25, 35]


@pytest.mark.parametrize(
    "make",
    [
        lambda: TimeWindows(0, 1),
        lambda: TupleWindows(1, 0),
        lambda: Sequence(one_of("kind", 0)),
        lambda: Sequence(one_of("kind", 0), within_us=-1),
        lambda: Periodic(one_of("kind", 0), one_of("kind", 1), every_us=0),
        lambda: Disjunction(),
    ],
)
def test_selections_that_make_no_sense_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(PenstockError):
        make()
