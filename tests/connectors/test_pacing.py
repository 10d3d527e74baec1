from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors.pacing import Pace
from penstock.query.errors import QueryError

SECOND = 1_000_000_000


def test_nothing_is_due_at_the_first_question_and_then_rate_times_elapsed() -> None:
    pace = Pace(1_000)
    assert pace.when(1) is None
    assert pace.due(5 * SECOND) == 0
    assert pace.due(5 * SECOND + SECOND // 2) == 500
    assert pace.due(65 * SECOND) == 60_000
    assert pace.when(1) == 5 * SECOND + 1_000_000


def test_steps_add_up_and_the_last_goes_on() -> None:
    pace = Pace([(2, 10), (1, 0), (1, 100)])
    pace.due(0)
    assert [pace.due(t * SECOND) for t in (1, 2, 3, 4, 10)] == [10, 20, 20, 120, 720]
    assert pace.when(20) == 2 * SECOND
    assert pace.when(21) == 3 * SECOND + SECOND // 100


@given(
    st.lists(
        st.tuples(st.floats(0, 5), st.one_of(st.just(0.0), st.floats(0.5, 1e6))), min_size=1, max_size=4
    ).filter(lambda steps: steps[-1][1] > 0),
    st.integers(1, 10_000),
    st.integers(1, 4),
)
def test_an_event_is_due_exactly_from_its_moment_on(
    steps: list[tuple[float, float]], count: int, share: int
) -> None:
    pace = Pace(steps, share)
    pace.due(7)
    moment = pace.when(count)
    assert moment is not None
    assert pace.due(moment) >= count
    assert pace.due(moment - 1) < count


@pytest.mark.parametrize("rate", [0, -1, [], [(1, 5), (1, 0)], float("nan"), float("inf"), 0.0001])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(QueryError, match="rate"):
        Pace(rate)
