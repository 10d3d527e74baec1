"""When sources are read."""

from __future__ import annotations

from lab.sim.reading import Reading


def test_without_patience_a_source_is_looked_at_an_epoch_after_it_was_read_empty() -> None:
    reading = Reading(1_000)
    reading.patience_ns = 1
    assert reading.patience_ns == 1_000
    assert reading.read_empty(0, given_ns=4_000, now_ns=5_000) == 6_000
    assert reading.due(5_999) == []
    assert reading.due(6_000) == [0]
    assert reading.due(9_000) == []  # once


def test_patient_sources_wait_for_a_common_beat_at_least_half_their_patience_away() -> None:
    reading = Reading(1_000)
    reading.patience_ns = 10_000
    assert reading.read_empty(0, given_ns=100, now_ns=300) == 10_000
    assert reading.read_empty(1, given_ns=5_000, now_ns=5_100) == 10_000
    assert reading.read_empty(2, given_ns=6_000, now_ns=6_100) == 20_000  # 10000 is too soon


def test_one_that_has_missed_its_beat_goes_on_at_once() -> None:
    reading = Reading(1_000)
    reading.patience_ns = 10_000
    reading.read_empty(0, given_ns=100, now_ns=300)  # beats at 10000, 20000, ...
    assert reading.read_empty(0, given_ns=5_000, now_ns=12_000) == 12_000


def test_sources_that_are_nearly_due_come_with_one_that_is_and_others_do_not() -> None:
    reading = Reading(1_000)
    reading.patience_ns = 4_000
    for source, now_ns in ((0, 100), (1, 900), (2, 1_101)):
        reading.put_off(source, now_ns)  # by an epoch
    assert reading.due(1_100) == [0, 1]  # a quarter of the patience: until 2100
    assert reading.due(2_100) == []
    assert reading.due(2_101) == [2]
