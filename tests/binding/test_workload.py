"""Equations 1 to 4, worked by hand."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

from penstock.binding import static, workload
from penstock.binding.workload import average_workload, demand, op_comp, thread_workloads, tuple_count


def test_equation_1_counts_what_was_received_and_not_processed() -> None:
    assert tuple_count([120, 30, 7], [100, 30, 0]).tolist() == [20, 0, 7]


def test_equation_2_is_the_mean_over_the_last_w_tuples() -> None:
    assert op_comp([900.0, 10.0, 20.0, 60.0], w=3) == 30.0
    assert op_comp([10.0, 20.0], w=3) == 15.0  # fewer than w so far
    assert op_comp([], w=3) == 0.0


def test_equations_3_and_4_sum_op_comp_times_tuple_count_by_thread() -> None:
    costs_ns, counts = np.array([30.0, 5.0, 100.0, 1.0]), tuple_count([20, 8, 3, 50], [0, 4, 1, 50])
    workloads = thread_workloads([0, 1, 1, 2], costs_ns * counts, threads=4)
    assert workloads.tolist() == [600.0, 5 * 4 + 100 * 2, 0.0, 0.0]  # a thread without operators has none
    assert average_workload(workloads) == (600 + 220) / 4


def test_demand_is_equation_1_since_the_last_rebinding() -> None:
    received_then, processed_then = np.array([50, 50]), np.array([40, 50])
    received_now, processed_now = np.array([90, 70]), np.array([85, 50])
    backlog_then = tuple_count(received_then, processed_then)
    since = received_now - received_then + backlog_then  # what there was to do
    done, waiting = processed_now - processed_then, tuple_count(received_now, processed_now)
    assert demand(done, waiting).tolist() == since.tolist() == [50, 20]


@pytest.mark.parametrize("module", [workload, static])
def test_examples_in_the_docstrings_are_right(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert result.failed == 0
