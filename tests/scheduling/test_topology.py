"""Topologies: descendants are distinct, sinks are the queries, paths lead from sources to sinks."""

from __future__ import annotations

import pytest

from penstock.scheduling.topology import Topology
from tests.scheduling.snapshots import EXAMPLE, A, B, C, D, E, chain


def test_descendants_are_counted_once_where_ways_meet_again() -> None:
    assert EXAMPLE.descendants == ((B, C, D, E), (C, D, E), (E,), (E,), ())


def test_parents_are_those_whose_output_is_read_each_once() -> None:
    twice = Topology(((1, 1), ()), ("source", "sink"))  # both sides of a join
    assert EXAMPLE.parents == ((), (A,), (B,), (B,), (C, D))
    assert twice.parents == ((), (0,))


def test_an_operator_works_for_the_sinks_that_it_reaches() -> None:
    shared = Topology(((1, 2), (3,), (4,), (), ()), ("source", "map", "map", "sink", "sink"))
    assert shared.sinks == ((3, 4), (3,), (4,), (3,), (4,))


def test_paths_lead_from_sources_to_sinks() -> None:
    assert EXAMPLE.paths == ((A, B, C, E), (A, B, D, E))
    assert chain(3).paths == ((0, 1, 2),)


def test_a_graph_with_very_many_paths_has_some_of_them() -> None:
    layers = 20  # 2 ** 20 ways through
    children = tuple(
        (2 * (i // 2) + 2, 2 * (i // 2) + 3) if i < 2 * layers - 2 else () for i in range(2 * layers)
    )
    assert len(Topology(children, ("map",) * 2 * layers).paths) == 4096


def test_readers_must_have_larger_numbers() -> None:
    with pytest.raises(ValueError, match="readers have larger numbers"):
        Topology(((1,), (0,)), ("source", "map"))
