"""Consumption: all, half, at most N of what waits (edgewise 4.2)."""

from __future__ import annotations

import pytest

from penstock.query.errors import PenstockError
from penstock.scheduling.consumption import All, AtMost, Half, consumption_of


def test_how_many_of_what_waits_a_turn_takes() -> None:
    assert [All().events(n) for n in (0, 1, 7)] == [0, 1, 7]
    assert [Half().events(n) for n in (0, 1, 2, 7)] == [0, 1, 1, 4]
    assert [AtMost(5).events(n) for n in (0, 1, 5, 7)] == [0, 1, 5, 5]


def test_users_write_it_as_a_word_or_a_number() -> None:
    assert [consumption_of(given) for given in ("all", "half", 50)] == [All(), Half(), AtMost(50)]
    assert consumption_of(Half()) == Half()
    assert [str(one) for one in (All(), Half(), AtMost(50))] == ["all", "half", "at most 50"]


@pytest.mark.parametrize(
    ("given", "message"), [("most", "unknown consumption: 'most'"), (0, "at least one event")]
)
def test_what_makes_no_sense_is_refused(given: str | int, message: str) -> None:
    with pytest.raises(PenstockError, match=message):
        consumption_of(given)
