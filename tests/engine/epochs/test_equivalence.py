"""Epochs never change a result: graphs cut, ended and gone on with give the rows of the reference."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.binding.catalogue import BINDINGS
from penstock.scheduling.catalogue import POLICIES
from tests.engine.epochs.kept import Portions, portioned, run_with_kills
from tests.engine.keyed.test_parallel import PARTITIONS, moving
from tests.engine.test_equivalence import compare, expected_of
from tests.graphs.graph_strategies import CATALOGUE, Drawn, few, few_random_graphs, random_graphs


@st.composite
def kept_nodes(draw: st.DrawFn) -> ps.Node:
    tasks = draw(st.integers(1, 3))
    threads = "per_operator" if tasks == 1 and draw(st.integers(0, 4)) == 0 else "pool"
    return ps.Node(
        tasks=tasks,
        virtual_partitions=PARTITIONS,
        rebalance_every_s=0.0,
        force_route=moving(tasks, draw(st.integers(0, 2**16))) if tasks > 1 else None,
        workers=draw(st.integers(1, 3)),
        threads=threads,
        binding=draw(st.sampled_from([None, None, *sorted(BINDINGS)])) if threads == "pool" else None,
        rebind_every_s=0.001,
        scheduling=draw(st.sampled_from(sorted(POLICIES))),
        consumption=draw(st.sampled_from(["all", "all", "half", 1, 7])),
        memory=draw(st.sampled_from(["blocks", "blocks", "queues"])),
        block_events=draw(st.sampled_from([4, 16, 64, 1024])),
        max_chunks=draw(st.integers(2, 4)),
        turn_blocks=draw(st.integers(1, 3)),
        source_batch=draw(st.one_of(st.none(), st.integers(1, 40))),
    )


several_nodes = st.lists(kept_nodes(), min_size=1, max_size=3)


def check_kept_run(one: Drawn, nodes: list[ps.Node], number: int) -> None:
    """Runs the graph with epochs, ended and gone on with on any of the nodes, and compares every sink, and
    the counts of late events, with the reference."""
    reference, built = expected_of(one), one.build()
    choose = random.Random(number)
    portions = Portions(choose)
    graph = portioned(built.app.graph(), portions)
    with tempfile.TemporaryDirectory() as folder:
        summary, ended = run_with_kills(graph, nodes, Path(folder), choose, portions)
    how = f"{nodes}, seed {number}, ended {ended} times"
    compare(built.results(), reference.sinks, one, built, how)
    late = {operator.id: operator.late for operator in summary.metrics.operators if operator.late}
    assert late == {name: count for name, count in reference.late_counts.items() if count}, how
    assert summary.complete


#: Kernels are compiled for every graph, so the others are for the slow run.
_QUICK = ("aggregate", "join", "deduplicate", "late", "process", "match", "nested")
_EVERY = [pytest.param(name, marks=() if name in _QUICK else pytest.mark.slow) for name in CATALOGUE]


@pytest.mark.parametrize("name", _EVERY)
def test_every_operator_goes_on_where_it_was(name: str) -> None:
    @settings(max_examples=3)
    @given(few(name), several_nodes, st.integers(0, 2**16))
    def check(one: Drawn, nodes: list[ps.Node], number: int) -> None:
        check_kept_run(one, nodes, number)

    check()


def test_random_graphs_go_on_where_they_were() -> None:
    @settings(max_examples=4)
    @given(few_random_graphs(), several_nodes, st.integers(0, 2**16))
    def check(one: Drawn, nodes: list[ps.Node], number: int) -> None:
        check_kept_run(one, nodes, number)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_many_random_graphs_go_on_where_they_were(part: int) -> None:
    @seed(part)
    @settings(settings.get_profile("thorough"), max_examples=15)
    @given(random_graphs, several_nodes, st.integers(0, 2**16))
    def check(one: Drawn, nodes: list[ps.Node], number: int) -> None:
        check_kept_run(one, nodes, number)

    check()
