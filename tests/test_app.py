"""The app hands its graph to a runtime; the package's face is complete and light."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

import penstock as ps
from penstock.metrics.watch import Watch
from penstock.query.graph import Graph
from tests.query.stream.streams import Traffic


class Recorder:
    """A runtime that runs nothing."""

    def run(self, graph: Graph, *, name: str, watch: Watch) -> tuple[str, int]:
        return name, len(graph)


def test_run_hands_over_the_graph() -> None:
    traffic = Traffic()
    for name in ("a", "b"):
        traffic.sink(name, traffic.cars.filter(ps.col("speed") > 30))
    assert traffic.app.run(on=Recorder()) == ("traffic", 4)
    assert traffic.app.run(on=Recorder(), share=False) == ("traffic", 5)


def test_queries_can_be_added_after_a_run() -> None:
    traffic = Traffic()
    traffic.sink("a", traffic.cars)
    assert traffic.app.run(on=Recorder())[1] == 2
    traffic.sink("b", traffic.tolls)
    assert traffic.app.run(on=Recorder())[1] == 4


def test_an_app_says_what_it_has() -> None:
    traffic = Traffic()
    traffic.sink("a", traffic.cars)
    assert repr(traffic.app) == "<App 'traffic': 2 sources, 1 sinks>"


PUBLIC = """
App Context Group ProcessFunction Schema avg coalesce col count count_distinct errors first greatest hash_of
last least lit max max_ median min min_ quantile session sliding sum sum_ tumbling variance when
"""


@pytest.mark.parametrize("name", PUBLIC.split())
def test_public_names(name: str) -> None:
    assert getattr(ps, name) is not None
    assert name in dir(ps)


def test_pythons_own_names_survive_a_star_import() -> None:
    names: dict[str, Any] = {}
    exec("from penstock import *", names)
    assert not {"sum", "min", "max"} & set(names)
    assert builtins.sum is not ps.sum


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nodee'"):
        ps.Nodee  # noqa: B018
