"""Groups without Spark: what users may write, who goes next, and how a checkpoint remembers them."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from lab.bench.faults.power import PowerRecorder
from penstock.checkpoints import groups as group_checkpoint
from penstock.checkpoints.folders import Checkpoint, operators_of
from penstock.checkpoints.groups import (
    check_no_groups,
    delivered_in,
    folder_of,
    obstacle,
    resumed_groups,
    split,
    store_groups,
    stored_groups,
)
from penstock.checkpoints.positions import PartitionProgress, Progress
from penstock.query.errors import PenstockError, RunError
from penstock.query.graph import Graph
from penstock.scheduling.catalogue import POLICIES
from penstock.spark.batches.stages import cut
from penstock.spark.groups.groups import check_sources, named_groups, part_of, queries_of
from penstock.spark.groups.schedule import GroupSchedule
from penstock.spark.groups.slots import BatchSlots, GroupShare, Stopping
from penstock.state.errors import StateError
from penstock.state.manifest import Manifest
from penstock.state.store import StateStore

SECOND = 1_000_000_000


def some_graph() -> Graph:
    app = ps.App("groups")
    rows = ps.sources.Rows([{"ts": 1, "x": 1}], {"ts": "timestamp", "x": "int64"})
    events = app.source("events", rows, event_time="ts")
    even = events.filter(ps.col("x") % 2 == 0)
    app.sink("counts", even.window(ps.tumbling("1s")).agg(n=ps.count()), ps.sinks.Memory())
    app.sink("sums", even.window(ps.tumbling("1s")).agg(n=ps.sum("x")), ps.sinks.Memory())
    app.sink("firsts", events.deduplicate("x"), ps.sinks.Memory())
    return app.graph()


# -- what users write ----------------------------------------------------------------------------------------


def test_queries_that_no_group_names_are_one_more_group() -> None:
    assert named_groups([["sums"]], some_graph()) == (("sums",), ("counts", "firsts"))
    assert named_groups([["sums"], ["firsts", "counts"]], some_graph()) == (("sums",), ("firsts", "counts"))


def test_mistakes_are_told_before_anything_runs() -> None:
    with pytest.raises(PenstockError, match="unknown query: 'summs'; did you mean 'sums'"):
        named_groups([["summs"]], some_graph())
    with pytest.raises(PenstockError, match="name query 'sums' twice"):
        named_groups([["sums"], ["sums"]], some_graph())
    with pytest.raises(PenstockError, match=r'groups must be "auto" or lists'):
        ps.Spark(groups="some")
    with pytest.raises(PenstockError, match=r'groups must be "auto" or lists'):
        ps.Spark(groups=["sums"])
    with pytest.raises(PenstockError, match="unknown policy"):
        ps.Spark(groups="auto", group_scheduling="luck")
    with pytest.raises(PenstockError, match="concurrent_batches must be at least 1: got 0"):
        ps.Spark(groups="auto", concurrent_batches=0)


def test_a_part_keeps_the_ids_of_its_operators() -> None:
    graph = some_graph()
    part = part_of(graph, ["counts"])
    assert queries_of(part) == ["counts"]
    assert {node.id for node in part} < {node.id for node in graph}
    assert all(node.queries <= {"counts"} for node in part)
    assert obstacle(graph, [part]) is None


def test_a_connection_is_heard_by_one_group_only() -> None:
    app = ps.App("lines")
    lines = app.source("lines", ps.sources.TcpLines({"ts": "timestamp"}, port=9), event_time="ts")
    for name in ("a", "b"):
        app.sink(name, lines, ps.sinks.Memory())
    with pytest.raises(RunError, match="source 'lines' cannot be read by 2 groups"):
        check_sources(app.graph(), (("a",), ("b",)))
    check_sources(app.graph(), (("a", "b"),))


# -- who goes next -------------------------------------------------------------------------------------------


def measured(policy: str) -> GroupSchedule:
    """Group 0 takes 1 µs a row, group 1 takes 100; 1,000 rows a second; both were planned at 1 s."""
    schedule = GroupSchedule(2, policy)
    for group, cost_ns in ((0, 1_000), (1, 100_000)):
        for planned in (0, SECOND):
            schedule.ended(group, planned + 1, planned + 1, planned + 1 + 1_000 * cost_ns, 1_000)
    return schedule


def test_lag_is_what_came_since_the_last_batch_was_planned() -> None:
    schedule = measured("congestion")
    assert schedule.rows_per_s == pytest.approx(1_000)
    assert schedule.lag(0, 3 * SECOND) == pytest.approx(2_000, abs=1)


def test_the_cheaper_group_goes_first_and_the_other_is_not_forgotten() -> None:
    schedule = measured("highest_rate")
    for now in (2, 3):
        schedule.arrived(0, now * SECOND)
        schedule.arrived(1, now * SECOND)
    assert [schedule.choose([0, 1], 4 * SECOND) for _ in range(6)] == [0, 0, 1, 0, 0, 1]


def test_the_longest_lag_goes_first_by_congestion() -> None:
    schedule = measured("congestion")
    schedule.ended(0, 5 * SECOND, 5 * SECOND, 5 * SECOND + 1_000_000, 1_000)
    assert schedule.choose([0, 1], 6 * SECOND) == 1


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_policy_orders_groups_and_forgets_nobody(policy: str) -> None:
    @given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1_000)), max_size=6))
    def check(history: list[tuple[int, int]]) -> None:
        schedule = GroupSchedule(4, policy)
        now = SECOND
        for group, rows in history:
            schedule.ended(group, now, now, now + SECOND, rows)
            now += SECOND
        for group in range(4):
            schedule.arrived(group, now + group)
        chosen = [schedule.choose(range(4), now + SECOND * turn) for turn in range(1, 25)]
        assert set(chosen) == set(range(4))

    check()


def test_no_more_batches_at_a_time_than_slots() -> None:
    slots = BatchSlots(GroupSchedule(4), 2)
    inside, go = threading.Semaphore(0), threading.Event()

    def batch(group: int) -> None:
        with slots.turn(group) as turn:
            turn.rows = 10
            inside.release()
            go.wait(30)

    threads = [threading.Thread(target=batch, args=(group,)) for group in range(4)]
    for thread in threads:
        thread.start()
    assert inside.acquire(timeout=30)
    assert inside.acquire(timeout=30)
    go.set()
    for thread in threads:
        thread.join(30)
    assert slots.most_running == 2


def test_a_batch_that_waits_is_sent_away_when_the_run_stops() -> None:
    slots = BatchSlots(GroupSchedule(2), 1)
    outcome: list[str] = []

    def waiting() -> None:
        try:
            with slots.turn(1):
                outcome.append("ran")
        except Stopping:
            outcome.append("stopped")

    with slots.turn(0):
        thread = threading.Thread(target=waiting)
        thread.start()
        slots.close()
        thread.join(30)
    assert outcome == ["stopped"]
    assert GroupShare(0, 2, slots).most_tasks(8) == 7
    assert GroupShare(0, 2, slots).most_tasks(1) == 1


# -- what a checkpoint remembers -----------------------------------------------------------------------------

STORED = (("a", "b"), ("heavy",))


def test_groups_are_stored_and_found_again(tmp_path: Path) -> None:
    checkpoint = Checkpoint.at(tmp_path)
    assert stored_groups(checkpoint) is None
    check_no_groups(tmp_path)
    store_groups(checkpoint, STORED)
    assert stored_groups(checkpoint) == STORED
    with pytest.raises(StateError, match=r'has groups.*\[a, b\] and \[heavy\].*write groups="auto"'):
        check_no_groups(tmp_path)


def test_damaged_groups_are_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "groups.json").write_text("{}")
    with pytest.raises(StateError, match="groups of the checkpoint cannot be read"):
        stored_groups(Checkpoint.at(tmp_path))
    (tmp_path / "groups.json").write_text('{"format": 9, "groups": []}')
    with pytest.raises(StateError, match="another version of Penstock"):
        stored_groups(Checkpoint.at(tmp_path))


def test_a_run_goes_on_with_the_groups_that_it_had() -> None:
    assert resumed_groups(STORED, None, ["a", "b", "heavy"], "here") == STORED
    assert resumed_groups(STORED, (("heavy",), ("b", "a")), ["a", "b", "heavy"], "here") == STORED
    with pytest.raises(StateError, match=r"made with \[a, b\] and \[heavy\], the run was given \[a\]"):
        resumed_groups(STORED, (("a",), ("b", "heavy")), ["a", "b", "heavy"], "here")


def test_queries_come_and_go() -> None:
    assert resumed_groups(STORED, None, ["a", "b", "new"], "here") == (("a", "b"), ("new",))
    assert resumed_groups(STORED, None, ["heavy", "new"], "here") == (("new",), ("heavy",))
    # Where what it delivered is known, a query goes on when it comes again.
    assert resumed_groups(STORED, None, ["a", "b"], "here", [{"a", "b"}, {"heavy"}]) == (("a", "b"), ())
    again = resumed_groups((("a",), ("heavy",)), None, ["a", "b", "heavy"], "here", [{"a"}, {"heavy", "b"}])
    assert again == (("a",), ("heavy", "b"))


def test_steps_alike_stay_told_apart_by_all_of_the_app() -> None:
    app = ps.App("alike")
    rows = ps.sources.Rows([{"ts": 1, "x": 1}], {"ts": "timestamp", "x": "int64"})
    events = app.source("events", rows, event_time="ts")
    for name in ("a", "b"):
        made = events.flat_map(lambda event: [event], {"ts": "timestamp", "x": "int64"})
        app.sink(name, made.window(ps.tumbling("1s")).agg(n=ps.count()), ps.sinks.Memory())
    part = operators_of(cut(part_of(app.graph(), ["b"])))
    assert len(part) == 1
    assert all(text.endswith("one of 2 alike") for text in part.values())


def test_groups_of_other_sources_are_not_carried_over() -> None:
    app = ps.App("two")
    for name in ("one", "other"):
        rows = ps.sources.Rows([{"ts": 1, "x": 1}], {"ts": "timestamp", "x": "int64"})
        app.sink(f"of_{name}", app.source(name, rows, event_time="ts").deduplicate("x"), ps.sinks.Memory())
    graph = app.graph()
    parts = [part_of(graph, ["of_one"]), part_of(graph, ["of_other"])]
    assert obstacle(graph, parts) == "one of the groups does not read source 'other'"


def undivided(root: Path, graph: Graph) -> Checkpoint:
    """A checkpoint of all queries after three batches, as far as files go."""
    checkpoint = Checkpoint.at(root)
    progress = Progress({"events": {0: PartitionProgress(position=7)}}, (0,) * 4)
    store = StateStore(checkpoint.state)
    logs = {"offsets/2": "v1\n{}\n-", "commits/2": "v1\n{}"}
    delivered = {query: {"kind": "memory", "query": query} for query in ("counts", "sums", "firsts", "gone")}
    for version in (2, 3):
        store.commit(
            Manifest(
                version,
                "run",
                4,
                operators_of(cut(graph)),
                progress.to_json(),
                batches=version,
                logs=logs,
                deliveries=delivered,
            )
        )
    for name in ("spark/metadata", "spark/offsets/2", "spark/sources/0/0", "sources/events/files-0.json"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("v1")
    return checkpoint


def test_every_group_goes_on_where_all_stood(tmp_path: Path) -> None:
    graph = some_graph()
    checkpoint = undivided(tmp_path, graph)
    groups = (("counts",), ("sums", "firsts"))
    parts = [part_of(graph, group) for group in groups]
    split(checkpoint, groups, graph, parts)
    assert stored_groups(checkpoint) == groups
    assert not (tmp_path / "state").exists()
    for number, part in enumerate(parts):
        folder = Path(folder_of(checkpoint, number))
        manifest = StateStore(folder / "state").latest()
        assert manifest is not None
        assert manifest.version == 4
        assert manifest.operators == operators_of(cut(part))
        # What a query delivered is in one place: a second would grow old there, and files be cut to it.
        assert set(manifest.deliveries) == {*groups[number], *(["gone"] if number == 0 else [])}
        assert Progress.from_json(manifest.progress).sources["events"][0].position == 7
        assert manifest.logs.keys() == {"offsets/2", "commits/2"}
        assert not (folder / "spark" / "offsets").exists()  # made anew from the manifest
        for name in ("spark/sources/0/0", "sources/events/files-0.json"):
            assert (folder / name).read_text() == "v1"
    delivered = delivered_in(checkpoint, groups)
    assert delivered == ({"counts", "gone"}, {"sums", "firsts"})
    queries = ["counts", "sums", "gone"]
    again = resumed_groups(groups, None, queries, "here", delivered)
    assert again == (("counts", "gone"), ("sums",))


def test_a_crash_on_the_way_leaves_the_checkpoint_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = some_graph()
    checkpoint = undivided(tmp_path, graph)
    groups = (("counts",), ("sums", "firsts"))
    parts = [part_of(graph, group) for group in groups]

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(group_checkpoint, "store_groups", crash)
        with pytest.raises(KeyboardInterrupt):
            split(checkpoint, groups, graph, parts)
    assert stored_groups(checkpoint) is None
    latest = StateStore(checkpoint.state).latest()
    assert latest is not None
    assert latest.version == 3
    split(checkpoint, groups, graph, parts)  # what the crash left is made anew
    assert stored_groups(checkpoint) == groups


def test_a_power_cut_keeps_the_checkpoint_of_all_or_those_of_all_groups(tmp_path: Path) -> None:
    graph, groups = some_graph(), (("counts",), ("sums", "firsts"))
    parts = [part_of(graph, group) for group in groups]
    (tmp_path / "disk").mkdir()
    checkpoint = undivided(tmp_path / "disk", graph)
    recorder = PowerRecorder(tmp_path / "disk", tmp_path / "journal")
    recorder.begin()
    with recorder.here():
        split(checkpoint, groups, graph, parts)
    recorder.cut()
    assert stored_groups(checkpoint) == groups
    for number in (0, 1):
        manifest = StateStore(f"{folder_of(checkpoint, number)}/state").latest()
        assert manifest is not None
        for name in ("spark/sources/0/0", "sources/events/files-0.json"):
            assert Path(folder_of(checkpoint, number), name).read_text() == "v1"


def test_state_of_a_step_that_has_changed_is_not_carried_over(tmp_path: Path) -> None:
    graph = some_graph()
    checkpoint = undivided(tmp_path, graph)
    latest = StateStore(checkpoint.state).latest()
    assert latest is not None
    changed = dict.fromkeys(latest.operators, "something else")
    StateStore(checkpoint.state).commit(replace(latest, version=4, operators=changed))
    split(checkpoint, (("counts", "sums", "firsts"),), graph, [graph])
    manifest = StateStore(Path(folder_of(checkpoint, 0)) / "state").latest()
    assert manifest is not None
    assert manifest.operators == {}
