"""All operators, those of patterns included: every step has one, or importing this fails."""

from __future__ import annotations

from penstock.cep import patterns
from penstock.operators import columns, joins, keyed, windows
from penstock.operators.run.registry import check_all, operator_for, runs_elsewhere
from penstock.operators.windows import window_aggregates
from penstock.query.steps import DetectSpec, SinkSpec, SourceSpec
from penstock.query.word import load

for _room in (columns, joins, keyed, windows, patterns):
    load(_room)
runs_elsewhere(SourceSpec, "each runtime reads in its own way")
runs_elsewhere(SinkSpec, "each runtime delivers in its own way")
runs_elsewhere(DetectSpec, "detection_graph makes other steps of it, one way or another")
check_all()
window_aggregates.check_all()

__all__ = ["check_all", "operator_for"]
