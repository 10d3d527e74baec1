"""The rule above all others for the tasks of the Spark runtime, without Spark: random cuts, task counts,
routes, processes and losing attempts must give the rows of the reference.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from penstock.engine.seat.settings import Settings
from penstock.spark.batches import results
from tests.engine.test_equivalence import compare, described, expected_of
from tests.graphs.graph_strategies import CATALOGUE, Drawn, few, few_random_graphs, random_graphs
from tests.spark.in_process import run_in_process

seeds = st.integers(0, 2**16)
engines = st.builds(Settings, block_events=st.sampled_from((4, 64, 1024)), turn_blocks=st.integers(1, 3))


#: By default operators that follow others; those alone run on the node engine.
_ALONE = {name for name in CATALOGUE if " after " not in name and " of " not in name}
_EACH = [pytest.param(name, marks=pytest.mark.slow if name in _ALONE else ()) for name in CATALOGUE]


@pytest.mark.parametrize("name", _EACH)
def test_every_operator_gives_the_rows_of_the_reference(name: str, tmp_path: Path) -> None:
    @settings(max_examples=2)
    @given(few(name), seeds, engines, st.booleans())
    def check(one: Drawn, number: int, engine: Settings, share: bool) -> None:
        check_run(one, tmp_path / "state", number, engine, share)

    check()


@pytest.mark.parametrize("part", range(2))
def test_random_graphs_give_the_rows_of_the_reference(part: int, tmp_path: Path) -> None:
    @seed(part)
    @settings(max_examples=5)
    @given(few_random_graphs(), seeds, engines, st.booleans())
    def check(one: Drawn, number: int, engine: Settings, share: bool) -> None:
        check_run(one, tmp_path / "state", number, engine, share)

    check()


def test_results_that_stand_in_files_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "HELD_BYTES", 100)
    monkeypatch.setattr(results, "SENT_BYTES", 0)
    written: list[int] = []
    write = results.ResultFiles.write

    def noted(self: results.ResultFiles, payloads: list[Any]) -> list[results.Place]:
        written.append(len(payloads))
        return write(self, payloads)

    monkeypatch.setattr(results.ResultFiles, "write", noted)

    @seed(7)
    @settings(max_examples=2)
    @given(few_random_graphs(), seeds, engines, st.booleans())
    def check(one: Drawn, number: int, engine: Settings, share: bool) -> None:
        check_run(one, tmp_path / "state", number, engine, share)

    check()
    assert written
    assert list((tmp_path / "state-results").iterdir()) == []  # gone with the batch


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_many_random_graphs_give_the_rows_of_the_reference(part: int, tmp_path: Path) -> None:
    @settings(settings.get_profile("thorough"), max_examples=25)
    @given(random_graphs, seeds, engines, st.booleans())
    def check(one: Drawn, number: int, engine: Settings, share: bool) -> None:
        check_run(one, tmp_path / "state", number, engine, share)

    check()


def check_run(one: Drawn, folder: Path, number: int, engine: Settings, share: bool) -> None:
    built = one.build()
    reference = expected_of(one, share)
    late = run_in_process(built.app.graph(share), folder, number, engine)
    how = f"seed {number}, {engine}, share={share}"
    compare(built.results(), reference.sinks, one, built, how)
    expected_late = {name: count for name, count in reference.late_counts.items() if count}
    assert late == expected_late, f"late counts differ\n{described(one, built, how)}"
