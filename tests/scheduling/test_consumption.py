"""Consumption: all, half, at most N of what waits (edgewise 4.2)."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.query.errors import PenstockError
from penstock.scheduling.consumption import All, AtMost, Consumption, Half, consumption_of
from penstock.scheduling.dispatch.dispatcher import Dispatcher
from penstock.scheduling.dispatch.rules import Rules
from penstock.scheduling.observation import Observation
from penstock.scheduling.round_robin import RoundRobin
from tests.scheduling.snapshots import chain


def limit(consumption: Consumption, pending: int) -> int:
    """Of a turn of an operator for which so much waits."""
    dispatcher = Dispatcher(chain(2), RoundRobin(), 100, 1_000, 1, Rules.none(), consumption)
    dispatcher.plan(1, Observation(chain(2), 1, np.zeros(2), np.ones(2, bool)))
    dispatcher.tell(1, pending, 2)
    assert dispatcher.exchange(0, 3) == 1
    return int(dispatcher.board.given[0].limit)


def test_how_many_of_what_waits_a_turn_takes() -> None:
    assert [limit(All(), n) for n in (1, 7)] == [100, 100]  # whatever comes meanwhile
    assert [limit(Half(), n) for n in (1, 2, 7)] == [1, 1, 4]
    assert [limit(AtMost(5), n) for n in (1, 5, 7)] == [5, 5, 5]


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
