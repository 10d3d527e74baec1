"""Every step says all of itself, and has an operator: what is forgotten is told at import."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import pytest

from penstock.cep import catalogue
from penstock.operators.run import registry
from penstock.query import steps
from penstock.query.steps.spec import STEPS, Keyed, Order, Part, Spec, Stateless, complete, declared
from penstock.query.types import Schema


def test_the_room_has_every_step() -> None:
    assert {getattr(steps, name) for name in steps.__all__} == set(STEPS.values())


def test_a_step_that_does_not_say_all_of_itself_is_told_at_import() -> None:
    with pytest.raises(
        TypeError,
        match="step Nothing does not say all of itself: name, inputs, timed, order, names_columns, "
        "details, merges, reads, routed_by missing",
    ):

        @declared
        @dataclass(frozen=True)
        class Nothing(Spec):
            """Nothing."""

    assert "nothing" not in STEPS


def test_a_family_does_not_answer_for_its_steps() -> None:
    with pytest.raises(TypeError, match="name, order, names_columns, details, reads missing"):

        @declared
        @dataclass(frozen=True)
        class Stateful(Keyed):
            """Nothing."""

    with pytest.raises(TypeError, match="name missing"):

        @complete
        @dataclass(frozen=True)
        class Whole(Part):
            """Nothing."""


def test_the_name_of_a_step_is_its_own() -> None:
    with pytest.raises(TypeError, match="step Again takes the name 'filter', which is taken already"):

        @declared
        @dataclass(frozen=True)
        class Again(Stateless):
            """Nothing."""

            name = "filter"
            order = Order.KEPT
            names_columns = True

            def reads(self, index: int, wanted: AbstractSet[str], schema: Schema) -> AbstractSet[str]:
                return wanted

            def details(self) -> str:
                return ""

    assert STEPS["filter"] is steps.FilterSpec


@pytest.mark.parametrize("name", sorted(STEPS))
def test_a_step_without_an_operator_is_told_at_import(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue.check_all()
    for places in (registry._OPERATORS, registry._ELSEWHERE):
        monkeypatch.delitem(places, STEPS[name], raising=False)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=f"no operator runs {name}: register one with @runs"):
        catalogue.check_all()
