"""Equation 3 of enjima: weights within [0.9, 1.1], and an operator takes the largest of its queries'."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.scheduling.gradient import mean_gradient, operator_weight, query_weight
from penstock.scheduling.topology import Topology


def test_weights_follow_the_gradient_and_are_bounded_on_both_sides() -> None:
    gradients = np.array([0.0, 0.5, 3.0, -0.5, -8.0, np.nan])
    assert query_weight(gradients) == pytest.approx([1.0, 1.05, 1.1, 0.95, 0.9, 1.0])


def test_a_shared_operator_takes_the_largest_weight_of_its_queries() -> None:
    shared = Topology(((1, 2), (3,), (4,), (), ()), ("source", "map", "map", "sink", "sink"))
    gradients = np.array([np.nan, np.nan, np.nan, -1.0, 0.5])
    assert operator_weight(shared, gradients) == pytest.approx([1.05, 0.9, 1.05, 0.9, 1.05])


def test_who_reaches_no_sink_has_weight_one() -> None:
    shipping = Topology(((1,), ()), ("source", "map"))
    assert operator_weight(shipping, np.array([np.nan, np.nan])).tolist() == [1.0, 1.0]


def test_the_mean_is_over_the_queries_of_which_the_gradient_is_known() -> None:
    assert mean_gradient(np.array([np.nan, 0.25, np.nan, 0.75])) == 0.5
    assert mean_gradient(np.array([np.nan])) == 0.0
