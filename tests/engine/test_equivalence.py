"""The rule above all others: a query's result depends on its input only.

Random graphs and a catalogue with every operator run on the node engine with random policies, consumption,
threads, memory, workers, block sizes and cuts, and must give the rows of the reference interpreter.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, reject, seed, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.query.stream.stream import Stream
from penstock.query.user_functions import Context, ProcessFunction
from penstock.scheduling.catalogue import POLICIES
from tests.cep.patterns.oracle import ExplodesError
from tests.graphs.graph_steps import Draw
from tests.graphs.graph_strategies import (
    CATALOGUE,
    Built,
    Drawn,
    Queries,
    drawn,
    few,
    few_random_graphs,
    random_graphs,
)
from tests.reference import Result, Row, interpret

TOLERANCE = 1e-9  # for floats; everything else is equal or wrong

nodes = st.builds(
    ps.Node,
    workers=st.integers(1, 3),
    scheduling=st.sampled_from(sorted(POLICIES)),
    consumption=st.sampled_from(["all", "all", "half", 1, 7, 1_000]),
    rules=st.builds(ps.Rules, *[st.booleans()] * 6),
    fusion=st.booleans(),
    costs=st.sampled_from(["least", "mean"]),
    threads=st.sampled_from(["pool", "pool", "pool", "per_operator"]),
    memory=st.sampled_from(["blocks", "blocks", "queues"]),
    block_events=st.one_of(st.integers(2, 64), st.just(1024)),
    chunk_blocks=st.integers(1, 4),
    max_chunks=st.integers(2, 4),
    turn_blocks=st.integers(1, 4),
    source_batch=st.one_of(st.none(), st.integers(1, 40)),
)


# -- the tests -------------------------------------------------------------------------------------


#: By default operators alone, here; those that follow others, in Spark's tasks. Kernels take long to compile.
_LATER = {name for name in CATALOGUE if " after " in name or " of " in name} | {"spread"}
_EACH = [pytest.param(name, marks=pytest.mark.slow if name in _LATER else ()) for name in CATALOGUE]


@pytest.mark.parametrize("name", _EACH)
def test_every_operator_gives_the_rows_of_the_reference(name: str) -> None:
    @settings(max_examples=3)
    @given(few(name), nodes, st.booleans())
    def check(one: Drawn, node: ps.Node, share: bool) -> None:
        check_run(one, node, share)

    check()


@pytest.mark.parametrize("part", range(2))  # few examples from many seeds differ more than many from one
def test_random_graphs_give_the_rows_of_the_reference(part: int) -> None:
    @seed(part)
    @settings(max_examples=5)
    @given(few_random_graphs(), nodes, st.booleans())
    def check(one: Drawn, node: ps.Node, share: bool) -> None:
        check_run(one, node, share)

    check()


@pytest.mark.parametrize("name", ["deduplicate after union", "join of windows", "late"])
def test_sources_that_promise_order_give_the_rows_of_the_reference(name: str) -> None:
    @settings(max_examples=6)
    @given(few(name), nodes)
    def check(one: Drawn, node: ps.Node) -> None:
        check_run(one.in_order(), node, True)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE)
def test_every_operator_gives_the_rows_of_the_reference_many_times(name: str) -> None:
    @settings(settings.get_profile("thorough"), max_examples=12)
    @given(drawn(CATALOGUE[name]), nodes, st.booleans())
    def check(one: Drawn, node: ps.Node, share: bool) -> None:
        check_run(one, node, share)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(40))
def test_many_random_graphs_give_the_rows_of_the_reference(part: int) -> None:
    @settings(settings.get_profile("thorough"), max_examples=25)
    @given(random_graphs, nodes, st.booleans())
    def check(one: Drawn, node: ps.Node, share: bool) -> None:
        check_run(one, node, share)

    check()


def test_results_do_not_change_with_sharing_off() -> None:
    @settings(max_examples=5)
    @given(few_random_graphs(), nodes, nodes)
    def check(one: Drawn, node: ps.Node, other: ps.Node) -> None:
        expected_of(one)  # refuses graphs whose order is not defined
        shared, apart = one.build(), one.build()
        shared.app.run(on=node, share=True)
        apart.app.run(on=other, share=False)
        how = f"sharing off on {other}, expected with sharing on {node}"
        compare(apart.results(), shared.results(), one, apart, how)

    check()


class EveryEvent(ProcessFunction):
    def on_event(self, event: Row, context: Context) -> list[Row]:
        return [{"id": event["id"]}]


def _on_time_and_late(draw: Draw, cars: Stream, ads: Stream) -> Queries:
    first = cars.deduplicate("id")
    window = ps.tumbling(f"{draw(st.integers(1, 50))}us")
    ranked = cars.key_by("k").window(window).top(100_000, by="y")
    handled = cars.key_by("k").process(EveryEvent(), output={"id": "int64"})
    results = {"deduplicate": first, "top": ranked, "process": handled}
    queries = {name: stream.select("id") for name, stream in results.items()}
    return queries | {f"{name} late": stream.late().select("id") for name, stream in results.items()}


@settings(max_examples=12)
@given(drawn(_on_time_and_late), nodes)
def test_every_event_is_either_in_the_result_or_in_the_late_output(one: Drawn, node: ps.Node) -> None:
    built = one.build()
    built.app.run(on=node)
    results = {name: [row["id"] for row in rows] for name, rows in built.results().items()}
    given_ids = sorted(row["id"] for partition in built.inputs["cars"] for row in partition)
    for name in ("deduplicate", "top", "process"):
        assert sorted(results[name] + results[f"{name} late"]) == given_ids, name


# -- running and comparing -------------------------------------------------------------------------


def check_run(one: Drawn, node: ps.Node, share: bool) -> None:
    """Runs the graph and compares every sink, and the counts of late events, with the reference."""
    built = one.build()
    reference = expected_of(one, share)
    summary = built.app.run(on=node, share=share)
    compare(built.results(), reference.sinks, one, built, f"{node}, share={share}")
    late = {operator.id: operator.late for operator in summary.metrics.operators if operator.late}
    expected_late = {name: count for name, count in reference.late_counts.items() if count}
    assert late == expected_late, f"late counts differ\n{described(one, built, str(node))}"


def expected_of(one: Drawn, share: bool = True) -> Result:
    """What the reference gives; it fails where two events share a place in an order that matters.

    An example whose matches explode is drawn anew: matches of matches of many events may be millions.
    """
    built = one.build()
    try:
        return interpret(built.app.graph(share), built.inputs)
    except ExplodesError:
        reject()


def compare(
    results: dict[str, list[Row]], expected: dict[str, list[Row]], one: Drawn, built: Built, how: str
) -> None:
    """Fails with all that is needed to see why, if a sink's rows differ as multisets."""
    assert results.keys() == expected.keys()
    for sink, rows in expected.items():
        missing, unexpected = difference(rows, results[sink])
        if missing or unexpected:
            pytest.fail(
                f"sink '{sink}' differs: {len(missing)} rows missing, {len(unexpected)} not expected\n"
                + "".join(f"  missing    {row}\n" for row in missing[:10])
                + "".join(f"  unexpected {row}\n" for row in unexpected[:10])
                + described(one, built, how)
            )


def described(one: Drawn, built: Built, how: str) -> str:
    lines = [f"settings: {how}", built.app.explain(), f"choices: {one.choices}"]
    for name, partitions in built.inputs.items():
        lines.append(f"source '{name}': {one.shapes[name]}")
        for number, rows in enumerate(partitions):
            lines += [f"  {number}/{offset}: {row}" for offset, row in enumerate(rows[:60])]
            lines += [f"  {number}: and {len(rows) - 60} more"] if len(rows) > 60 else []
    return "\n".join(lines)


def difference(expected: list[Row], got: list[Row]) -> tuple[list[Row], list[Row]]:
    """What is missing and what is too much; rows whose floats are close enough are the same."""
    left, right = Counter(map(_exact, expected)), Counter(map(_exact, got))
    missing, unexpected = left - right, right - left
    by_rest: dict[Any, list[Any]] = defaultdict(list)
    for row in unexpected.elements():
        by_rest[_without_floats(row)].append(row)
    unmatched = []
    for row in missing.elements():
        candidates = by_rest[_without_floats(row)]
        close = next((other for other in candidates if _close(row, other)), None)
        if close is None:
            unmatched.append(dict(row))
        else:
            candidates.remove(close)
    return unmatched, [dict(row) for rows in by_rest.values() for row in rows]


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _exact(row: Row) -> tuple[tuple[str, Any], ...]:
    return tuple((name, _plain(value)) for name, value in row.items())


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return ((value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)
    if isinstance(value, float):
        return _NAN if math.isnan(value) else value + 0.0  # −0.0 equals 0.0
    if isinstance(value, bool):
        return str(value)  # True equals 1 in Python
    return value


class _NaN(float):
    """Equal to itself, so that rows with NaN can be counted."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NaN)

    def __hash__(self) -> int:
        return 0


_NAN = _NaN("nan")


def _without_floats(row: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, "float" if isinstance(value, float) else value) for name, value in row)


def _close(one: tuple[tuple[str, Any], ...], other: tuple[tuple[str, Any], ...]) -> bool:
    def same(a: Any, b: Any) -> bool:
        return a == b or (isinstance(a, float) and math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=1e-12))

    return all(same(a, b) for (_, a), (_, b) in zip(one, other, strict=True))
