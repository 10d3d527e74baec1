"""What detectors of one's own are made with: selections, matches, and what sets the degree.

>>> import penstock as ps
>>> ps.detection.TupleWindows(size=10, slide=2).open_selections
0
"""

from __future__ import annotations

from penstock.cep.degree_control import DegreeControl
from penstock.cep.instances import Detector, Matches
from penstock.cep.selections import Cuts, EventBatch, Predicates
from penstock.cep.splitter_pairs import (
    Aperiodic,
    Condition,
    Conjunction,
    Disjunction,
    Periodic,
    Sequence,
    one_of,
)
from penstock.cep.splitter_rows import OpenSelection, RowPredicates
from penstock.cep.splitter_windows import TimeWindows, TupleWindows
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
