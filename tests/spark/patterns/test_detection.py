"""Detectors in tasks: the rows of one detector, whatever the degree, cuts, routes and failures."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.checkpoints.folders import operators_of
from penstock.engine.seat.settings import Settings
from penstock.query.patterns.detecting import ASSIGNMENTS
from penstock.spark.batches.preparation import prefix_of
from penstock.spark.batches.stages import cut
from penstock.spark.groups.groups import part_of
from tests.cep.selections.detection_cases import FAMILIES, app_of, expected, make_rows, rows_of
from tests.cep.selections.test_parallel import drawn_row
from tests.spark.in_process import run_in_process


@pytest.mark.parametrize("family", FAMILIES)
def test_tasks_whose_keys_move_in_most_batches_give_the_rows_of_one_detector(
    family: str, tmp_path: Path
) -> None:
    @settings(deadline=None, max_examples=10)
    @given(
        st.lists(drawn_row, max_size=120),
        st.integers(1, 5),
        st.lists(st.tuples(st.integers(0, 120), st.integers(1, 5)), max_size=6),
        st.sampled_from(ASSIGNMENTS),
        st.integers(0, 10**6),
    )
    def check(
        drawn: list[tuple[int, int, int, int, int | None]],
        start: int,
        changes: list[tuple[int, int]],
        assignment: str,
        seed: int,
    ) -> None:
        rows = make_rows(drawn)
        app, sink = app_of(rows, family, ps.Degree(start, 5, tuple(changes)), assignment)
        run_in_process(app.graph(), tmp_path / "run", seed, Settings(block_events=16))
        assert rows_of(sink) == expected(rows, family)

    check()


def test_queries_in_groups_and_dataframes_know_the_parts_of_a_detector() -> None:
    app, _ = app_of(make_rows([(1, 0, 0, 0, 1)] * 3), "sequence", 2)
    graph = app.graph()
    known = operators_of(cut(graph))
    assert sorted(known) == ["matches", "matches.instances", "matches.splitter"]
    assert operators_of(cut(part_of(graph, ["out"]))) == known
    assert not prefix_of(graph, "events").done
    other, _ = app_of(make_rows([(1, 0, 0, 0, 1)] * 3), "sequence", ps.Degree(3, 9))
    assert operators_of(cut(other.graph())) == known  # so a checkpoint goes on
