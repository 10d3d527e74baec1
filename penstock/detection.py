"""What detectors of one's own are made with: selections, matches, and what sets the degree.

>>> import penstock as ps
>>> ps.detection.TupleWindows(size=10, slide=2).open_selections
0
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cep.selections.instances import Detector, Matches
from penstock.cep.selections.selections import Cuts, EventBatch, Predicates
from penstock.cep.selections.splitter_pairs import (
    Aperiodic,
    Condition,
    Conjunction,
    Disjunction,
    Periodic,
    Sequence,
    one_of,
)
from penstock.cep.selections.splitter_rows import OpenSelection, RowPredicates
from penstock.cep.selections.splitter_windows import TimeWindows, TupleWindows
from penstock.query.extras import Extra, Lazy, lazy_names

if TYPE_CHECKING:
    from penstock.cep.selections.degree_control import DegreeControl
    from penstock.scaling.planner import QueueingPlanner
    from penstock.scaling.profiles import OperatorProfile, measure_profile
    from penstock.scaling.slices import Slicing

__all__ = [
    "Aperiodic",
    "Condition",
    "Conjunction",
    "Cuts",
    "DegreeControl",
    "Detector",
    "Disjunction",
    "EventBatch",
    "Matches",
    "OpenSelection",
    "OperatorProfile",
    "Periodic",
    "Predicates",
    "QueueingPlanner",
    "RowPredicates",
    "Sequence",
    "Slicing",
    "TimeWindows",
    "TupleWindows",
    "measure_profile",
    "one_of",
]

# Loaded when first asked for: a fixed degree needs nothing beyond the package.
_LAZY = {
    "DegreeControl": Lazy(Extra.DEGREE, "penstock.cep.selections.degree_control", "DegreeControl"),
    "OperatorProfile": Lazy(Extra.DEGREE, "penstock.scaling.profiles", "OperatorProfile"),
    "QueueingPlanner": Lazy(Extra.DEGREE, "penstock.scaling.planner", "QueueingPlanner"),
    "Slicing": Lazy(Extra.DEGREE, "penstock.scaling.slices", "Slicing"),
    "measure_profile": Lazy(Extra.DEGREE, "penstock.scaling.profiles", "measure_profile"),
}
__getattr__ = lazy_names(__name__, _LAZY)


def __dir__() -> list[str]:
    return __all__
