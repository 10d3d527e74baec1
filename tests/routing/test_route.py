"""Algorithm 1 by hand, routes for other numbers of tasks, and one owner for every partition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.query.errors import PenstockError
from penstock.routing.route import Move, even_route, moves_between, resized
from penstock.routing.router import TwoTierRouter


def test_algorithm_1_data_stream() -> None:
    router = TwoTierRouter((0, 1, 1), 2)
    # 4 % 3 = 1 → task 1, 6 % 3 = 0 → task 0, −1 pmod 3 = 2 → task 1
    assert router.tasks_of(np.array([4, 6, -1])).tolist() == [1, 0, 1]


def test_algorithm_1_control_stream() -> None:
    router = TwoTierRouter((0, 1, 1), 2)
    router.apply(Move(1, 1, 0))
    assert router.route == (0, 0, 1)
    assert router.tasks_of(np.array([4])).tolist() == [0]


def test_a_move_from_someone_who_is_not_the_owner_is_refused() -> None:
    router = TwoTierRouter((0, 1), 2)
    with pytest.raises(ValueError, match="belongs to task 1, not 0"):
        router.apply(Move(1, 0, 1))
    with pytest.raises(ValueError, match="cannot move to task 2"):
        router.apply(Move(1, 1, 2))


@settings(max_examples=60)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50), st.integers(1, 5), st.integers(0, 3))
def test_a_split_has_every_row_once_in_order_and_counts_it(hashes: list[int], tasks: int, more: int) -> None:
    rows = np.array(hashes, np.int64)
    router = TwoTierRouter(even_route(tasks + more, tasks), tasks)
    split = router.split(rows)
    owners = router.tasks_of(rows)
    for task in range(tasks):
        assert split.rows(task).tolist() == np.flatnonzero(owners == task).tolist()
    expected = np.bincount(rows % (tasks + more), minlength=tasks + more)
    assert router.take_rows() == tuple(expected.tolist())
    assert sum(router.take_rows()) == 0


def test_moves_between_routes_of_different_length_are_refused() -> None:
    with pytest.raises(PenstockError, match="different length: 1 and 2"):
        moves_between((0,), (0, 1))


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 5), min_size=6, max_size=30),
    st.integers(1, 6),
    st.lists(st.floats(0, 10), min_size=30, max_size=30),
)
def test_another_number_of_tasks_moves_only_what_it_must(
    owners: list[int], tasks: int, loads: list[float]
) -> None:
    route = tuple(owners)
    after = resized(route, tasks, loads[: len(route)])
    assert len(after) == len(route)
    assert set(after) <= set(range(tasks))
    for move in moves_between(route, after):
        gone = move.source >= tasks
        assert gone or move.target not in route  # from a task that is gone, or to one that is new


def test_tasks_that_come_take_about_their_share() -> None:
    after = resized(even_route(64, 2), 4)
    assert [after.count(task) for task in range(4)] == [16, 16, 16, 16]
    assert len(moves_between(even_route(64, 2), after)) == 32


def test_one_task_becomes_many() -> None:
    after = resized((0,) * 64, 4)
    assert sorted(after.count(task) for task in range(4)) == [16, 16, 16, 16]
