"""The steps of the language, each in a file of its own. Made by ``make reference``; do not edit."""

from __future__ import annotations

from penstock.query.steps.batch import BatchSpec
from penstock.query.steps.cogroup import CoGroupSpec
from penstock.query.steps.deduplicate import DeduplicateSpec
from penstock.query.steps.detect import DetectSpec
from penstock.query.steps.explode import ExplodeSpec
from penstock.query.steps.filter import FilterSpec
from penstock.query.steps.flat_map import FlatMapSpec
from penstock.query.steps.group_join import GroupJoinSpec
from penstock.query.steps.interval_join import IntervalJoinSpec
from penstock.query.steps.lookup import LookupSpec
from penstock.query.steps.match import MatchSpec
from penstock.query.steps.match_merge import MatchMergeSpec
from penstock.query.steps.match_set import MatchSetSpec
from penstock.query.steps.match_split import MatchSplitSpec
from penstock.query.steps.nested_aggregate import NestedAggregateSpec
from penstock.query.steps.process import ProcessSpec
from penstock.query.steps.select import SelectSpec
from penstock.query.steps.sink import SinkSpec
from penstock.query.steps.source import SourceSpec
from penstock.query.steps.union import UnionSpec
from penstock.query.steps.window_aggregate import WindowAggregateSpec
from penstock.query.steps.window_join import WindowJoinSpec
from penstock.query.steps.window_top import WindowTopSpec

__all__ = [
    "BatchSpec",
    "CoGroupSpec",
    "DeduplicateSpec",
    "DetectSpec",
    "ExplodeSpec",
    "FilterSpec",
    "FlatMapSpec",
    "GroupJoinSpec",
    "IntervalJoinSpec",
    "LookupSpec",
    "MatchMergeSpec",
    "MatchSetSpec",
    "MatchSpec",
    "MatchSplitSpec",
    "NestedAggregateSpec",
    "ProcessSpec",
    "SelectSpec",
    "SinkSpec",
    "SourceSpec",
    "UnionSpec",
    "WindowAggregateSpec",
    "WindowJoinSpec",
    "WindowTopSpec",
]
