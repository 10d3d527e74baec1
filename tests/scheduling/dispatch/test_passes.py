"""Which operators follow from another's turn alone."""

from __future__ import annotations

from penstock.scheduling.dispatch.passes import operators_behind
from penstock.scheduling.topology import Topology


def behind(*children: tuple[int, ...], most: int = 16) -> tuple[tuple[int, ...], ...]:
    return operators_behind(Topology(children, tuple("operator" for _ in children)), most)


def test_in_a_line_everyone_after_an_operator_is_behind_it() -> None:
    assert behind((1,), (2,), ()) == ((1, 2), (2,), ())


def test_branches_that_meet_again_are_behind_where_they_part_and_not_behind_either() -> None:
    assert behind((1, 2), (3,), (3,), ()) == ((1, 2, 3), (), (), ())


def test_an_operator_that_two_sources_write_to_is_behind_neither() -> None:
    assert behind((2,), (2,), (3,), ()) == ((), (), (3,), ())


def test_too_many_are_left_to_single_turns() -> None:
    assert behind((1,), (2,), (3,), (), most=2) == ((), (), (3,), ())
    assert behind((1,), (2,), (), most=3) == ((1, 2), (2,), ())
