"""Which operator runs which kind of step: registered by the step's class, where the operator is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from penstock.operators.run.base import Build, Operator
from penstock.query.steps.spec import STEPS, PartialStep, Spec
from penstock.query.word import check_declared

_OPERATORS: dict[type[Spec], Callable[[Build], Operator]] = {}
_ELSEWHERE: dict[type[Spec], str] = {}
_Any = TypeVar("_Any", bound=Callable[[Build], Operator])


def runs(kind: type[Spec]) -> Callable[[_Any], _Any]:
    """Registers the operator that runs steps of this kind; it is given a ``Build``."""

    def register(operator: _Any) -> _Any:
        _OPERATORS[kind] = operator
        return operator

    return register


def runs_elsewhere(kind: type[Spec], why: str) -> None:
    """Registers that no operator here runs steps of this kind, with the reason."""
    _ELSEWHERE[kind] = why


def operator_for(build: Build) -> Operator:
    """The operator for a node that is neither a source nor a sink, new for every run."""
    return _OPERATORS[type(build.node.spec)](build)


def check_all() -> None:
    """Raises where a step that is declared has no operator."""
    without = [name for name, kind in STEPS.items() if kind not in _OPERATORS and kind not in _ELSEWHERE]
    if without:
        raise TypeError(f"no operator runs {', '.join(without)}: register one with @runs")
    # runtimes have steps of their own, which are no words of the language
    written = (kind for kind in (*_OPERATORS, *_ELSEWHERE) if not issubclass(kind, PartialStep))
    check_declared(written, "an operator runs")
