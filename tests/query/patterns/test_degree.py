"""A degree says early what is wrong with it."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.query.errors import QueryError
from penstock.query.patterns.degree import as_degree


def test_a_number_is_a_degree_that_stays() -> None:
    assert as_degree(3) == ps.Degree(3)
    assert as_degree(3).most == 3
    assert str(as_degree(3)) == "degree 3"


def test_changes_are_put_in_order_and_count_for_most() -> None:
    degree = ps.Degree(2, changes=[(50, 3), (10, 5)])  # type: ignore[arg-type]
    assert degree.changes == ((10, 5), (50, 3))
    assert degree.most == 5
    assert str(degree) == "degree 2, 5 from event 10, 3 from event 50"
    assert as_degree(degree) is degree


def test_equal_degrees_are_equal_and_can_be_keys() -> None:
    assert len({ps.Degree(2), ps.Degree(2, 2), ps.Degree(2, 3)}) == 2


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: ps.Degree(0), "start is a whole number from 1 to 1024"),
        (lambda: ps.Degree(True), "start is a whole number"),
        (lambda: ps.Degree(2, 1), "degree must be from 1 to 1, which is most: got 2"),
        (lambda: ps.Degree(1, 2, ((5, 3),)), "from 1 to 2, which is most: got 3"),
        (lambda: ps.Degree(1, 5000), "most is a whole number"),
        (lambda: ps.Degree(1, 4, ((-1, 3),)), "changes are pairs of a position and a degree"),
        (lambda: ps.Degree(1, 4, (3,)), "changes are pairs"),  # type: ignore[arg-type]
        (lambda: ps.Degree(1, 4, ((3, 0),)), "a changed degree is a whole number"),
        (lambda: ps.Degree(control=lambda: None), "needs most"),  # type: ignore[arg-type, return-value]
        (lambda: ps.Degree(1, 2, (), 5), "control must be a function"),  # type: ignore[arg-type]
        (lambda: as_degree("2"), "degree is a whole number or a Degree"),  # type: ignore[arg-type]
    ],
)
def test_what_is_wrong_is_said_when_it_is_written(wrong: object, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        wrong()  # type: ignore[operator]
