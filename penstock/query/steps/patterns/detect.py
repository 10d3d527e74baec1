"""What a user's detector finds in selections of the stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.query.patterns.degree import Degree
from penstock.query.steps.spec import PLACE, TIMED, Means, Names, Order, Spec, Version, declared
from penstock.query.steps.texts import function_name
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class DetectSpec(Spec):
    """Cuts the stream into selections, looks at each of them whole, and gives what it finds one order.

    ``selections`` makes a :class:`penstock.detection.Predicates`, ``detector`` a
    :class:`penstock.detection.Detector`. A row has ``sequence``, consecutive from 0, ``closed_at``, the time
    of the event that closed its selection, and ``outputs``.
    """

    name = "detect"
    inputs = 1
    timed = True
    order = Order.KEPT
    names_columns = False

    selections: Callable[[], Any]
    detector: Callable[[], Any]
    outputs: tuple[tuple[str, int, str], ...]  # (name in the result, which event of the match, its column)
    degree: Degree
    assignment: str  # which instance gets a selection
    function_version: Version = None  # as its user counts

    def routed_by(self, index: int) -> tuple[str, ...] | None:
        return ()

    def merges(self) -> bool:
        return False

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        return TIMED.union(PLACE, schema.names)

    def means(self) -> Means:
        names = (function_name(self.selections), function_name(self.detector))
        return (*names, self.outputs, self.assignment, self.function_version)

    def details(self) -> str:
        detector = f"{function_name(self.detector)} in selections of {function_name(self.selections)}"
        return f"{detector}, parallel by selection, {self.degree}"

    def functions(self) -> tuple[Any, ...]:
        return (self.selections, self.detector)
