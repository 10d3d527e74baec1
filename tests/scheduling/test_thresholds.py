"""Equation 5 of enjima: thresholds move with the gradient, within bounds, and go back when that hurt."""

from __future__ import annotations

import numpy as np

from penstock.scheduling.thresholds import Adaptation, ThresholdRange, Thresholds

PAPER = Adaptation()


def test_the_step_is_the_gradient_times_the_value() -> None:
    assert ThresholdRange(1_000, 10_000, 1_000).step(1_000.0, 0.25) == 250.0
    assert ThresholdRange(1_000, 10_000, 1_000).step(1_000.0, -0.25) == -250.0


def test_the_step_is_bounded_on_both_sides() -> None:
    assert ThresholdRange(1_000, 10_000, 1_000).step(4_000.0, 0.9) == 1_000.0
    assert ThresholdRange(1_000, 10_000, 1_000).step(4_000.0, -0.9) == -1_000.0


def test_there_is_no_step_out_of_the_range() -> None:
    one = ThresholdRange(1_000, 10_000, 1_000)
    assert one.step(9_500.0, 0.9) == 0.0  # 10,500 is too much
    assert one.step(9_000.0, 0.9) == 0.0  # 10,000 is not below the largest
    assert one.step(800.0, -3.0) == 0.0  # below 0


def test_both_thresholds_start_where_the_paper_says_and_grow_with_the_gradient() -> None:
    first = PAPER.initial()
    assert (first.events, first.idle_ns) == (1_000.0, 1e6)
    second = PAPER.adapt(first, 0.5)
    assert (second.events, second.idle_ns) == (1_500.0, 1.5e6)
    assert second.before == (1_000.0, 1e6)


def test_a_change_that_was_followed_by_a_larger_gradient_is_taken_back() -> None:
    changed = PAPER.adapt(PAPER.initial(), 0.5)
    assert PAPER.adapt(changed, 0.6) == Thresholds(1_000.0, 1e6, None, 0.6)


def test_a_change_that_helped_is_followed_by_another() -> None:
    changed = PAPER.adapt(PAPER.initial(), 0.5)
    again = PAPER.adapt(changed, 0.4)
    assert (again.events, again.before) == (2_100.0, (1_500.0, 1.5e6))


def test_after_going_back_the_next_look_tries_again() -> None:
    reverted = PAPER.adapt(PAPER.adapt(PAPER.initial(), 0.5), 0.6)
    assert PAPER.adapt(reverted, 0.7).events == 1_700.0


def test_the_event_threshold_is_a_share_of_what_a_beat_brings() -> None:
    node = Adaptation.for_block(384, 100_000)
    now = node.initial()
    beat = np.array([0.0, 7.0, 900.0, 10_000.0])
    assert np.array_equal(node.least_events(now, beat), [1, 4, 450, 1_000])
    grown = now._replace(events=1_500.0)
    assert np.array_equal(node.least_events(grown, beat), [1, 6, 675, 1_500])
    assert (
        node.least_events(now, None) == PAPER.least_events(now, beat) == 1_000
    )  # nothing is known; the paper's


def test_workers_that_have_time_save_no_turns() -> None:
    node, beat = Adaptation.for_block(384, 100_000), np.array([900.0])
    now = node.initial()
    assert [int(node.least_events(now, beat, busy)[0]) for busy in (1.0, 0.5, 0.0)] == [450, 225, 1]  # type: ignore[index]
    assert [node.idle_limit_ns(now, busy) for busy in (1.0, 0.5, 0.0)] == [1e6, 0.5e6, 0.0]
    assert PAPER.idle_limit_ns(PAPER.initial(), 0.5) == 1e6  # the paper's do not know the load


def test_the_event_threshold_grows_with_the_block_up_to_a_part_of_what_can_wait() -> None:
    assert Adaptation.for_block(384, 100_000).events == ThresholdRange(1_000.0, 10_000.0, 1_000.0)
    twice = Adaptation.for_block(768, 100_000)
    assert twice.events == ThresholdRange(2_000.0, 20_000.0, 2_000.0)
    assert twice.idle_ns == Adaptation.for_block(65_536, 10**6).idle_ns
    small = Adaptation.for_block(768, 2_000).events
    assert (small.initial, small.largest) == (500.0, 1_500.0)
