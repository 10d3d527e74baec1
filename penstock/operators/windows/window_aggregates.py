"""Which operator aggregates over which kind of window: registered by the window's class."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from penstock.operators.run.base import Build, Operator
from penstock.operators.run.registry import runs
from penstock.query.steps import WindowAggregateSpec
from penstock.query.windows import WINDOWS, Window
from penstock.query.word import check_declared

_OPERATORS: dict[type[Window], type[Operator]] = {}
_Any = TypeVar("_Any", bound=type[Operator])


def aggregates_over(kind: type[Window]) -> Callable[[_Any], _Any]:
    """Registers the operator that aggregates over windows of this kind; it is given a ``Build``."""

    def register(operator: _Any) -> _Any:
        _OPERATORS[kind] = operator
        return operator

    return register


@runs(WindowAggregateSpec)
def aggregate_over(build: Build) -> Operator:
    """The operator of a step that aggregates over a window."""
    spec = build.node.spec_as(WindowAggregateSpec)
    return _OPERATORS[type(spec.window)](build)


def check_all() -> None:
    """Raises where a window that is declared has no operator."""
    without = [name for name, kind in WINDOWS.items() if kind not in _OPERATORS]
    if without:
        raise TypeError(
            f"no operator aggregates over {', '.join(without)}: register one with @aggregates_over"
        )
    check_declared(_OPERATORS, "an operator aggregates over")
