"""State of other instances, merged into an operator at any moment, is as if it had consumed their events."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.memory.edges import START_OF_TIME
from penstock.memory.layout import LATE, ORDER
from penstock.memory.strings import StringPool
from penstock.query.aggregates import AGGREGATES
from penstock.query.windows import Sliding
from penstock.state.errors import StateError
from penstock.state.tables import StateTables, merge
from tests.harness import Harness, Row
from tests.operators.state_steps import STEPS, Step, aggregating, counted, nesting, top
from tests.window_cases import EVENT, EVERYTHING

MERGEABLE: dict[str, Step] = {
    "tumbling": aggregating(Sliding(10, 10), ["town"]),
    "sliding": aggregating(Sliding(20, 5), ["speed", "town"]),
    "sliding with gaps": aggregating(Sliding(5, 20), ["share", "seen"]),
    "whole numbers": aggregating(Sliding(30, 10), ["lane"]),
    "without key": aggregating(Sliding(10, 4), []),
    "nested": nesting(Sliding(20, 20), ["town"], ["lane"]),
    "sliding nested": nesting(Sliding(20, 5), ["speed", "seen"], ["town", "lane"]),
    "nested without key": nesting(Sliding(10, 10), [], ["town"]),
    "top": top(2, Sliding(20, 20), ["town"]),
    "sliding top": top(3, Sliding(30, 10), ["lane", "speed"]),
    "large top": top(100, Sliding(30, 10), []),
    "top by text": top(2, Sliding(20, 10), ["lane"], by_text=True),
}


def through_ipc(tables: StateTables) -> StateTables:
    read = {}
    for name, table in tables.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
        with pa.ipc.open_stream(sink.getvalue()) as reader:
            read[name] = reader.read_all()
    return read


class Merging:
    """An operator that consumes some events itself and gets the others as state of partial instances."""

    def __init__(self, step: Step, seed: int) -> None:
        self._random = random.Random(seed)
        self.main = self._made(step)
        self.partials = [self._made(step) for _ in range(self._random.randint(1, 3))]
        self._pending: list[StateTables] = []
        self._watermark = START_OF_TIME

    def _made(self, step: Step) -> Harness:
        strings = StringPool()
        strings.codes(self._random.sample(["x", "b", "y", "a", "z"], 3))  # codes of its own
        return step(strings=strings, seed=self._random.randrange(99))

    def feed(self, events: Sequence[Row]) -> None:
        instances = [self.main, *self.partials]
        shares: list[list[Row]] = [[] for _ in instances]
        for event in events:
            self._random.choice(shares).append(event)
        for instance, share in self._random.sample(
            list(zip(instances, shares, strict=True)), k=len(instances)
        ):
            instance.feed(share)
            if self._random.random() < 0.5:
                self.merge_some()

    def merge_some(self) -> None:
        """Takes the state of a partial instance, which begins anew, and merges some of what was taken."""
        partial = self._random.choice(self.partials)
        self._take(partial)
        self._random.shuffle(self._pending)
        while self._pending and self._random.random() < 0.5:
            self.main.operator.merge_state(self._pending.pop())

    def _take(self, partial: Harness) -> None:
        tables = partial.operator.export_state()
        self.late_of_partials += partial.operator.late_events
        partial.operator.reset()
        self._pending.append(through_ipc(tables) if self._random.random() < 0.5 else tables)

    late_of_partials = 0

    def watermark(self, time_us: int) -> None:
        self.merge_all()
        self._watermark = time_us
        self.main.watermark(time_us)

    def merge_all(self) -> None:
        for partial in self.partials:
            self._take(partial)
        self._random.shuffle(self._pending)
        if self._random.random() < 0.3:
            self._pending = [merge(self._pending)]  # the same keys in one table more than once
        for tables in self._pending:
            self.main.operator.merge_state(tables)
        self._pending.clear()

    def restart(self) -> None:
        """The operator itself is put down and taken up again, as from batch to batch."""
        self.main.rows()
        tables, late = self.main.operator.export_state(), self.main.operator.late_events
        self.main.operator.reset()
        self.main.operator.import_state(tables, self._watermark)
        self.main.operator.late_events = late

    def end(self) -> None:
        self.merge_all()
        self.main.end()


@pytest.mark.parametrize("name", MERGEABLE)
@settings(max_examples=8)
@given(
    events=st.lists(EVENT, min_size=12, max_size=60),
    cuts=st.lists(st.integers(0, 60), min_size=1, max_size=6),
    seed=st.integers(0, 1000),
)
@example(events=[], cuts=[0], seed=0)
def test_events_consumed_elsewhere_and_merged_give_the_rows_of_one_operator(
    name: str, events: list[Row], cuts: list[int], seed: int
) -> None:
    choice = random.Random(seed)
    events = sorted(events, key=lambda event: event["ts"] // 15)  # nearly in order: the watermark moves on
    events = [{**event, ORDER: number} for number, event in enumerate(events)]
    whole, merging = MERGEABLE[name](), Merging(MERGEABLE[name], seed)
    position = 0
    for cut in [*sorted({min(cut, len(events)) for cut in cuts}), len(events)]:
        whole.feed(events[position:cut])
        merging.feed(events[position:cut])
        position = cut
        on_time = [event["ts"] for event in events[cut:] if not event[LATE]]
        if on_time and choice.random() < 0.7:
            whole.watermark(min(on_time))
            merging.watermark(min(on_time))
            assert counted(merging.main.rows()) == counted(whole.rows())
        if choice.random() < 0.4:
            merging.restart()
    whole.end()
    merging.end()
    assert counted(merging.main.rows()) == counted(whole.rows())
    assert merging.main.operator.export_state() == {}
    late = merging.main.operator.late_events + merging.late_of_partials
    assert late == whole.operator.late_events


def test_the_aggregates_above_are_of_every_kind() -> None:
    assert {one.function.name for one in EVERYTHING.values()} == set(AGGREGATES)


@pytest.mark.parametrize("name", ["whole numbers", "sliding top"])
def test_a_merge_makes_room_for_many_new_groups(name: str) -> None:
    def events(first: int) -> list[Row]:
        return [{"ts": n % 40, "lane": n, "speed": 1.0, ORDER: n} for n in range(first, first + 700)]

    whole, part, main = (MERGEABLE[name](block_events=512) for _ in range(3))
    whole.feed(events(0) + events(350), cut=False)
    part.feed(events(350), cut=False)
    main.feed(events(0), cut=False)
    main.operator.merge_state(part.operator.export_state())
    for harness in (whole, main):
        harness.end()
    assert counted(main.rows()) == counted(whole.rows())


@pytest.mark.parametrize("name", ["tumbling", "top"])
def test_tables_stay_as_they_are_when_their_operator_goes_on(name: str) -> None:
    harness, fresh = MERGEABLE[name](), MERGEABLE[name]()
    harness.feed([{"ts": n, "town": "a", "speed": float(n)} for n in range(20)])
    tables = harness.operator.export_state()
    before = through_ipc(tables)
    harness.operator.reset()
    harness.feed([{"ts": n, "town": "b", "speed": 100.0 + n} for n in range(20)])
    harness.end()
    fresh.operator.merge_state(tables)
    harness.operator.reset()
    assert {name: table.combine_chunks() for name, table in before.items()} == {
        name: table.combine_chunks() for name, table in tables.items()
    }


def test_only_window_aggregates_and_tops_are_mergeable() -> None:
    found = {name for name, (step, _, _) in STEPS.items() if step().operator.mergeable}
    assert found == {name for name in STEPS if "top" in name or name in MERGEABLE}
    with pytest.raises(RuntimeError, match="step 'pages' cannot merge state"):
        STEPS["session"][0](node_id="pages").operator.merge_state({})


def test_state_of_another_operator_is_not_merged() -> None:
    harness = MERGEABLE["top"]()
    harness.feed([{"ts": 1, "town": "a"}])
    with pytest.raises(StateError, match="'per_town' was given table 'rows', it keeps groups, values"):
        MERGEABLE["tumbling"](node_id="per_town").operator.merge_state(harness.operator.export_state())
