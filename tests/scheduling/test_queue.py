"""The scheduling queue: highest priority first, operators at most once, priorities that change."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.scheduling.queue import SchedulingQueue


def loaded(*priorities: float) -> SchedulingQueue:
    queue = SchedulingQueue(len(priorities))
    queue.load(np.array(priorities, float))
    return queue


def drained(queue: SchedulingQueue) -> list[int]:
    found = []
    while (operator := queue.pop()) is not None:
        found.append(operator)
    return found


def test_the_highest_priority_comes_first_and_zero_never() -> None:
    assert drained(loaded(1.0, 3.0, 0.0, 2.0, -1.0)) == [1, 3, 0]


def test_of_equal_ones_a_plan_prefers_the_one_downstream() -> None:
    assert drained(loaded(5.0, 9.0, 5.0)) == [1, 2, 0]


def test_of_equal_ones_that_were_put_the_first_comes_first() -> None:
    queue = loaded(0.0, 0.0, 0.0)
    for operator in (1, 0, 2):
        queue.put(operator, 4.0)
    assert drained(queue) == [1, 0, 2]


def test_putting_again_changes_the_priority_and_zero_takes_out() -> None:
    queue = loaded(1.0, 2.0, 3.0)
    queue.put(0, 9.0)
    queue.put(2, 0.0)
    assert queue.priority(0) == 9.0
    assert drained(queue) == [0, 1]


def test_it_remembers_with_which_priority_an_operator_was_taken_out() -> None:
    queue = loaded(1.0, 2.0)
    queue.pop()
    assert (queue.last(1), queue.last(0)) == (2.0, 0.0)
    queue.load(np.array([1.0, 1.0]))
    assert queue.last(1) == 0.0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=40))
def test_it_gives_out_what_a_sorted_list_would(puts: list[tuple[int, int]]) -> None:
    queue, known = loaded(*[0.0] * 6), {}
    for operator, priority in puts:
        queue.put(operator, float(priority))
        known[operator] = priority
    found = drained(queue)
    assert sorted(found) == sorted(operator for operator, priority in known.items() if priority)
    assert [known[operator] for operator in found] == sorted((known[o] for o in found), reverse=True)


def test_the_first_stays_where_it_is() -> None:
    queue = SchedulingQueue(3)
    assert queue.first() is None
    queue.put(1, 2.0)
    queue.put(2, 5.0)
    assert (queue.first(), len(queue), queue.pop(), queue.first()) == (2, 2, 2, 1)
