"""A checkpoint that a node has written goes on in batches, and the other way round, as often as one likes."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import penstock as ps
from penstock.engine.seat.settings import Settings
from penstock.engine.seat.summary import Summary
from penstock.state.store import StateStore
from tests.engine.epochs.kept import Portions, portioned, run_until
from tests.engine.epochs.test_equivalence import several_nodes
from tests.engine.test_equivalence import compare, expected_of
from tests.graphs.graph_strategies import CATALOGUE, Drawn, few
from tests.reference import run_reference
from tests.spark import crash_app
from tests.spark.checkpoint.test_resume import check, stopped_after, written
from tests.spark.in_process import InProcess

_QUICK = ("aggregate", "join", "process", "match")
_EVERY = [pytest.param(name, marks=() if name in _QUICK else pytest.mark.slow) for name in CATALOGUE]


@pytest.mark.parametrize("name", _EVERY)
def test_every_operator_goes_on_in_the_other_runtime(name: str) -> None:
    @settings(max_examples=3)
    @given(few(name), several_nodes, st.integers(0, 2**16))
    def run(one: Drawn, nodes: list[ps.Node], number: int) -> None:
        reference, built = expected_of(one), one.build()
        choose = random.Random(number)
        portions = Portions(choose)
        graph = built.app.graph()
        on_node, ended, turns = portioned(graph, portions), False, 0
        with tempfile.TemporaryDirectory() as folder:
            while not ended:
                last = turns > 6
                if choose.random() < 0.5:
                    epochs = None if last else choose.randint(1, 3)
                    node = choose.choice(nodes)
                    ended = run_until(on_node, node, Path(folder), portions, epochs) is not None
                else:
                    batches = InProcess(graph, Path(folder) / "state", choose, Settings(block_events=16))
                    batches.run(None if last else choose.randint(1, 3))
                    ended = bool(batches.manifest.progress["complete"])
                    batches.close()
                turns += 1
        compare(built.results(), reference.sinks, one, built, f"{nodes}, seed {number}, {turns} runs")

    run()


@pytest.mark.parametrize("joined", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_run_goes_from_a_node_to_spark_and_back(joined: bool, spark: SparkSession, tmp_path: Path) -> None:
    portions = Portions(random.Random(3))
    checkpoint = tmp_path / "checkpoint"

    def on_node(node: ps.Node, epochs: int | None) -> Summary | None:
        app, _ = crash_app.build(tmp_path / "out", joined)
        return run_until(portioned(app.graph(), portions), node, checkpoint, portions, epochs)

    assert on_node(ps.Node(workers=1), 3) is None
    app, _ = crash_app.build(tmp_path / "out", joined)
    before = StateStore(checkpoint / "state").latest()
    assert before is not None
    stopped_after(ps.Spark(checkpoint=checkpoint, tasks=2, batch_events=60), app, before.batches + 2)
    assert on_node(ps.Node(workers=2, tasks=2), 3) is None
    app, _ = crash_app.build(tmp_path / "out", joined)
    summary = ps.Spark(checkpoint=checkpoint, batch_events=200).run(app.graph(), app.name)
    assert summary.complete
    assert on_node(ps.Node(workers=1), None) is not None  # there is nothing left to do
    expected = run_reference(crash_app.build(None, joined)[0].graph(), crash_app.inputs(joined))
    check(written(tmp_path / "out"), expected)
